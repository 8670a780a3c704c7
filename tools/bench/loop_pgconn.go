package main

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/cluster/cockroach"
	"stroppy/tools/try"
)

// cockroach measures transfers on one node of CockroachDB beside a bare loop over
// pgconn, pipelined as ours.
func (s *suite) cockroach() {
	engine(s, "cockroach", cockroach.Start, nil, func(url string) {
		s.besideLoop("cockroach", url, loopClients, "", []string{"--mode=pipelined"}, func(ctx context.Context, client int) loop {
			return newPgconnLoop(ctx, "postgres"+url[len("cockroach"):], client)
		})
	})
}

// loopAccounts are the accounts that both sides use.
const loopAccounts = 10_000

// pgconnLoop transfers a cent between two accounts of the bank, as the style atomic does
// it: all statements and COMMIT in one pipeline. Its ids are of a run that no history has.
type pgconnLoop struct {
	conn   *pgconn.PgConn
	source *rand.Rand
	keys   []accountKey
	args   []byte // of the statements
}

// accountKey is the key of an account, as the server wrote it.
type accountKey struct {
	bic []byte
	ban uint64
}

const (
	loopUpdate = "UPDATE stroppy_account SET balance = balance + $1, version = version + 1, previous_transfer = last_transfer," +
		" last_transfer = $2 WHERE bic = $3 AND ban = $4 RETURNING balance, version, previous_transfer"
	loopLeg = "INSERT INTO stroppy_ledger (transfer, leg, bic, ban, amount, version) VALUES ($1, $2, $3, $4, $5," +
		" (SELECT version FROM stroppy_account WHERE bic = $6 AND ban = $7))"
	loopRun = 1 << 61 // added to the number of a transaction
)

func newPgconnLoop(ctx context.Context, url string, client int) loop {
	conn := try.Must(pgconn.Connect(ctx, url))
	l := &pgconnLoop{conn: conn, source: rand.New(rand.NewPCG(uint64(client), 1)), args: make([]byte, 0, 1024)}
	rows := try.Must(conn.Exec(ctx, "SELECT bic, ban FROM stroppy_account").ReadAll())
	if len(rows) != 1 || len(rows[0].Rows) < 2 {
		try.Fail("the bare loop has no accounts")
	}
	for _, row := range rows[0].Rows {
		l.keys = append(l.keys, accountKey{row[0], try.Must(strconv.ParseUint(string(row[1]), 10, 64))})
	}
	for name, sql := range map[string]string{"update": loopUpdate, "leg": loopLeg, "begin": "BEGIN", "commit": "COMMIT", "rollback": "ROLLBACK"} {
		try.Must(conn.Prepare(ctx, name, sql, nil))
	}
	return l
}

func (l *pgconnLoop) Close() error { return l.conn.Close(context.Background()) }

// Once tries again what met another transaction (SQLSTATE 40001).
func (l *pgconnLoop) Once(ctx context.Context, n uint64) {
	from := l.source.IntN(len(l.keys))
	to := (from + 1 + l.source.IntN(len(l.keys)-1)) % len(l.keys)
	for {
		err := l.transfer(ctx, n+loopRun, min(from, to), max(from, to))
		if e := (*pgconn.PgError)(nil); !errors.As(err, &e) || e.Code != "40001" {
			try.Check(err)
			return
		}
		try.Must(l.conn.ExecPrepared(ctx, "rollback", nil, nil, nil).Close())
	}
}

func (l *pgconnLoop) number(n uint64) []byte {
	start := len(l.args)
	l.args = binary.BigEndian.AppendUint64(l.args, n)
	return l.args[start:]
}

func (l *pgconnLoop) transfer(ctx context.Context, id uint64, accounts ...int) error {
	l.args = l.args[:0]
	p := l.conn.StartPipeline(ctx)
	p.SendQueryPrepared("begin", nil, nil, nil)
	for i, account := range accounts {
		key, cents, ban := l.keys[account], []byte([]string{"-0.01", "0.01"}[i]), l.number(l.keys[account].ban)
		p.SendQueryPrepared("update", [][]byte{cents, l.number(id), key.bic, ban}, []int16{0, 1, 0, 1}, []int16{0})
		p.SendQueryPrepared("leg", [][]byte{l.number(id), l.number(uint64(i)), key.bic, ban, cents, key.bic, ban}, []int16{1, 1, 0, 1, 0, 0, 1}, []int16{0})
	}
	p.SendQueryPrepared("commit", nil, nil, nil)
	if err := p.Sync(); err != nil {
		return errors.Join(err, p.Close())
	}
	var failed error
	for {
		results, err := p.GetResults()
		switch r := results.(type) {
		case *pgconn.ResultReader:
			for r.NextRow() {
				_ = r.Values()
			}
			_, err = r.Close()
		case *pgconn.PipelineSync:
			return errors.Join(failed, p.Close())
		}
		if failed = errors.Join(failed, err); err != nil && l.conn.IsClosed() {
			return failed
		}
	}
}
