package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	infinisqlcluster "stroppy/internal/cluster/infinisql"
	"stroppy/internal/db/infinisql"
	"stroppy/tools/try"
)

// infinisql measures the transaction of tpcb on InfiniSQL beside a bare loop over pgconn that
// sends the same simple queries: by statements, and by the procedure.
func (s *suite) infinisql() {
	engine(s, "InfiniSQL", infinisqlcluster.Starter(infinisql.Prepare), nil, func(address string) {
		for mode, more := range map[string][]string{"interactive": nil, "procedure": {"--history=false"}} {
			args := slices.Concat([]string{"--db=" + address, "--mode=" + mode}, more)
			load := []string{"--scale=1", fmt.Sprintf("--ratio=%[1]d:%[1]d:%[1]d", infinisqlRows), "--count=1"}
			s.runWorkload("tpcb", slices.Concat(args, load)...)
			args = append(args, fmt.Sprintf("--clients=%d", loopClients))
			ours, bare := s.inTurn("tpcb", args, loopClients, func(ctx context.Context, client int) loop {
				return newSimpleLoop(ctx, address, client, mode == "procedure")
			})
			s.row("infinisql "+mode+": client CPU a transaction (a bare loop)", "%.1f µs", ours.cost, bare.cost, "≤ 1.30")
			s.row("infinisql "+mode+": transactions a second (a bare loop)", "%.0f", ours.rate, bare.rate, "")
		}
	})
}

// infinisqlRows are the rows of each of the three tables, so many that few transactions meet.
const infinisqlRows = 10_000

// simpleLoop makes the transaction of tpcb by simple queries.
type simpleLoop struct {
	conn      *pgconn.PgConn
	source    *rand.Rand
	procedure bool
}

func newSimpleLoop(ctx context.Context, address string, client int, procedure bool) loop {
	u := try.Must(url.Parse(address))
	u.Scheme, u.RawQuery = "postgres", "sslmode=disable"
	conn := try.Must(pgconn.Connect(ctx, u.String()))
	return &simpleLoop{conn: conn, source: rand.New(rand.NewPCG(uint64(client), 1)), procedure: procedure}
}

func (l *simpleLoop) Close() error { return l.conn.Close(context.Background()) }

// Once tries again what met another transaction.
func (l *simpleLoop) Once(_ context.Context, n uint64) {
	branch, teller, account := 1+l.source.IntN(infinisqlRows), 1+l.source.IntN(infinisqlRows), 1+l.source.IntN(infinisqlRows)
	teller, account = teller+infinisqlRows, account+2*infinisqlRows
	delta := l.source.IntN(10_001) - 5000
	update := "UPDATE stroppy_tpcb_counter SET balance = balance + %d WHERE id = %d"
	legs := strings.Repeat("A", 104) // as long as a list of three legs
	statements := []string{
		"BEGIN",
		fmt.Sprintf(update, delta, account),
		fmt.Sprintf("SELECT id, balance FROM stroppy_tpcb_counter WHERE id = %d", account),
		fmt.Sprintf(update, delta, teller),
		fmt.Sprintf(update, delta, branch),
		fmt.Sprintf("INSERT INTO stroppy_tpcb_history VALUES (%d, '%s')", -int64(n), legs),
		"COMMIT",
	}
	if l.procedure {
		statements = []string{fmt.Sprintf("SELECT PgbenchNoinsert (%d, %d, %d, %d)", delta, account, teller, branch)}
	}
	for {
		err := l.all(statements)
		if e := (*pgconn.PgError)(nil); !errors.As(err, &e) || e.Code != "42000" && e.Code != "55P03" && e.Code != "23000" {
			try.Check(err)
			return
		}
		if !l.procedure {
			try.Check(l.all([]string{"ROLLBACK"}))
		}
	}
}

func (l *simpleLoop) all(statements []string) error {
	for _, sql := range statements {
		answers := l.conn.Exec(context.Background(), sql)
		for answers.NextResult() {
			for rows := answers.ResultReader(); rows.NextRow(); {
				_ = rows.Values()
			}
		}
		if err := answers.Close(); err != nil {
			return err
		}
	}
	return nil
}
