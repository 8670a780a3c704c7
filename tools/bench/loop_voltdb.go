package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/VoltDB/voltdb-client-go/voltdbclient"

	"stroppy/internal/cluster"
	voltdbcluster "stroppy/internal/cluster/voltdb"
	"stroppy/internal/db/voltdb"
)

// voltdb measures one node of VoltDB beside bare loops over its own client library:
// transfers one at a time on a connection, and the key-value profile with many calls under
// way on one.
func (s *suite) voltdb() error {
	c, err := voltdbcluster.Starter(voltdb.Hosts)(s.ctx, cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Params: url.Values{"jars": {os.Getenv(voltdbcluster.Variable)}}})
	if missing := (cluster.MissingError{}); errors.As(err, &missing) {
		fmt.Fprintln(os.Stderr, "bench: skipped engine: voltdb:", err)
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = c.Stop() }()
	address, _, _ := strings.Cut(c.URL(), "?")
	if err := s.besideLoop("voltdb", c.URL(), []string{"--overdraft-share=0"}, func(_ context.Context, client int) (loop, error) {
		return newVoltTransfers(address, client)
	}); err != nil {
		return err
	}
	return s.voltdbKV(c.URL(), address)
}

// outstanding is how many calls both sides have under way on one connection.
const outstanding = 200

func (s *suite) voltdbKV(url, address string) error {
	args := []string{"--db=" + url, "--clients=1", fmt.Sprintf("--in-flight=%d", outstanding)}
	return s.besideReads("voltdb", "the library's asynchronous loop", 1, args, func(context.Context, int) (loop, error) { return newVoltReads(address) })
}

// voltRows calls a procedure and returns its rows. The library reports a call that failed
// in the status of its answer.
func voltRows(conn *voltdbclient.Conn, procedure string, args ...driver.Value) (*voltdbclient.VoltRows, error) {
	answer, err := conn.Query(procedure, args)
	if err != nil {
		return nil, err
	}
	rows := answer.(*voltdbclient.VoltRows)
	if rows.GetStatus() != voltdbclient.Success {
		return nil, fmt.Errorf("call %s: %s", procedure, rows.GetStatusString())
	}
	return rows, nil
}

// voltProcedures finds the procedures whose names begin so: what follows is a digest.
func voltProcedures(conn *voltdbclient.Conn, prefixes ...string) ([]string, error) {
	rows, err := voltRows(conn, "@SystemCatalog", "PROCEDURES")
	if err != nil {
		return nil, err
	}
	found := make([]string, len(prefixes))
	for rows.AdvanceRow() {
		name, err := rows.GetString(2)
		if err != nil {
			return nil, err
		}
		for i, prefix := range prefixes {
			if strings.HasPrefix(name.(string), prefix) {
				found[i] = name.(string)
			}
		}
	}
	if i := slices.Index(found, ""); i >= 0 {
		return nil, fmt.Errorf("the server has no procedure %s…", prefixes[i])
	}
	return found, nil
}

// voltTransfers transfers a cent between two accounts of the bank, by the procedure of
// ours.
type voltTransfers struct {
	conn     *voltdbclient.Conn
	transfer string
	source   *rand.Rand
	ids      []string
}

func newVoltTransfers(address string, client int) (loop, error) {
	conn, err := voltdbclient.OpenConn(address)
	if err != nil {
		return nil, err
	}
	l := &voltTransfers{conn: conn, source: rand.New(rand.NewPCG(uint64(client), 1))}
	names, err := voltProcedures(conn, "stroppy_account_p_look2_change2_add1_")
	if err != nil {
		return nil, err
	}
	l.transfer = names[0]
	rows, err := voltRows(conn, "@AdHoc", "SELECT id FROM stroppy_account")
	if err != nil {
		return nil, err
	}
	for rows.AdvanceRow() {
		id, err := rows.GetString(0)
		if err != nil {
			return nil, err
		}
		l.ids = append(l.ids, id.(string))
	}
	return l, nil
}

func (l *voltTransfers) Close() error { return l.conn.Close() }

func (l *voltTransfers) Once(_ context.Context, n uint64) error {
	from := l.source.IntN(len(l.ids))
	to := (from + 1 + l.source.IntN(len(l.ids)-1)) % len(l.ids)
	id, accounts, amounts := int64(n+loopRun), [...]string{l.ids[from], l.ids[to]}, [...]string{"-0.01", "0.01"}
	args := []driver.Value{"0.01", amounts[0], accounts[0], amounts[1], accounts[1]} // is so much there?
	for i, a := range accounts {
		args = append(args, amounts[i], int64(1), id, a)
	}
	args = append(args, id, amounts[0], id, accounts[0], id, amounts[1], accounts[1]) // the legs
	rows, err := voltRows(l.conn, l.transfer, args...)
	if err != nil {
		return err
	}
	for range accounts {
		if !rows.AdvanceRow() {
			return errors.New("the transfer returned no row")
		}
		if _, err := rows.GetBigInt(1); err != nil {
			return err
		}
		rows.AdvanceTable()
	}
	return nil
}

// voltString is the type of a column of strings in the protocol, which the library does not
// name; an update's answer is one of numbers.
const voltString = 9

// voltReads reads and writes records with so many calls under way, as the library has it:
// one goroutine sends, and the library's own takes the answers.
type voltReads struct {
	conn         *voltdbclient.Conn
	read, update string
	source       *rand.Rand
	keys         []string
	value        string
	free         chan struct{}
	failed       chan error
}

func newVoltReads(address string) (loop, error) {
	conn, err := voltdbclient.OpenConn(address)
	if err != nil {
		return nil, err
	}
	names, err := voltProcedures(conn, "stroppy_kv_p_find1_", "stroppy_kv_p_change1_")
	if err != nil {
		return nil, err
	}
	l := &voltReads{conn: conn, read: names[0], update: names[1], source: rand.New(rand.NewPCG(1, 1)), free: make(chan struct{}, outstanding), failed: make(chan error, 1)}
	rows, err := voltRows(conn, "@AdHoc", "SELECT id, record_value FROM stroppy_kv LIMIT 10000")
	if err != nil {
		return nil, err
	}
	for rows.AdvanceRow() {
		key, wrong := rows.GetString(0)
		value, wrongToo := rows.GetString(1)
		if err := errors.Join(wrong, wrongToo); err != nil {
			return nil, err
		}
		l.keys, l.value = append(l.keys, key.(string)), value.(string)
	}
	return l, nil
}

func (l *voltReads) Close() error {
	for range outstanding {
		l.free <- struct{}{}
	}
	return l.conn.Close()
}

func (l *voltReads) Once(ctx context.Context, _ uint64) error {
	select {
	case l.free <- struct{}{}:
	case err := <-l.failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	key := l.keys[l.source.IntN(len(l.keys))]
	if l.source.IntN(10) == 0 {
		l.conn.QueryAsync(l, l.update, []driver.Value{l.value, key})
	} else {
		l.conn.QueryAsync(l, l.read, []driver.Value{key})
	}
	return nil
}

// ConsumeRows implements voltdbclient.AsyncResponseConsumer.
func (l *voltReads) ConsumeRows(answer driver.Rows) {
	rows := answer.(voltdbclient.VoltRows)
	if rows.GetStatus() != voltdbclient.Success {
		l.ConsumeError(errors.New(rows.GetStatusString()))
		return
	}
	if rows.AdvanceRow() {
		if _, err := rows.GetString(0); err != nil && rows.ColumnTypes()[0] == voltString {
			l.ConsumeError(err)
			return
		}
	}
	<-l.free
}

// ConsumeResult implements voltdbclient.AsyncResponseConsumer.
func (l *voltReads) ConsumeResult(driver.Result) { <-l.free }

// ConsumeError implements voltdbclient.AsyncResponseConsumer.
func (l *voltReads) ConsumeError(err error) {
	select {
	case l.failed <- err:
	default:
	}
	<-l.free
}
