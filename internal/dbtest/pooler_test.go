package dbtest

import (
	"context"
	"testing"

	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
)

// TestBankSurvivesKilledPooler kills the pooler three times during a run. The server still executes what it has
// received, so the clients look up the outcomes.
func TestBankSurvivesKilledPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{workload.Pipelined, workload.Interactive} {
		t.Run(mode, func(t *testing.T) {
			p, direct := startPooler(t, map[string]string{"default_pool_size": "3"}), newPostgresDatabase(t)
			d, _ := openPooled(t, p, direct)
			ctx, cancel := context.WithCancel(t.Context())
			hurt := make(chan error, 1)
			count := counting(t, ctx, openPostgresURL(t, direct))
			go func() { hurt <- killAt(ctx, p, count, 500, 1500, 2500) }()
			c := small()
			c.Mode = mode
			o := conduct(t, d, newBank(t, d, func(own *bank.Config) { *own = c }), c.Isolation, 3000)
			cancel()
			if err := <-hurt; err != nil {
				t.Fatal(err)
			}
			o.wantSurvived(t)
		})
	}
}
