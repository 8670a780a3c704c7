package pgwire

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/money"
)

// BenchmarkTransferPgconn is BenchmarkTransfer with pgconn.Pipeline and with pgconn.Batch, the alternatives
// to this package's session.
func BenchmarkTransferPgconn(b *testing.B) {
	for _, way := range []struct {
		name string
		run  func(context.Context, *pgconn.PgConn, *pgTransfer) error
	}{{"pipeline", runPipeline}, {"batch", runBatch}} {
		b.Run(way.name, func(b *testing.B) {
			const accounts, sessions = 10_000, 16
			pg := start(b, map[string]string{"synchronous_commit": "off"})
			bank.Make(b, drivertest.Open(b, openURL, pg.URL()), accounts)
			clients := make([]*pgTransfer, sessions)
			for i := range clients {
				conn, err := pgconn.Connect(b.Context(), pg.URL())
				if err != nil {
					b.Fatal(err)
				}
				defer conn.Close(b.Context())
				clients[i] = &pgTransfer{conn: conn}
				for _, s := range []struct {
					name string
					s    *db.Statement
					oids []uint32
				}{{"u", updateAccount, []uint32{OIDNumeric, OIDInt8, 0, OIDInt8}}, {"l", insertLeg, []uint32{OIDInt8, OIDInt8, 0, OIDInt8, OIDNumeric}}} {
					if _, err := conn.Prepare(b.Context(), s.name, s.s.SQL, s.oids); err != nil {
						b.Fatal(err)
					}
				}
			}
			var id atomic.Int64
			var wg sync.WaitGroup
			all := func(n int) {
				for i, x := range clients {
					wg.Go(func() {
						rng := rand.New(rand.NewPCG(uint64(i), 0))
						for range n {
							from := rng.Int64N(accounts)
							to := (from + 1 + rng.Int64N(accounts-1)) % accounts
							x.fill(id.Add(1), min(from, to), max(from, to))
							if err := way.run(b.Context(), x.conn, x); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			}
			measure(b, sessions, all)
		})
	}
}

// pgTransfer is a transfer, encoded as efficiently as pgconn allows.
type pgTransfer struct {
	conn  *pgconn.PgConn
	texts []byte
	args  [4][][]byte
}

var (
	updateFormats = []int16{1, 1, 0, 1}
	legFormats    = []int16{1, 1, 0, 1, 1}
	textResults   = []int16{0}
)

func (x *pgTransfer) number(n int64) []byte {
	start := len(x.texts)
	x.texts = binary.BigEndian.AppendUint64(x.texts, uint64(n))
	return x.texts[start:]
}

func (x *pgTransfer) money(cents int64) []byte {
	start := len(x.texts)
	x.texts = appendNumeric(x.texts, cents)
	return x.texts[start:]
}

func (x *pgTransfer) fill(id, from, to int64) {
	if x.texts == nil {
		x.texts = make([]byte, 0, 1024)
	}
	x.texts = x.texts[:0]
	for i, account := range [...]int64{from, to} {
		cents := int64(1 - 2*i)
		x.args[2*i] = append(x.args[2*i][:0], x.money(cents), x.number(id), bic, x.number(account))
		x.args[2*i+1] = append(x.args[2*i+1][:0], x.number(id), x.number(int64(i)), bic, x.number(account), x.money(cents))
	}
}

func drain(r *pgconn.ResultReader) error {
	for r.NextRow() {
		if _, err := money.Parse(r.Values()[1]); err != nil {
			return err
		}
	}
	_, err := r.Close()
	return err
}

func runPipeline(ctx context.Context, conn *pgconn.PgConn, x *pgTransfer) error {
	p := conn.StartPipeline(ctx)
	for i := range 2 {
		p.SendQueryPrepared("u", x.args[2*i], updateFormats, textResults)
		p.SendQueryPrepared("l", x.args[2*i+1], legFormats, textResults)
	}
	if err := p.Sync(); err != nil {
		return err
	}
	for {
		results, err := p.GetResults()
		if err != nil {
			return err
		}
		switch r := results.(type) {
		case *pgconn.ResultReader:
			if err := drain(r); err != nil {
				return err
			}
		case *pgconn.PipelineSync:
			return p.Close()
		}
	}
}

func runBatch(ctx context.Context, conn *pgconn.PgConn, x *pgTransfer) error {
	var batch pgconn.Batch
	for i := range 2 {
		batch.ExecPrepared("u", x.args[2*i], updateFormats, textResults)
		batch.ExecPrepared("l", x.args[2*i+1], legFormats, textResults)
	}
	results := conn.ExecBatch(ctx, &batch)
	for results.NextResult() {
		if err := drain(results.ResultReader()); err != nil {
			return err
		}
	}
	return results.Close()
}
