package voltdb

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// schema holds the declared collections of a workload and the known procedures for them.
type schema struct {
	mu         sync.Mutex
	declared   []*db.Collection
	procedures map[string]bool // the names of procedures that are known to exist
}

// Declare implements db.Declarer. Transactions on these collections are stored procedures. Other
// collections are read and written by statements.
func (d *Database) Declare(collections ...*db.Collection) error {
	for _, c := range collections {
		if c.List != "" && (len(c.Fields) > 0 || c.From == nil) {
			return db.Fatalf("declare the collection "+c.Name, "a record with a list has no other fields in VoltDB, and its items copy one of another collection")
		}
	}
	d.schema.mu.Lock()
	defer d.schema.mu.Unlock()
	d.schema.declared = collections
	return nil
}

// isDeclared compares names, because a collection may be described twice.
func (d *Database) isDeclared(c *db.Collection) bool {
	d.schema.mu.Lock()
	defer d.schema.mu.Unlock()
	return slices.ContainsFunc(d.schema.declared, func(other *db.Collection) bool { return other.Name == c.Name })
}

// Exists implements db.Records.
func (d *Database) Exists(ctx context.Context, c *db.Collection) (bool, error) {
	names, err := d.catalog(ctx, "TABLES")
	return slices.Contains(names, strings.ToLower(c.Name)), err
}

// Create implements db.Records. It makes all declared collections at once, because each change of the schema takes some
// tenths of a second.
func (d *Database) Create(ctx context.Context, c *db.Collection) error {
	names, err := d.catalog(ctx, "TABLES")
	if err != nil || slices.Contains(names, strings.ToLower(c.Name)) {
		return err
	}
	if !d.isDeclared(c) {
		return d.exec(ctx, createTable(c, false)...)
	}
	var all []string
	for _, c := range d.schema.declared {
		if !slices.Contains(names, strings.ToLower(c.Name)) {
			all = append(all, createTable(c, true)...)
		}
	}
	return d.exec(ctx, all...)
}

// Drop implements db.Records. It first drops all procedures that use the collection, including the procedures of other
// versions of this program.
func (d *Database) Drop(ctx context.Context, c *db.Collection) error {
	there, err := d.Exists(ctx, c)
	if err != nil || !there {
		return err
	}
	var drop []string
	if d.isDeclared(c) {
		names, err := d.catalog(ctx, "PROCEDURES")
		if err != nil {
			return err
		}
		for _, name := range names {
			own := func(c *db.Collection) bool { return strings.HasPrefix(name, strings.ToLower(c.Name)+"_") }
			if !strings.Contains(name, ".") && slices.ContainsFunc(d.schema.declared, own) { // TABLE.insert goes with its table
				drop = append(drop, "DROP PROCEDURE "+name)
			}
		}
	}
	if c.List != "" {
		drop = append(drop, "DROP TABLE "+listTable(c))
	}
	d.forget()
	return d.exec(ctx, append(drop, "DROP TABLE "+c.Name)...)
}

// forget forgets which procedures exist.
func (d *Database) forget() {
	d.schema.mu.Lock()
	defer d.schema.mu.Unlock()
	clear(d.schema.procedures)
}

// define makes the missing procedures of shapes, in one change of the schema.
func (d *Database) define(ctx context.Context, shapes ...*shape) error {
	d.schema.mu.Lock()
	defer d.schema.mu.Unlock()
	missing := func() (statements []string) {
		for _, s := range shapes {
			if s.name != "" && !d.schema.procedures[strings.ToLower(s.name)] && !slices.Contains(statements, s.create) {
				statements = append(statements, s.create)
			}
		}
		return statements
	}
	look := func() error {
		names, err := d.catalog(ctx, "PROCEDURES")
		for _, name := range names {
			d.schema.procedures[name] = true
		}
		return err
	}
	if len(missing()) == 0 {
		return nil
	}
	if err := look(); err != nil {
		return err
	}
	failed := d.exec(ctx, missing()...)
	if failed == nil {
		for _, s := range shapes {
			d.schema.procedures[strings.ToLower(s.name)] = true
		}
		return nil
	}
	// Another process may have made the procedures at the same time.
	if err := look(); err == nil && len(missing()) == 0 {
		return nil
	}
	return failed
}

// Rehearse implements db.Rehearser.
func (d *Database) Rehearse(ctx context.Context, transactions func(s db.RecordSession) error) error {
	s := &recordSession{session: &session{db: d}, rehearsal: true}
	if err := transactions(s); err != nil {
		return err
	}
	return d.define(ctx, s.shapes...)
}

// RecordSession implements db.Records.
func (d *Database) RecordSession(ctx context.Context, options db.SessionOptions) (db.RecordSession, error) {
	if _, err := d.Claim(options.Isolation); err != nil {
		return nil, err
	}
	s, err := d.session(ctx)
	if err != nil {
		return nil, err
	}
	return &recordSession{session: s, loading: options.Loading}, nil
}

// recordSession is a db.RecordSession. Each read of a transaction is a call of its own. All writes are one call, the
// commit, which first compares the records that were read.
//
// If the transaction changes a record without having read it, the commit changes it. The commit then also fills in the
// values before the change.
type recordSession struct {
	*session
	loading   bool // each write is a call of its own, at once
	rehearsal bool // nothing is sent

	open, readOnly, scanned bool // of the transaction; scanned: it has
	calls                   int  // calls that have read
	held                    []held
	late                    []late
	inserts                 []insert

	values []db.Value // since Begin
	texts  []byte
	ids    []db.Value // the ids that Find requests

	steps  []step
	args   []db.Value
	home   db.Value // the value that the partition of the first step depends on
	alone  bool     // all steps are in that partition
	shapes []*shape
}

// held is a record that the transaction has read.
type held struct {
	c       *db.Collection
	there   bool // when it was read
	found   bool // with what the transaction has written
	written bool
	was     []db.Value // the values when it was read; the id alone if it is not there
	now     []db.Value
}

// late is a change of a record that was not read.
type late struct {
	u      *db.Update
	id     db.Value
	args   []db.Value
	before []db.Value // filled in by the commit; nil: not requested
}

type insert struct {
	c      *db.Collection
	values []db.Value
}

var (
	errUnique = &db.Error{Class: db.Constraint, Constraint: db.UniqueKey, Op: "insert a record", Err: errors.New("its id is there already")}
	errBelow  = &db.Error{Class: db.Constraint, Constraint: db.CheckFailed, Op: "write a record", Err: errors.New("a field would be below zero")}
	errAbsent = &db.Error{Class: db.Constraint, Constraint: db.ForeignKey, Op: "change a record", Err: errors.New("it is not there")}
)

// Begin implements db.RecordSession; nothing is sent.
func (s *recordSession) Begin(_ context.Context, readOnly bool) error {
	if s.broken || s.closed {
		return wire.Broken("begin")
	}
	s.open, s.readOnly, s.scanned, s.calls = true, readOnly, false, 0
	s.held, s.late, s.inserts = s.held[:0], s.late[:0], s.inserts[:0]
	s.values, s.texts = s.values[:0], s.texts[:0]
	return nil
}

// Reserve implements db.RecordSession. It does nothing, because an insert looks for its id by itself.
func (s *recordSession) Reserve(*db.Collection, db.Value) {}

// Rollback implements db.RecordSession. No write was sent.
func (s *recordSession) Rollback(context.Context) error {
	s.open = false
	return nil
}

// end gives up the transaction because of err.
func (s *recordSession) end(err error) error {
	s.open = false
	return err
}

// take makes room for values that are valid until the next Begin.
func (s *recordSession) take(n int) []db.Value {
	from := len(s.values)
	s.values = slices.Grow(s.values, n)[:from+n]
	return s.values[from : from+n : from+n]
}

// keep copies the text of a value.
func (s *recordSession) keep(v db.Value) db.Value {
	if v.Text != nil {
		from := len(s.texts)
		s.texts = append(s.texts, v.Text...)
		v.Text = s.texts[from:len(s.texts):len(s.texts)]
	}
	return v
}

func (s *recordSession) copy(values []db.Value) []db.Value {
	kept := s.take(len(values))
	for i, v := range values {
		kept[i] = s.keep(v)
	}
	return kept
}

// known returns the record with an id if the transaction has read it.
func (s *recordSession) known(c *db.Collection, id *db.Value) *held {
	for i := range s.held {
		if h := &s.held[i]; h.c == c && sameID(c, &h.was[db.ID], id) {
			return h
		}
	}
	return nil
}

func sameID(c *db.Collection, a, b *db.Value) bool {
	if c.ID == db.Text {
		return string(a.Text) == string(b.Text)
	}
	return a.Int == b.Int
}

// Assume implements db.Assumer.
func (s *recordSession) Assume(c *db.Collection, values []db.Value) {
	was := s.copy(values)
	s.held = append(s.held, held{c: c, there: true, found: true, was: was, now: was})
}

// Find implements db.RecordSession.
func (s *recordSession) Find(ctx context.Context, c *db.Collection, ids []db.Value, out []db.Record) error {
	s.ids = s.ids[:0]
	for i := range ids {
		if s.readOnly || s.known(c, &ids[i]) == nil {
			s.ids = append(s.ids, ids[i])
		}
	}
	first := len(s.held)
	if len(s.ids) > 0 {
		if len(s.late)+len(s.inserts) > 0 { // a call does not show these writes
			return s.end(db.Fatalf("read "+c.Name, "a transaction of VoltDB reads before it changes a record unseen or inserts one"))
		}
		if err := s.read(ctx, c, s.ids); err != nil {
			return s.end(err)
		}
	}
	for i := range ids {
		h := &held{}
		if len(s.ids) == len(ids) {
			h = &s.held[first+i]
		} else {
			h = s.known(c, &ids[i])
		}
		if out[i] = (db.Record{Found: h.found}); h.found {
			out[i].Values = h.now
		}
	}
	return nil
}

// read reads records in one call.
func (s *recordSession) read(ctx context.Context, c *db.Collection, ids []db.Value) error {
	first := len(s.held)
	for i := range ids {
		s.held = append(s.held, held{c: c, was: s.copy(ids[i : i+1])})
	}
	s.plan()
	if len(ids) > 1 {
		s.step(step{kind: findAll, c: c}, nil)
		s.args = append(s.args, ids...)
	} else {
		s.step(step{kind: find, c: c}, &ids[0])
		s.key(c, &ids[0])
		if c.List != "" {
			s.alone = false
			s.args = append(s.args, ids[0])
		}
	}
	a, err := s.ask(ctx)
	if err != nil {
		return unread(err)
	}
	if s.rehearsal {
		for i := range s.held[first:] {
			h := &s.held[first+i]
			h.there, h.found, h.now = true, true, s.take(c.Width())
			for n := range h.now {
				h.now[n] = db.Value{Int: 1 << 32}
			}
			h.now[db.ID], h.was = h.was[db.ID], h.now
		}
	}
	if len(ids) == 1 {
		return s.fillOne(c, &s.held[first], &a)
	}
	return s.fill(c, first, &a)
}

// fillOne takes the record that was found. A row has its fields, and the rows of another table have its list.
func (s *recordSession) fillOne(c *db.Collection, h *held, a *answer) error {
	last := -1 // the number of the last table with a row
	return s.each("read", a, func(number, column int, v db.Value) {
		if number != last {
			last = number
			values := s.take(c.Width())
			values[db.ID] = h.was[db.ID]
			h.there, h.found, h.was, h.now = true, true, values, values
		}
		switch {
		case number > 0:
			h.now = append(h.now, s.keep(v))
		case len(c.Fields) > 0:
			h.was[1+column] = s.keep(v)
		}
	})
}

// fill stores the records that were found in the held records from first on. Each row has the id and the fields. The
// rows of each partition come in the order of the ids.
func (s *recordSession) fill(c *db.Collection, first int, a *answer) error {
	of, at := s.held[first:], -1
	return s.each("read", a, func(_, column int, v db.Value) {
		if column > 0 {
			if at >= 0 {
				of[at].was[column] = s.keep(v)
			}
			return
		}
		for tries := 0; ; tries++ {
			if tries == len(of) { // nobody asked for it
				at = -1
				return
			}
			if at = (at + 1) % len(of); sameID(c, &of[at].was[db.ID], &v) {
				break
			}
		}
		h, values := &of[at], s.take(c.Width())
		values[db.ID] = h.was[db.ID]
		h.there, h.found, h.was, h.now = true, true, values, values
	})
}

// Insert implements db.RecordSession.
func (s *recordSession) Insert(ctx context.Context, c *db.Collection, records ...[]db.Value) error {
	if s.loading {
		return s.load(ctx, c, records)
	}
	for _, r := range records {
		values := s.copy(r)
		h := s.known(c, &r[db.ID])
		switch {
		case h == nil || !h.found && c.List != "":
			s.inserts = append(s.inserts, insert{c, values})
		case h.found && !s.rehearsal:
			return s.end(errUnique)
		default:
			h.now, h.found, h.written = values, true, true
		}
	}
	return nil
}

// load inserts all records at once, with one call for each record. A record that is there was inserted by an earlier
// try.
func (s *recordSession) load(ctx context.Context, c *db.Collection, records [][]db.Value) error {
	s.out = s.out[:0]
	for _, r := range records {
		s.plan()
		s.insert(&insert{c, r})
		of, err := s.shape(ctx)
		if err != nil {
			return err
		}
		s.handle++
		s.out = appendCall(s.out, s.handle, of.name, of.types, s.args)
	}
	return s.askAll(ctx, "insert records of "+c.Name, len(records), func(err *db.Error) bool { return err.Constraint == db.UniqueKey })
}

// Update implements db.RecordSession.
func (s *recordSession) Update(ctx context.Context, u *db.Update, ids, args []db.Value) (found int, err error) {
	n := u.Arguments()
	for i := range ids {
		if s.loading {
			s.plan()
			s.put(u.Collection, append(slices.Clone(ids[i:i+1]), args[i*n:][:n]...)) // all fields, in their order
			if _, err := s.ask(ctx); err != nil {
				return 0, err
			}
			found++
			continue
		}
		before, err := s.change(u, &ids[i], args[i*n:][:n], false)
		if err != nil {
			return 0, err
		}
		if before.Found {
			found++
		}
	}
	return found, nil
}

// FindAndUpdate implements db.RecordSession.
func (s *recordSession) FindAndUpdate(_ context.Context, u *db.Update, id db.Value, args []db.Value) (before db.Record, err error) {
	return s.change(u, &id, args, true)
}

// change changes a record that was read, or leaves it to the commit.
func (s *recordSession) change(u *db.Update, id *db.Value, args []db.Value, asked bool) (before db.Record, err error) {
	c := u.Collection
	h := s.known(c, id)
	if h == nil {
		l := late{u: u, id: s.keep(*id), args: s.copy(args)}
		if before.Found = true; asked {
			l.before = s.take(c.Width())
			l.before[db.ID] = l.id
			before.Values = l.before
		}
		s.late = append(s.late, l)
		return before, nil
	}
	if !h.found {
		return before, nil
	}
	if u.AtLeast != 0 {
		if h.now[u.AtLeast].Int < args[0].Int {
			return before, nil
		}
		args = args[1:]
	}
	before = db.Record{Found: true, Values: h.now}
	h.now, h.written = s.copy(h.now), true
	for _, field := range u.Add {
		h.now[field].Int += args[0].Int
		args = args[1:]
	}
	for _, field := range u.Append {
		h.now[field].Text = slices.Concat(h.now[field].Text, args[0].Text)
		args = args[1:]
	}
	for i, field := range u.Set {
		h.now[field] = s.keep(args[i])
	}
	for i, f := range c.Fields {
		if f.NonNegative && h.now[1+i].Int < 0 {
			return db.Record{}, s.end(errBelow)
		}
	}
	return before, nil
}

// Commit implements db.RecordSession. If a transaction writes nothing and has read in one call, it needs no further
// call.
func (s *recordSession) Commit(ctx context.Context) error {
	if s.broken || s.closed {
		return wire.Broken("commit")
	}
	s.open = false
	written := len(s.late) > 0 || len(s.inserts) > 0
	for i := range s.held {
		written = written || s.held[i].written
	}
	if !written && s.calls <= 1 {
		return nil
	}
	if len(s.held)+len(s.late)+len(s.inserts) > mostWrites || s.scanned {
		return db.Fatalf("commit", "a transaction of VoltDB that writes or reads in several calls has at most %d records, and no scan", mostWrites)
	}
	guards, blind := s.assemble()
	a, err := s.ask(ctx)
	if err != nil {
		return err
	}
	return s.finish(&a, guards, blind)
}

// assemble makes the steps of the commit: it compares the records that were read, looks at the records that are changed
// unseen, and then writes. blind is set if the commit is one change whose answer shows whether a record was found.
func (s *recordSession) assemble() (guards int, blind bool) {
	s.plan()
	guards = padded(len(s.held))
	for i := range guards {
		s.compare(&s.held[min(i, len(s.held)-1)])
	}
	blind = len(s.late) == 1 && len(s.held) == 0 && len(s.inserts) == 0 && s.late[0].before == nil && len(s.late[0].u.Set) == len(s.late[0].args)
	for i := range s.late {
		if !blind {
			s.look(&s.late[i])
		}
	}
	for i := range s.late {
		l := &s.late[i]
		args := l.args
		if l.u.AtLeast != 0 {
			args = args[1:]
		}
		if len(args) == 0 {
			continue
		}
		s.step(step{kind: change, c: l.u.Collection, u: l.u}, &l.id)
		s.args = append(s.args, args...)
		s.key(l.u.Collection, &l.id)
	}
	written, last := 0, 0
	for i := range s.held {
		if s.held[i].written {
			written, last = written+1, i
			s.put(s.held[i].c, s.held[i].now)
		}
	}
	for range padded(written) - written {
		s.put(s.held[last].c, s.held[last].now)
	}
	for i := range s.inserts {
		s.insert(&s.inserts[i])
	}
	return guards, blind
}

// padded returns the next power of two. The commit repeats a comparison or a write until there are so many, so that
// there are fewer procedures.
func padded(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return min(n, 1) * p
}

// finish fills in the earlier values of the records that were changed unseen.
func (s *recordSession) finish(a *answer, guards int, blind bool) error {
	if s.rehearsal || !blind && len(s.late) == 0 {
		return nil
	}
	changed := int64(0)
	err := s.each("commit", a, func(number, column int, v db.Value) {
		if at := number - guards; !blind && at >= 0 && at < len(s.late) && 1+column < len(s.late[at].before) {
			s.late[at].before[1+column] = s.keep(v)
		}
		changed = v.Int
	})
	if err == nil && blind && changed == 0 {
		err = errAbsent
	}
	return err
}

// mostScanned bounds a scan in a transaction, which is one answer of at most 50 MB.
const mostScanned = 500_000

// Scan implements db.RecordSession. In a transaction it is one call.
func (s *recordSession) Scan(ctx context.Context, c *db.Collection, from db.Value, limit int, record func(values []db.Value) error) error {
	if s.broken || s.closed {
		return wire.Broken("scan")
	}
	if s.open {
		if s.calls > 0 || len(s.late)+len(s.inserts) > 0 {
			return s.end(db.Fatalf("scan "+c.Name, "a scan must be all that a transaction of VoltDB does"))
		}
		s.scanned = true
		most := limit
		if limit == 0 {
			most = mostScanned + 1
		}
		n, err := s.page(ctx, c, from, most, record)
		if err == nil && limit == 0 && n > mostScanned {
			err = db.Fatalf("scan "+c.Name, "a scan in a transaction of VoltDB is one answer, of at most %d records", mostScanned)
		}
		return err
	}
	if !s.db.isDeclared(c) || limit == 0 {
		if there, err := s.db.Exists(ctx, c); err != nil || !there {
			return err
		}
	}
	return s.pages(ctx, c, from, limit, record)
}

// pages scans outside of a transaction, in calls of a few megabytes.
func (s *recordSession) pages(ctx context.Context, c *db.Collection, from db.Value, limit int, record func(values []db.Value) error) error {
	const (
		firstRows, mostRows = 16, 20_000
		pageBytes           = 4 << 20
	)
	left := limit
	if limit == 0 {
		left = math.MaxInt
	}
	longest, again := 1, false
	for rows := firstRows; ; rows = min(mostRows, pageBytes/longest) {
		s.values, s.texts, s.held = s.values[:0], s.texts[:0], s.held[:0]
		var last db.Value
		most := min(rows, left)
		if again { // the last record of the page before comes once more
			most++
		}
		n, err := s.page(ctx, c, from, most, func(values []db.Value) error {
			last = values[db.ID]
			if again && sameID(c, &last, &from) {
				return nil
			}
			bytes := 0
			for i := range values {
				bytes += 8 + len(values[i].Text)
			}
			longest = max(longest, bytes)
			left--
			return record(values)
		})
		if err != nil || n < most || left <= 0 {
			return err
		}
		from, again = db.Value{Int: last.Int, Text: slices.Clone(last.Text)}, true
	}
}

// page passes on the records from an id on, in one call, or in two calls for lists. It returns limit if more records
// may follow.
func (s *recordSession) page(ctx context.Context, c *db.Collection, from db.Value, limit int, record func(values []db.Value) error) (n int, err error) {
	if from.Null {
		if from = (db.Value{Int: math.MinInt64 + 1}); c.ID == db.Text {
			from = db.Value{Text: []byte{}}
		}
	}
	s.plan()
	s.step(step{kind: scan, c: c}, nil)
	s.key(c, &from)
	most := limit
	if c.List != "" {
		most = max(limit, leastItems)
	}
	s.args = append(s.args, db.Value{Int: int64(most)})
	a, err := s.ask(ctx)
	if err != nil || a.count == 0 {
		return 0, unread(err)
	}
	first := len(s.values)
	width := c.Width()
	if c.List == "" && s.open {
		row := s.take(width)
		var failed error
		err = s.each("scan", &a, func(_, column int, v db.Value) {
			if row[column] = v; column == width-1 && failed == nil {
				n++
				failed = record(row)
			}
		})
		return n, cmp.Or(err, failed)
	}
	if err := s.each("scan", &a, func(_, _ int, v db.Value) { s.values = append(s.values, s.keep(v)) }); err != nil {
		return 0, err
	}
	values := s.values[first:]
	if c.List != "" {
		more, err := s.lists(ctx, c, from, values, most, record)
		if more {
			n = limit
		}
		return n, err
	}
	n = len(values) / width
	for row := range slices.Chunk(values, width) {
		if err := record(row); err != nil {
			return n, err
		}
	}
	return n, nil
}

// leastItems is more than the items of one list, so that a page holds at least one list.
const leastItems = 1024

// lists passes on the records whose items were read from an id on. A second call reads the records without a list among
// them. If a page is full, its last list may not be complete and is left to the next page.
func (s *recordSession) lists(ctx context.Context, c *db.Collection, from db.Value, items []db.Value, most int, record func(values []db.Value) error) (more bool, err error) {
	width, to := 1+len(c.Items), db.Value{Int: math.MaxInt64}
	if more = len(items) == most*width; more {
		last := items[len(items)-width].Int
		for len(items) > 0 && items[len(items)-width].Int == last {
			items = items[:len(items)-width]
		}
		to.Int = last - 1
	}
	s.plan()
	s.step(step{kind: scanEmpty, c: c}, nil)
	s.args = append(s.args, from, to)
	a, err := s.ask(ctx)
	if err != nil {
		return false, unread(err)
	}
	var empty, row []db.Value
	if err := s.each("scan", &a, func(_, _ int, v db.Value) { empty = append(empty, v) }); err != nil {
		return false, err
	}
	for len(items)+len(empty) > 0 {
		if len(items) == 0 || len(empty) > 0 && empty[0].Int < items[0].Int {
			row, empty = append(row[:0], empty[0]), empty[1:]
		} else {
			for row = append(row[:0], items[0]); len(items) > 0 && items[0].Int == row[0].Int; items = items[width:] {
				row = append(row, items[1:width]...)
			}
		}
		if err := record(row); err != nil {
			return false, err
		}
	}
	return more, nil
}

// unread returns the error of a call that only reads: nothing of the transaction was applied.
func unread(err error) error {
	if e, ok := errors.AsType[*db.Error](err); ok && e.Class == db.Unknown {
		e.Class = db.Unavailable
	}
	return err
}
