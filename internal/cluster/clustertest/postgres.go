package clustertest

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
)

// PaidTable creates the table of the payments on PostgreSQL.
const PaidTable = "CREATE TABLE IF NOT EXISTS paid (id bigint PRIMARY KEY)"

// pgTeller inserts numbers, one per transaction.
type pgTeller struct{ *pgconn.PgConn }

func (t pgTeller) Pay(ctx context.Context, id string) error {
	_, err := t.Exec(ctx, "INSERT INTO paid VALUES ("+id+")").ReadAll()
	return err
}

func (t pgTeller) Close() {
	const limit = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = t.PgConn.Close(ctx)
}

// OnPostgreSQL sets how the payments of a kind of PostgreSQL cluster are made and read.
func OnPostgreSQL(k Kind) Kind {
	k.Prepare = func(ctx context.Context, c cluster.Local) error {
		return wait.Retry(ctx, func() error { // a busy machine may not answer in the second that the URL allows
			_, err := Execute(ctx, c.URL(), PaidTable)
			return err
		})
	}
	k.Teller = func(ctx context.Context, c cluster.Local, _, _ int) (Teller, error) {
		conn, err := pgconn.Connect(ctx, c.URL())
		return pgTeller{conn}, err
	}
	k.Holds = func(ctx context.Context, c cluster.Local, node int) (map[string]string, error) {
		rows, err := Execute(ctx, c.NodeURL(node), "SELECT id FROM paid")
		held := map[string]string{}
		for _, id := range rows {
			held[string(id)] = ""
		}
		return held, err
	}
	return k
}

// Execute runs statements on PostgreSQL and returns the first column of the last result.
func Execute(ctx context.Context, url, sql string) ([][]byte, error) {
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var column [][]byte
	for _, row := range results[len(results)-1].Rows {
		column = append(column, row[0])
	}
	return column, nil
}
