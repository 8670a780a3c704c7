package dbtest

import (
	"context"
	"testing"

	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
)

// TestBankOutlivesKilledPooler kills the pooler three times while the bank works
// through it. The server goes on with what it was given, and what became of it is
// looked up.
func TestBankOutlivesKilledPooler(t *testing.T) {
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
