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

	voltdbcluster "stroppy/internal/cluster/voltdb"
	"stroppy/internal/db/voltdb"
	"stroppy/tools/try"
)

// voltdb measures one node of VoltDB beside bare loops over its own client library:
// transfers one at a time on a connection, and the key-value profile with many calls under
// way on one.
func (s *suite) voltdb() {
	params := url.Values{"jars": {os.Getenv(voltdbcluster.Variable)}}
	engine(s, "voltdb", voltdbcluster.Starter(voltdb.Hosts), params, func(url string) {
		address, _, _ := strings.Cut(url, "?")
		s.besideLoop("voltdb", url, loopClients, "", []string{"--overdraft-share=0"}, func(_ context.Context, client int) loop {
			return newVoltTransfers(address, client)
		})
		args := []string{"--db=" + url, "--clients=1", fmt.Sprintf("--in-flight=%d", outstanding)}
		s.besideReads("voltdb", "the library's asynchronous loop", 1, args, func(context.Context, int) loop { return newVoltReads(address) })
	})
}

// outstanding is how many calls both sides have under way on one connection.
const outstanding = 200

// voltRows calls a procedure and returns its rows. The library reports a call that failed
// in the status of its answer.
func voltRows(conn *voltdbclient.Conn, procedure string, args ...driver.Value) *voltdbclient.VoltRows {
	answer := try.Must(conn.Query(procedure, args))
	rows := answer.(*voltdbclient.VoltRows)
	if rows.GetStatus() != voltdbclient.Success {
		try.Fail("call %s: %s", procedure, rows.GetStatusString())
	}
	return rows
}

// voltProcedures finds the procedures whose names begin so: what follows is a digest.
func voltProcedures(conn *voltdbclient.Conn, prefixes ...string) []string {
	rows := voltRows(conn, "@SystemCatalog", "PROCEDURES")
	found := make([]string, len(prefixes))
	for rows.AdvanceRow() {
		name := try.Must(rows.GetString(2))
		for i, prefix := range prefixes {
			if strings.HasPrefix(name.(string), prefix) {
				found[i] = name.(string)
			}
		}
	}
	if i := slices.Index(found, ""); i >= 0 {
		try.Fail("the server has no procedure %s…", prefixes[i])
	}
	return found
}

// voltTransfers transfers a cent between two accounts of the bank, by the procedure of
// ours.
type voltTransfers struct {
	conn     *voltdbclient.Conn
	transfer string
	source   *rand.Rand
	ids      []string
}

func newVoltTransfers(address string, client int) loop {
	conn := try.Must(voltdbclient.OpenConn(address))
	l := &voltTransfers{conn: conn, source: rand.New(rand.NewPCG(uint64(client), 1))}
	names := voltProcedures(conn, "stroppy_account_p_look2_change2_add1_")
	l.transfer = names[0]
	rows := voltRows(conn, "@AdHoc", "SELECT id FROM stroppy_account")
	for rows.AdvanceRow() {
		id := try.Must(rows.GetString(0))
		l.ids = append(l.ids, id.(string))
	}
	return l
}

func (l *voltTransfers) Close() error { return l.conn.Close() }

func (l *voltTransfers) Once(_ context.Context, n uint64) {
	from := l.source.IntN(len(l.ids))
	to := (from + 1 + l.source.IntN(len(l.ids)-1)) % len(l.ids)
	id, accounts, amounts := int64(n+loopRun), [...]string{l.ids[from], l.ids[to]}, [...]string{"-0.01", "0.01"}
	args := []driver.Value{"0.01", amounts[0], accounts[0], amounts[1], accounts[1]} // is so much there?
	for i, a := range accounts {
		args = append(args, amounts[i], int64(1), id, a)
	}
	args = append(args, id, amounts[0], id, accounts[0], id, amounts[1], accounts[1]) // the legs
	rows := voltRows(l.conn, l.transfer, args...)
	for range accounts {
		if !rows.AdvanceRow() {
			try.Fail("the transfer returned no row")
		}
		try.Must(rows.GetBigInt(1))
		rows.AdvanceTable()
	}
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

func newVoltReads(address string) loop {
	conn := try.Must(voltdbclient.OpenConn(address))
	names := voltProcedures(conn, "stroppy_kv_p_find1_", "stroppy_kv_p_change1_")
	l := &voltReads{conn: conn, read: names[0], update: names[1], source: rand.New(rand.NewPCG(1, 1)), free: make(chan struct{}, outstanding), failed: make(chan error, 1)}
	rows := voltRows(conn, "@AdHoc", "SELECT id, record_value FROM stroppy_kv LIMIT 10000")
	for rows.AdvanceRow() {
		key, wrong := rows.GetString(0)
		value, wrongToo := rows.GetString(1)
		try.Check(errors.Join(wrong, wrongToo))
		l.keys, l.value = append(l.keys, key.(string)), value.(string)
	}
	return l
}

func (l *voltReads) Close() error {
	for range outstanding {
		l.free <- struct{}{}
	}
	return l.conn.Close()
}

func (l *voltReads) Once(ctx context.Context, _ uint64) {
	select {
	case l.free <- struct{}{}:
	case err := <-l.failed:
		try.Check(err)
	case <-ctx.Done():
		try.Check(context.Cause(ctx))
	}
	key := l.keys[l.source.IntN(len(l.keys))]
	if l.source.IntN(10) == 0 {
		l.conn.QueryAsync(l, l.update, []driver.Value{l.value, key})
	} else {
		l.conn.QueryAsync(l, l.read, []driver.Value{key})
	}
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
