package infinisql

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// session is one connection of the PostgreSQL protocol. It sends statements as simple queries, one by one. InfiniSQL
// does not answer Parse. It ends a connection if a second message arrives before it has answered the first.
type session struct {
	database *Database
	conn     *pgconn.PgConn // nil: broken
	wire.Deadlines
	state wire.State
	begun bool // BEGIN was sent: the transaction has written
	read  bool // the transaction has read after that

	text   []byte     // of the statement being sent
	values []db.Value // handed out since Begin
	result db.Result  // of a call
}

var (
	_ db.RecordSession    = (*session)(nil)
	_ db.ProcedureSession = (*session)(nil)
)

const (
	opBegin  = "begin a transaction on InfiniSQL"
	opCommit = "commit on InfiniSQL"
	opRead   = "read from InfiniSQL"
	opWrite  = "write to InfiniSQL"
)

// connect logs in. The login is also refused if a restart has lost the user.
func (d *Database) connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, d.pg.Copy())
	if err == nil {
		return conn, nil
	}
	op := "connect to InfiniSQL at " + d.config.sql
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return nil, &db.Error{Class: classify(e.Code, wire.Before), Code: e.Code, Op: op,
			Err: db.MessageError{Text: wire.WrongUser.Text(e.Message, ""), Cause: err}}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, &db.Error{Class: db.Unavailable, Op: op, Err: db.MessageError{Text: reason(err) + ": " + db.CheckServer, Cause: err}}
}

// RecordSession implements db.Records.
func (d *Database) RecordSession(ctx context.Context, options db.SessionOptions) (db.RecordSession, error) {
	return d.session(ctx, options.Isolation)
}

// ProcedureSession implements db.Procedures.
func (d *Database) ProcedureSession(ctx context.Context, options db.SessionOptions) (db.ProcedureSession, error) {
	return d.session(ctx, options.Isolation)
}

func (d *Database) session(ctx context.Context, isolation string) (*session, error) {
	if _, err := d.Claim(isolation); err != nil {
		return nil, err
	}
	s := &session{database: d}
	return s, s.Reset(ctx)
}

// Reset implements db.RecordSession.
func (s *session) Reset(ctx context.Context) error {
	s.drop()
	conn, err := s.database.connect(ctx)
	if err != nil {
		return err
	}
	s.conn, s.state = conn, wire.Idle
	s.Deadlines = wire.Deadlines{Conn: conn.Conn(), Limit: s.database.config.answer}
	return nil
}

// drop ends the connection without a farewell message.
func (s *session) drop() {
	if s.conn != nil {
		_ = s.conn.Conn().Close() // an error of an abandoned connection changes nothing
		s.Disarm()
	}
	s.conn = nil
}

// Close implements db.RecordSession. It rolls a transaction back first, because InfiniSQL keeps the locks of a
// transaction whose connection has ended.
func (s *session) Close() error {
	_ = s.Rollback(context.Background()) // an error does not matter any more
	if s.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Disarm()
	_ = s.conn.Close(ctx) // a courtesy
	s.conn = nil
	return nil
}

// exec sends one statement and reads its answer; row gets each of its rows, and may be nil.
func (s *session) exec(ctx context.Context, op, sql string, at wire.Phase, bounded bool, row func(values [][]byte) error) (tag string, err error) {
	if s.conn == nil {
		return "", wire.Broken(op)
	}
	if err := s.Arm(ctx, time.Now(), bounded); err != nil {
		s.drop()
		return "", wire.Lost(op, err, wire.Before)
	}
	answers := s.conn.Exec(context.Background(), sql) // Arm has set the time limit
	var kept error
	for answers.NextResult() {
		rows := answers.ResultReader()
		for rows.NextRow() {
			if row != nil && kept == nil {
				kept = row(rows.Values())
			}
		}
		done, err := rows.Close()
		if err == nil {
			tag = done.String()
		}
	}
	err = answers.Close()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return "", &db.Error{Class: classify(e.Code, at), Code: e.Code, Op: op, Err: db.MessageError{Text: e.Message, Cause: err}}
	}
	if err != nil {
		err = wire.Lost(op, s.Because(ctx, err), at)
		s.drop()
		return "", err
	}
	return tag, kept
}

// Begin implements db.RecordSession. BEGIN is sent with the first write.
func (s *session) Begin(context.Context, bool) error {
	if s.conn == nil || s.state != wire.Idle {
		return wire.Misuse(opBegin, s.conn == nil, s.state)
	}
	s.state, s.begun, s.read, s.values = wire.Open, false, false, s.values[:0]
	return nil
}

// Reserve implements db.RecordSession.
func (*session) Reserve(*db.Collection, db.Value) {}

// write sends one statement that writes, and returns how many records it found.
func (s *session) write(ctx context.Context, sql []byte, err error) (found int, _ error) {
	if s.conn == nil || s.state != wire.Open {
		return 0, wire.Misuse(opWrite, s.conn == nil, s.state)
	}
	s.text = sql
	if err == nil && !s.begun {
		_, err = s.exec(ctx, opBegin, "BEGIN", wire.Before, true, nil)
		s.begun = err == nil
	}
	var tag string
	if err == nil {
		tag, err = s.exec(ctx, opWrite, string(sql), wire.Before, true, nil)
	}
	if err != nil {
		_ = s.Rollback(ctx) // the first error is the one to report
		return 0, err
	}
	return affected(tag), nil
}

// Find implements db.RecordSession. Each id takes a round trip.
func (s *session) Find(ctx context.Context, c *db.Collection, ids []db.Value, out []db.Record) error {
	if s.conn == nil || s.state != wire.Open {
		return wire.Misuse(opRead, s.conn == nil, s.state)
	}
	s.read = s.begun
	for i := range ids {
		out[i] = db.Record{}
		err := s.find(ctx, c, ids[i], func(values []db.Value) error {
			start := len(s.values)
			s.values = append(s.values, values...)
			out[i] = db.Record{Found: true, Values: s.values[start:len(s.values):len(s.values)]}
			return nil
		})
		if err != nil {
			_ = s.Rollback(ctx) // the first error is the one to report
			return err
		}
	}
	return nil
}

// find reads a record. Before the first write the read is not part of the transaction.
func (s *session) find(ctx context.Context, c *db.Collection, id db.Value, record func(values []db.Value) error) error {
	text, err := appendValue(append(appendSelect(s.text[:0], c), " WHERE id = "...), c.ID, id, 0)
	if err != nil {
		return err
	}
	if !s.begun {
		text = append(text, noLock...)
	}
	s.text = text
	return s.query(ctx, c, true, record)
}

// noLock makes a query wait for no lock and take no lock. Otherwise a query outside a transaction that meets a lock
// would keep its own locks for ever.
const noLock = " NO LOCK"

// query sends the statement in text, which reads records.
func (s *session) query(ctx context.Context, c *db.Collection, bounded bool, record func(values []db.Value) error) error {
	columns := columnsOf(c)
	var values []db.Value
	_, err := s.exec(ctx, opRead, string(s.text), wire.Before, bounded, func(fields [][]byte) (err error) {
		if values, err = appendRow(values[:0], columns, fields); err == nil && c.List != "" {
			values, err = appendList(values[:len(values)-1], c, values[len(values)-1].Text)
		}
		if err == nil {
			err = record(values)
		}
		return err
	})
	return err
}

func appendSelect(dst []byte, c *db.Collection) []byte {
	dst = append(dst, "SELECT "...)
	for i, column := range columnsOf(c) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, column.name...)
	}
	return append(append(dst, " FROM "...), c.Name...)
}

// Insert implements db.RecordSession. The server gives the same error for an existing id and for a lock, so the error
// is of class Aborted.
func (s *session) Insert(ctx context.Context, c *db.Collection, records ...[]db.Value) error {
	for _, r := range records {
		text, err := appendInsert(s.text[:0], c, r)
		if _, err = s.write(ctx, text, err); err != nil {
			return err
		}
	}
	return nil
}

func appendInsert(dst []byte, c *db.Collection, record []db.Value) (_ []byte, err error) {
	dst = append(append(append(dst, "INSERT INTO "...), c.Name...), " VALUES ("...)
	for i, column := range columnsOf(c) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		value := db.Value{}
		if c.List != "" && i == c.Width() {
			value.Text = list.AppendEncode(nil, items(c).Encode(nil, record[i:]))
		} else {
			value = record[i]
		}
		if dst, err = appendValue(dst, column.kind, value, column.length); err != nil {
			return dst, err
		}
	}
	return append(dst, ')'), nil
}

// list encodes the list of a record as text.
var list = base64.StdEncoding

// items returns a collection whose records have only the list of c.
func items(c *db.Collection) *db.Collection { return &db.Collection{List: c.List, Items: c.Items} }

// appendList reads the list of a record.
func appendList(dst []db.Value, c *db.Collection, text []byte) ([]db.Value, error) {
	encoded, err := list.AppendDecode(nil, text)
	if err != nil {
		return dst, fmt.Errorf("read the list of a record of %s: %w", c.Name, err)
	}
	return items(c).Decode(dst, encoded), nil
}

// Update implements db.RecordSession. Each record takes a round trip.
func (s *session) Update(ctx context.Context, u *db.Update, ids, args []db.Value) (found int, err error) {
	for i := range ids {
		text, err := appendUpdate(s.text[:0], u, ids[i], args[i])
		if s.read {
			err = db.Fatalf(opWrite, "it loses the update of a record that its transaction has read: update first")
		}
		n, err := s.write(ctx, text, err)
		if err != nil {
			return 0, err
		}
		found += n
	}
	return found, nil
}

// appendUpdate writes an update of one field.
func appendUpdate(dst []byte, u *db.Update, id, arg db.Value) (_ []byte, err error) {
	changed := slices.Concat(u.Add, u.Set)
	if len(changed) != 1 || u.AtLeast != 0 {
		return dst, db.Fatalf(opWrite, "its SQL updates one field without a condition, and this update of %s does more: use another database", u.Collection.Name)
	}
	field := u.Collection.Fields[changed[0]-1]
	name := columnName(field)
	dst = append(append(append(dst, "UPDATE "...), u.Collection.Name...), " SET "...)
	dst = append(append(dst, name...), " = "...)
	if len(u.Add) > 0 {
		dst = append(append(dst, name...), " + "...)
	}
	if dst, err = appendValue(dst, field.Type, arg, textLength); err != nil {
		return dst, err
	}
	return appendValue(append(dst, " WHERE id = "...), u.Collection.ID, id, 0)
}

// FindAndUpdate implements db.RecordSession. It reads the record after the update.
func (s *session) FindAndUpdate(ctx context.Context, u *db.Update, id db.Value, args []db.Value) (before db.Record, err error) {
	if len(u.Add) != 1 {
		_, err := s.write(ctx, nil, db.Fatalf(opWrite, "it cannot return a field of %s as it was before: use another database", u.Collection.Name))
		return before, err
	}
	found, err := s.Update(ctx, u, []db.Value{id}, args)
	if err != nil || found == 0 {
		return before, err
	}
	var records [1]db.Record
	err = s.Find(ctx, u.Collection, []db.Value{id}, records[:])
	s.read = false // the server loses only the update of a record that was read first
	if err == nil && records[0].Found {
		before = records[0]
		before.Values[u.Add[0]].Int -= args[0].Int
	}
	return before, err
}

// Scan implements db.RecordSession.
func (s *session) Scan(ctx context.Context, c *db.Collection, from db.Value, limit int, record func(values []db.Value) error) error {
	if s.conn == nil || s.begun && s.state == wire.Open {
		return wire.Misuse(opRead, s.conn == nil, s.state)
	}
	if !from.Null {
		return db.Fatalf(opRead, "its SQL reads a collection as a whole")
	}
	s.text = append(appendSelect(s.text[:0], c), noLock...)
	err := s.query(ctx, c, false, func(values []db.Value) error {
		if err := record(values); err != nil {
			return err
		}
		if limit--; limit == 0 {
			return errEnough
		}
		return nil
	})
	if e, ok := errors.AsType[*db.Error](err); ok && e.Code == "42704" || err == errEnough {
		return nil // a restart has lost the table
	}
	return err
}

var errEnough = errors.New("as many as were asked for")

// affected returns the number at the end of a command tag, such as UPDATE 1.
func affected(tag string) int {
	n, err := strconv.Atoi(tag[strings.LastIndexByte(tag, ' ')+1:])
	if err != nil {
		return 0
	}
	return n
}

var errRolledBack = errors.New("the server rolled the transaction back")

// Commit implements db.RecordSession. If a transaction has failed before, InfiniSQL answers ROLLBACK.
func (s *session) Commit(ctx context.Context) error {
	if s.conn == nil || s.state != wire.Open {
		return wire.Misuse(opCommit, s.conn == nil, s.state)
	}
	if s.state = wire.Idle; !s.begun {
		return nil
	}
	tag, err := s.exec(ctx, opCommit, "COMMIT", wire.Committing, true, nil)
	var refused *db.Error
	switch {
	case errors.As(err, &refused) && refused.Code != "":
		refused.Class = db.Unknown // an error of COMMIT leaves the outcome unknown
		s.drop()
		return refused
	case err != nil:
		return err
	case tag != "COMMIT":
		return &db.Error{Class: db.Aborted, Op: opCommit, Err: errRolledBack}
	}
	return nil
}

// Rollback implements db.RecordSession.
func (s *session) Rollback(ctx context.Context) error {
	if s.conn == nil || s.state != wire.Open {
		return nil
	}
	if s.state = wire.Idle; !s.begun {
		return nil
	}
	_, err := s.exec(ctx, "roll back on InfiniSQL", "ROLLBACK", wire.Before, true, nil)
	if err != nil {
		s.drop()
	}
	return err
}

// Call implements db.ProcedureSession.
func (s *session) Call(ctx context.Context, p *db.Procedure, args []db.Value) (*db.Result, error) {
	const op = "call a procedure on InfiniSQL"
	if s.conn == nil || s.state != wire.Idle {
		return nil, wire.Misuse(op, s.conn == nil, s.state)
	}
	s.text = append(append(append(s.text[:0], "SELECT "...), p.Name...), " ("...)
	var err error
	for i, kind := range p.Params {
		if i > 0 {
			s.text = append(s.text, ", "...)
		}
		if s.text, err = appendValue(s.text, kind, args[i], 0); err != nil {
			return nil, err
		}
	}
	columns := make([]column, len(p.Columns))
	for i, kind := range p.Columns {
		columns[i].kind = kind
	}
	s.result = db.Result{Columns: len(columns), Values: s.result.Values[:0]}
	_, err = s.exec(ctx, op, string(append(s.text, ')')), wire.Committing, true, func(fields [][]byte) (err error) {
		s.result.Values, err = appendRow(s.result.Values, columns, fields)
		return err
	})
	return &s.result, err
}

// appendValue writes a value in the form of a statement. A text longer than most is refused, if most is not 0.
func appendValue(dst []byte, kind db.Type, v db.Value, most int) ([]byte, error) {
	if kind != db.Text {
		return strconv.AppendInt(dst, v.Int, 10), nil
	}
	if most > 0 && len(v.Text) > most {
		return dst, db.Fatalf(opWrite, "the text %q is longer than its column of %d characters", v.Text, most)
	}
	for _, b := range v.Text {
		if b < ' ' || b > '~' || b == '\'' || b == '\\' {
			return dst, db.Fatalf(opWrite, "the text %q has a character that cannot be written there", v.Text)
		}
	}
	return append(append(append(dst, '\''), v.Text...), '\''), nil
}

// appendRow reads the fields of a row as the columns of a statement.
func appendRow(dst []db.Value, columns []column, fields [][]byte) ([]db.Value, error) {
	if len(fields) != len(columns) {
		return dst, fmt.Errorf("a row of %d columns came, and %d were asked for", len(fields), len(columns))
	}
	for i, field := range fields {
		switch {
		case field == nil:
			dst = append(dst, db.Value{Null: true})
		case columns[i].kind == db.Text:
			dst = append(dst, db.Value{Text: bytes.Clone(bytes.TrimRight(field, " "))}) // spaces fill up its column
		default:
			n, err := strconv.ParseInt(string(field), 10, 64)
			if err != nil {
				return dst, fmt.Errorf("%q came for a whole number", field)
			}
			dst = append(dst, db.Value{Int: n})
		}
	}
	return dst, nil
}
