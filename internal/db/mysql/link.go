package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	client "github.com/go-sql-driver/mysql"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

type link struct {
	*counted
	conn     driver.Conn
	host     int
	product  product
	used     time.Time // when it was last known to work
	prepared map[*db.Statement]*prepared
}

// never is the context for all calls of the library. Deadlines on the connection below end them.
var never = context.Background()

// exec runs a text of one or more statements without rows.
func (l *link) exec(text string) (driver.Result, error) {
	return l.conn.(driver.ExecerContext).ExecContext(never, text, nil)
}

// query runs a text of one or more statements and returns the first result with rows.
func (l *link) query(text string) (driver.Rows, error) {
	return l.conn.(driver.QueryerContext).QueryContext(never, text, nil)
}

// drop closes the connection without a message.
func (l *link) drop() {
	_ = l.socket.Close() // an error of a connection that is given up changes nothing
	_ = l.conn.Close()   // its message cannot reach the server
	l.Disarm()
}

// end closes the connection with a message to the server.
func (l *link) end() {
	l.Disarm()
	if l.SetDeadline(time.Now().Add(time.Second)) == nil {
		_ = l.conn.Close() // a courtesy: the server notices the end of the connection too
	}
	l.drop()
}

// connect opens a connection to the first host that answers and accepts writes, starting with the given one. It sets
// the isolation unless that is empty.
func (d *Database) connect(ctx context.Context, op, isolation string, first int) (*link, error) {
	hosts := d.address.hosts
	var failed []*db.Error
	for i := range hosts {
		host := (first + i) % len(hosts)
		l, err := d.dial(ctx, op, host)
		if err == nil {
			if err = d.prepareLink(ctx, op, isolation, l); err == nil {
				return l, nil
			}
			l.drop()
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	all := &db.Error{Class: db.Fatal, Code: failed[0].Code, Op: op, Err: failed[0].Err}
	texts := make([]string, len(failed))
	for i, err := range failed {
		texts[i] = hosts[(first+i)%len(hosts)].Addr + ": " + err.Err.Error()
		if err.Class != db.Fatal { // it may be the next to answer
			all.Class = db.Unavailable
		}
	}
	if len(failed) > 1 {
		all.Err = db.MessageError{Text: strings.Join(texts, "; "), Cause: failed[0].Err}
	}
	return nil, all
}

func (d *Database) dial(ctx context.Context, op string, host int) (*link, *db.Error) {
	ctx, cancel := context.WithTimeout(ctx, d.address.connect)
	defer cancel()
	config := d.address.hosts[host].Clone()
	var w *counted
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := wire.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		w = &counted{socket: conn.(socket), Deadlines: wire.Deadlines{Conn: conn, Limit: d.limit}}
		return w, nil
	}
	connector, err := client.NewConnector(config)
	if err != nil {
		return nil, db.Fatalf(op, "%w", err)
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		_, certified := usesTLS(config)
		return nil, connectError(ctx, op, d.server.product, certified, err)
	}
	return &link{counted: w, conn: conn, host: host, product: d.server.product, used: time.Now(), prepared: make(map[*db.Statement]*prepared)}, nil
}

// prepareLink prepares a new connection for sessions.
func (d *Database) prepareLink(ctx context.Context, op, isolation string, l *link) *db.Error {
	if err := l.arm(ctx, true); err != nil {
		return wire.Lost(op, err, wire.Before)
	}
	var err error
	if len(d.address.hosts) > 1 {
		err = l.takesWrites(d.server.galera)
	}
	if err == nil && d.server.grouped() {
		err = l.catchUpGroup(d.server.variables[consistency])
	}
	if err == nil && isolation != "" {
		_, err = l.exec("SET SESSION TRANSACTION ISOLATION LEVEL " + strings.ToUpper(isolation))
	}
	if err != nil {
		return l.failure(ctx, op, err, wire.Before, l.out)
	}
	return nil
}

// These errors are reasons to skip a host.
var (
	errReadOnly = errors.New("it is read-only")
	errNotReady = errors.New("it is outside the primary component of its cluster")
	errApart    = errors.New("it sees no majority of its group")
)

// takesWrites returns an error if the server accepts no writes. The values of the variable differ: 0 or 1, OFF or ON,
// and in MariaDB 12 one of several words.
func (l *link) takesWrites(galera bool) error {
	row, err := l.row("SELECT @@GLOBAL.read_only")
	if err != nil {
		return err
	}
	if value := strings.ToUpper(row[0]); value != "0" && value != "OFF" {
		return errReadOnly
	}
	if !galera {
		return nil
	}
	if row, err = l.row("SHOW GLOBAL STATUS LIKE 'wsrep_ready'"); err != nil {
		return err
	}
	if len(row) != 2 || row[1] != "ON" {
		return errNotReady
	}
	return l.catchUp()
}

// catchUp waits until the node has applied everything that its cluster has committed. So a new session sees the work
// of an older one on another node. Later transactions of the session follow the server's setting
// (https://galeracluster.com/library/documentation/mysql-wsrep-options.html#wsrep-sync-wait).
func (l *link) catchUp() error {
	row, err := l.row("SELECT @@SESSION.wsrep_sync_wait")
	if err != nil {
		return err
	}
	if _, err := l.exec("SET SESSION wsrep_sync_wait = 1"); err != nil {
		return err
	}
	if _, err := l.row("SELECT 1"); err != nil {
		return err
	}
	_, err = l.exec("SET SESSION wsrep_sync_wait = " + row[0])
	return err
}

// consistency is the variable that determines what a transaction of Group Replication waits for.
const consistency = "group_replication_consistency"

// catchUpGroup is catchUp for a member of Group Replication. A transaction at level BEFORE waits for all earlier
// commits of the group
// (https://dev.mysql.com/doc/refman/8.4/en/group-replication-configuring-consistency-guarantees.html). own is the
// session's normal level. A member without a majority would wait for one, and a member that has left its group does
// not wait. Versions before 8.0.14 have no levels.
func (l *link) catchUpGroup(own string) error {
	if own == "" {
		return nil
	}
	row, err := l.row("SELECT COALESCE(SUM(MEMBER_ID = @@GLOBAL.server_uuid AND MEMBER_STATE = 'ONLINE'), 0), COALESCE(2 * SUM(MEMBER_STATE <> 'UNREACHABLE') > COUNT(*), 0) " +
		"FROM performance_schema.replication_group_members")
	if denied, ok := errors.AsType[*client.MySQLError](err); ok && denied.Number == 1142 /* ER_TABLEACCESS_DENIED_ERROR */ {
		row, err = []string{"1", "1"}, nil
	}
	switch {
	case err != nil:
		return err
	case row[0] != "1" || row[1] != "1":
		return errApart
	}
	_, err = l.exec("SET SESSION " + consistency + " = 'BEFORE'; START TRANSACTION READ ONLY; COMMIT; SET SESSION " + consistency + " = '" + own + "'")
	return err
}

// row runs a query and returns its only row as text.
func (l *link) row(text string) ([]string, error) {
	rows, err := l.table(text)
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("%s did not return one row", text)
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// table runs a query and returns its rows as text. NULL becomes an empty string.
func (l *link) table(text string) ([][]string, error) {
	rows, err := l.query(text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	values := make([]driver.Value, len(rows.Columns()))
	var table [][]string
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return table, nil
		case err != nil:
			return nil, err
		}
		row := make([]string, len(values))
		for i, v := range values {
			switch v := v.(type) {
			case nil:
			case []byte:
				row[i] = string(v)
			default:
				row[i] = fmt.Sprint(v)
			}
		}
		table = append(table, row)
	}
}

// failure returns the error for a failed call of the library. out is the number of bytes sent before the call: if it
// has not changed, nothing was done.
func (l *link) failure(ctx context.Context, op string, err error, at wire.Phase, out int64) *db.Error {
	if e, ok := errors.AsType[*client.MySQLError](err); ok {
		return reported(op, l.product, e, at)
	}
	if l.out == out {
		at = wire.Before
	}
	switch {
	case errors.Is(err, client.ErrPktTooLarge):
		return db.Fatalf(op, "the statements of the transaction are longer than max_allowed_packet: raise it, or use --mode interactive")
	case errors.Is(err, errReadOnly), errors.Is(err, errNotReady), errors.Is(err, errApart), errors.Is(err, errUnanswered), errors.Is(err, errUnasked):
		return wire.Lost(op, err, at)
	}
	if l.broken != nil {
		err = l.broken
	}
	return wire.Lost(op, l.Because(ctx, err), at)
}

// socket lets the client library check whether the server has ended an idle connection.
type socket interface {
	net.Conn
	syscall.Conn
}

// counted is the connection below the client library. It knows what the library does not show: the number of bytes
// sent, the error that ended the connection, and the deadline. The library's own time-outs and its goroutine for
// contexts are not used.
type counted struct {
	socket // the same as in Deadlines
	wire.Deadlines

	out      int64  // bytes that the kernel has taken
	broken   error  // the first error of the connection
	greeting []byte // what the server said first, its beginning
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.socket.Read(p)
	if c.out == 0 && len(c.greeting) < greetingBytes {
		c.greeting = append(c.greeting, p[:min(n, greetingBytes-len(c.greeting))]...)
	}
	c.note(err)
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.socket.Write(p)
	c.out += int64(n)
	c.note(err)
	return n, err
}

func (c *counted) note(err error) {
	if err != nil && c.broken == nil {
		c.broken = err
	}
}

// arm sets the deadline of the next answer: the end of ctx and, if bounded, the limit.
func (c *counted) arm(ctx context.Context, bounded bool) error {
	return c.Arm(ctx, time.Now(), bounded)
}
