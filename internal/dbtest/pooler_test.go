package dbtest

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"stroppy/internal/cluster/pgbouncer"
	postgrescluster "stroppy/internal/cluster/postgres"
	"stroppy/internal/db"
	"stroppy/internal/db/postgres"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/tpcb"
)

// pooled opens an empty database on the shared server through a pooler of its own,
// which has three sessions there and lends one for each transaction.
func pooled(t *testing.T) (p *pgbouncer.Pooler, d *postgres.Database, direct string) {
	t.Helper()
	direct = newPostgresDatabase(t)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	server := netip.MustParseAddrPort(u.Host)
	p, err = pgbouncer.Start(t.Context(), pgbouncer.Options{
		Server: server, User: postgrescluster.Superuser,
		Settings: map[string]string{"pool_mode": "transaction", "default_pool_size": "3", "max_client_conn": "1000"},
	})
	served(t, "pgbouncer", p, err)
	return p, openPostgresURL(t, p.URL(postgrescluster.Superuser, strings.TrimPrefix(u.Path, "/"), "prepare=false")), direct
}

// TestBankBehindPooler: what each isolation promises holds where every transaction of
// a client may run in another session of the server.
func TestBankBehindPooler(t *testing.T) {
	for _, isolation := range []string{"", "serializable"} {
		for _, mode := range []string{bank.Pipelined, bank.Interactive, bank.Procedure} {
			t.Run(isolation+" "+mode, func(t *testing.T) {
				_, d, _ := pooled(t)
				c := small()
				c.Isolation, c.Mode = isolation, mode
				o := runBank(t, d, c, 1000)
				o.wantValid(t)
			})
		}
	}
	t.Run("read committed rmw", func(t *testing.T) {
		_, d, _ := pooled(t)
		c := small()
		c.Isolation, c.Update, c.Accounts = "read committed", bank.RMW, 20
		o := runBank(t, d, c, 1000)
		o.wantLostUpdates(t)
	})
}

// TestTPCBBehindPooler drives the four statements through a pooler.
func TestTPCBBehindPooler(t *testing.T) {
	_, d, _ := pooled(t)
	onTPCB(t, d, tpcb.Pipelined, tpcb.Interactive, tpcb.Procedure)
}

// TestBankOutlivesKilledPooler kills the pooler three times while the bank works
// through it. The server goes on with what it was given, and what became of it is
// looked up.
func TestBankOutlivesKilledPooler(t *testing.T) {
	for _, mode := range []string{bank.Pipelined, bank.Interactive} {
		t.Run(mode, func(t *testing.T) {
			p, d, direct := pooled(t)
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
