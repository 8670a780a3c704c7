package dbtest

import (
	"context"
	"testing"

	"stroppy/internal/db"
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
			watch, err := openPostgresURL(t, direct).Session(ctx, db.SessionOptions{Mode: db.Interactive})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			legs := &db.Statement{SQL: "SELECT CAST(COUNT(*) AS TEXT) FROM stroppy_ledger", Columns: []db.Type{db.Text}}
			count := func() (text string, err error) {
				err = watch.Query(ctx, legs, nil, func(row []db.Value) error {
					text = string(row[0].Text)
					return nil
				})
				return text, err
			}
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
