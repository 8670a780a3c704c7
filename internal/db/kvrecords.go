package db

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// RecordsOf returns the database as a database of records: the database itself, or an adapter over an ordered key-value
// store. It returns false for a database of any other model.
//
// The adapter stores a record under one key: the collection's name, a slash and the id. A text id is stored as it is,
// and a number in sixteen hexadecimal digits. The codec describes the value.
func RecordsOf(database Database) (Records, bool) {
	if d, ok := database.(Records); ok {
		return d, true
	}
	d, ok := database.(KV)
	if !ok {
		return nil, false
	}
	store := &kvRecords{KV: d}
	_, store.guarded = database.(Constrainer)
	if _, ok := database.(Ranger); ok {
		return &kvRangeRecords{store}, true
	}
	return store, true
}

// kvRecords makes an ordered key-value store a database of records.
type kvRecords struct {
	KV
	guarded bool // the store enforces the constraints of the collections by itself
}

// kvRangeRecords is a kvRecords whose transactions read ranges.
type kvRangeRecords struct{ *kvRecords }

// Limits implements Database.
func (d *kvRecords) Limits() Limits {
	l := d.KV.Limits()
	_, l.Adds = d.KV.(Adder)
	l.Optimistic, l.Guarded = true, d.guarded
	return l
}

// Declare implements Declarer. It declares the collections of numbers or of one text: a ledger has nothing to
// constrain.
func (d *kvRecords) Declare(collections ...*Collection) error {
	store, ok := d.KV.(Constrainer)
	if !ok {
		return nil
	}
	var spaces []Keyspace
	for _, c := range collections {
		space := Keyspace{Prefix: c.appendPrefix(nil)}
		switch c.layout() {
		case mixed:
			continue
		case numbers, counter:
			for i, f := range c.Fields {
				space.Columns = append(space.Columns, Column{
					Name: f.Name, Offset: 8 * i, LittleEndian: c.Counter, Additive: f.Additive, NonNegative: f.NonNegative,
				})
			}
		}
		spaces = append(spaces, space)
	}
	return store.Constrain(spaces)
}

// Exists implements Records.
func (d *kvRecords) Exists(ctx context.Context, c *Collection) (there bool, err error) {
	s, err := d.KVSession(ctx, SessionOptions{Mode: Pipelined})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.Scan(ctx, c.appendPrefix(nil), c.behind(nil), func(_, _ []byte) error {
		there = true
		return errEnough
	})
	if err == errEnough {
		err = nil
	}
	return there, err
}

// Create implements Records. It does nothing, because a collection exists from its first record on.
func (*kvRecords) Create(context.Context, *Collection) error { return nil }

// dropKeys is the number of keys that Drop finds at a time. dropBatch bounds the keys that one
// transaction deletes.
const dropKeys, dropBatch = 10_000, 1000

// Drop implements Records. It scans for some keys, deletes them and scans again, because some stores cannot continue
// the scan of one snapshot after a write.
func (d *kvRecords) Drop(ctx context.Context, c *Collection) (err error) {
	s, err := d.KVSession(ctx, SessionOptions{Mode: Pipelined})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for {
		var keys [][]byte
		scanned := s.Scan(ctx, c.appendPrefix(nil), c.behind(nil), func(key, _ []byte) error {
			if keys = append(keys, bytes.Clone(key)); len(keys) == dropKeys {
				return errEnough
			}
			return nil
		})
		if scanned != nil && scanned != errEnough {
			return scanned
		}
		for batch := range slices.Chunk(keys, min(d.KV.Limits().Writes, dropBatch)) {
			err := Repeat(ctx, s, nil, func() error {
				for _, key := range batch {
					s.Delete(key)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if scanned == nil {
			return nil
		}
	}
}

// RecordSession implements Records.
func (d *kvRecords) RecordSession(ctx context.Context, o SessionOptions) (RecordSession, error) {
	if adder, ok := d.KV.(Adder); ok {
		s, err := adder.AddSession(ctx, o)
		return &kvRecordSession{kv: s, adds: s, guarded: d.guarded, loading: o.Loading}, err
	}
	s, err := d.KVSession(ctx, o)
	return &kvRecordSession{kv: s, guarded: d.guarded, loading: o.Loading}, err
}

// RecordRangeSession implements RecordRanger.
func (d *kvRangeRecords) RecordRangeSession(ctx context.Context, o SessionOptions) (RecordRangeSession, error) {
	s, err := d.KV.(Ranger).RangeSession(ctx, o)
	return &kvRecordSession{kv: s, ranges: s, guarded: d.guarded, loading: o.Loading}, err
}

// kvRecordSession is a RecordRangeSession on a session of an ordered key-value store. The fields keys and found hold
// the records that a transaction has read and written. So a change of a record that was found before makes no round
// trip.
type kvRecordSession struct {
	kv      KVSession
	ranges  RangeSession // nil: the store reads no ranges
	adds    AddSession   // nil: the store does not add without reading
	guarded bool         // the store enforces the constraints of the fields
	loading bool

	open     bool // a transaction is
	readOnly bool
	wrote    bool // the transaction has written
	apart    bool // the transaction is one scan, which has its own snapshot

	count    int // of the places that the transaction has used
	places   []place
	keys     [][]byte // by place
	found    []Entry  // by place: the entry as the transaction sees it, its own writes included
	made     [][]byte // by place: the value that the transaction has written
	at       []int    // the places of the ids of one call
	reserved *Collection
	id       Value // of the record that is reserved

	ids      []Value
	values   []Value // handed out since Begin
	scratch  []Value // of the record that is written or scanned
	from, to []byte
}

// Errors that are frequent are one value, because each would be allocated.
var (
	errEnough = errors.New("as many as were asked for")
	errUnique = &Error{Class: Constraint, Constraint: UniqueKey, Op: "insert a record", Err: errors.New("its id is there already")}
	errBelow  = &Error{Class: Constraint, Constraint: CheckFailed, Op: "write a record", Err: errors.New("a field would be below zero")}
)

// Begin implements RecordSession.
func (s *kvRecordSession) Begin(ctx context.Context, readOnly bool) error {
	s.open, s.readOnly, s.wrote, s.apart = true, readOnly, false, false
	s.count, s.values, s.reserved = 0, s.values[:0], nil
	return s.kv.Begin(ctx, readOnly)
}

// Reserve implements RecordSession.
func (s *kvRecordSession) Reserve(c *Collection, id Value) { s.reserved, s.id = c, id }

// place names the record at a place of a transaction.
type place struct {
	of     *Collection
	number int64 // the id, unless it is a text
}

// known returns the place of a record that the transaction has read or written; -1 if there is none. It tries the place
// near first.
func (s *kvRecordSession) known(c *Collection, id *Value, near int) int {
	if near < s.count && s.is(near, c, id) {
		return near
	}
	for i := range s.count {
		if s.is(i, c, id) {
			return i
		}
	}
	return -1
}

// is reports whether a place belongs to a record.
func (s *kvRecordSession) is(at int, c *Collection, id *Value) bool {
	p := &s.places[at]
	if p.of != c {
		return false
	}
	if c.ID == Text {
		return string(s.keys[at][len(c.Name)+1:]) == string(id.Text)
	}
	return p.number == id.Int
}

// read finds the places of records. It reads the records that are not known yet in one round trip, together with the
// reserved record.
func (s *kvRecordSession) read(ctx context.Context, c *Collection, ids []Value) error {
	if s.readOnly {
		s.count = 0
	}
	start := s.count
	s.at = s.at[:0]
	for i := range ids {
		at := -1
		if start > 0 {
			at = s.known(c, &ids[i], i)
		}
		if at < 0 {
			at = s.slot(c, &ids[i])
			s.count++
		}
		s.at = append(s.at, at)
	}
	if s.count == start {
		return nil
	}
	if c := s.reserved; c != nil {
		s.reserved = nil
		if s.known(c, &s.id, s.count) < 0 {
			s.slot(c, &s.id)
			s.count++
		}
	}
	err := s.kv.Read(ctx, s.keys[start:s.count], s.found[start:s.count])
	if err != nil {
		s.open = false
	}
	return err
}

// Find implements RecordSession. The ids in the records are the ids of the call.
func (s *kvRecordSession) Find(ctx context.Context, c *Collection, ids []Value, out []Record) error {
	if err := s.read(ctx, c, ids); err != nil {
		return err
	}
	for i := range ids {
		out[i] = s.record(c, ids[i], &s.found[s.at[i]])
	}
	return nil
}

// record decodes a found entry.
func (s *kvRecordSession) record(c *Collection, id Value, e *Entry) Record {
	if !e.Found {
		return Record{}
	}
	start := len(s.values)
	s.values = c.Decode(append(s.values, id), e.Value)
	return Record{Found: true, Values: s.values[start:len(s.values):len(s.values)]}
}

// end gives up the transaction because of err.
func (s *kvRecordSession) end(err *Error) error {
	s.open = false
	s.kv.Rollback()
	return err
}

// slot returns the next place, with the key of a record.
func (s *kvRecordSession) slot(c *Collection, id *Value) (at int) {
	at = s.count
	if at == len(s.keys) {
		s.keys, s.found, s.made = append(s.keys, nil), append(s.found, Entry{}), append(s.made, nil)
		s.places = append(s.places, place{})
	}
	s.keys[at] = c.appendKey(s.keys[at][:0], id)
	s.places[at] = place{c, id.Int}
	return at
}

// set writes a record at a place: its fields, and the fields of its list.
func (s *kvRecordSession) set(c *Collection, at int, fields []Value) error {
	if !s.guarded {
		for i := range c.Fields {
			if c.Fields[i].NonNegative && fields[i].Int < 0 {
				return s.end(errBelow)
			}
		}
	}
	s.made[at] = c.Encode(s.made[at][:0], fields)
	s.wrote = true
	s.found[at] = Entry{Value: s.made[at], Found: true}
	s.kv.Set(s.keys[at], s.made[at])
	return nil
}

// Insert implements RecordSession.
func (s *kvRecordSession) Insert(ctx context.Context, c *Collection, records ...[]Value) error {
	if s.loading || c.Fresh {
		for _, r := range records {
			if err := s.set(c, s.slot(c, &r[ID]), r[1:]); err != nil {
				return err
			}
		}
		return nil
	}
	s.ids = s.ids[:0]
	for _, r := range records {
		s.ids = append(s.ids, r[ID])
	}
	if err := s.read(ctx, c, s.ids); err != nil {
		return err
	}
	for i, r := range records {
		if s.found[s.at[i]].Found {
			return s.end(errUnique)
		}
		if err := s.set(c, s.at[i], r[1:]); err != nil {
			return err
		}
	}
	return nil
}

// Update implements RecordSession.
func (s *kvRecordSession) Update(ctx context.Context, u *Update, ids, args []Value) (found int, err error) {
	if s.unseen(u) {
		for i := range ids {
			s.from = u.Collection.appendKey(s.from[:0], &ids[i])
			s.adds.Add(s.from, args[i].Int)
		}
		s.wrote = true
		return len(ids), nil
	}
	n := u.Arguments()
	if s.loading && u.whole() {
		for i := range ids {
			if err := s.set(u.Collection, s.slot(u.Collection, &ids[i]), s.written(u, args[i*n:][:n])); err != nil {
				return 0, err
			}
		}
		return len(ids), nil
	}
	if err := s.read(ctx, u.Collection, ids); err != nil {
		return 0, err
	}
	for i := range ids {
		met, err := s.change(u, s.at[i], args[i*n:(i+1)*n])
		if err != nil {
			return 0, err
		}
		if met {
			found++
		}
	}
	return found, nil
}

// unseen reports whether the store applies an update by adding.
func (s *kvRecordSession) unseen(u *Update) bool {
	return u.Unseen && s.adds != nil && u.Collection.Counter
}

// whole reports whether an update replaces all fields of a record.
func (u *Update) whole() bool {
	return len(u.Set) == len(u.Collection.Fields) && u.AtLeast == 0 && u.Collection.List == ""
}

// written returns the fields of a record that an update writes as a whole.
func (s *kvRecordSession) written(u *Update, args []Value) []Value {
	ordered := true
	for i, field := range u.Set {
		ordered = ordered && field == 1+i
	}
	if ordered {
		return args
	}
	s.scratch = slices.Grow(s.scratch[:0], len(u.Set))[:len(u.Set)]
	for i, field := range u.Set {
		s.scratch[field-1] = args[i]
	}
	return s.scratch
}

// change changes the record at a place, if it is there and meets the condition.
func (s *kvRecordSession) change(u *Update, at int, args []Value) (met bool, err error) {
	c := u.Collection
	switch {
	case !s.found[at].Found:
		return false, nil
	case u.whole():
		return true, s.set(c, at, s.written(u, args))
	}
	s.scratch = c.Decode(append(s.scratch[:0], Value{}), s.found[at].Value)
	if u.AtLeast != 0 {
		if s.scratch[u.AtLeast].Int < args[0].Int {
			return false, nil
		}
		args = args[1:]
	}
	var amount int64
	for _, field := range u.Add {
		amount = args[0].Int
		if s.scratch[field].Null {
			return false, s.end(Fatalf("update "+c.Name, "a field of the record is missing"))
		}
		s.scratch[field].Int += amount
		args = args[1:]
	}
	if s.unseen(u) {
		s.made[at] = c.Encode(s.made[at][:0], s.scratch[1:])
		s.found[at].Value, s.wrote = s.made[at], true
		s.adds.Add(s.keys[at], amount)
		return true, nil
	}
	for i, field := range u.Set {
		s.scratch[field] = args[i]
	}
	return true, s.set(c, at, s.scratch[1:])
}

// FindAndUpdate implements RecordSession.
func (s *kvRecordSession) FindAndUpdate(ctx context.Context, u *Update, id Value, args []Value) (before Record, err error) {
	s.ids = append(s.ids[:0], id)
	if err := s.read(ctx, u.Collection, s.ids); err != nil {
		return before, err
	}
	at := s.at[0]
	before = s.record(u.Collection, id, &s.found[at])
	met, err := s.change(u, at, args)
	if err != nil || !met {
		return Record{}, err
	}
	return before, nil
}

// Delete implements RecordRangeSession.
func (s *kvRecordSession) Delete(ctx context.Context, c *Collection, ids []Value) (found int, err error) {
	if err := s.read(ctx, c, ids); err != nil {
		return 0, err
	}
	for _, at := range s.at {
		if s.found[at].Found {
			found++
			s.found[at], s.wrote = Entry{}, true
			s.kv.Delete(s.keys[at])
		}
	}
	return found, nil
}

// Commit implements RecordSession.
func (s *kvRecordSession) Commit(ctx context.Context) error {
	s.open = false
	if s.apart {
		return nil
	}
	return s.kv.Commit(ctx)
}

// Rollback implements RecordSession.
func (s *kvRecordSession) Rollback(context.Context) error {
	s.open = false
	s.kv.Rollback()
	return nil
}

// Scan implements RecordSession. A scan in a transaction must be all that the transaction
// does, because the scan of a key-value store has a snapshot of its own.
func (s *kvRecordSession) Scan(ctx context.Context, c *Collection, from Value, limit int, record func(values []Value) error) error {
	if s.open {
		if s.count > 0 || s.wrote {
			return s.end(Fatalf("read "+c.Name, "a scan of a key-value store must be all that its transaction does"))
		}
		s.kv.Rollback()
		s.open, s.apart = false, true
	}
	s.from = c.appendPrefix(s.from[:0])
	if !from.Null {
		s.from = c.appendKey(s.from[:0], &from)
	}
	s.to = c.behind(s.to[:0])
	err := s.kv.Scan(ctx, s.from, s.to, func(key, value []byte) error {
		s.scratch = c.Decode(append(s.scratch[:0], c.idOf(key)), value)
		if err := record(s.scratch); err != nil {
			return err
		}
		if limit--; limit == 0 {
			return errEnough
		}
		return nil
	})
	if err == errEnough {
		err = nil
	}
	return err
}

// Range implements RecordRangeSession. It reads the whole range of ids.
func (s *kvRecordSession) Range(ctx context.Context, c *Collection, r RecordRange, record func(values []Value) error) error {
	if s.wrote {
		return s.end(Fatalf("read a range of "+c.Name, "the transaction has written, and a range does not show its own writes"))
	}
	s.from, s.to = c.appendKey(s.from[:0], &r.From), c.appendKey(s.to[:0], &r.To)
	err := s.ranges.Range(ctx, s.from, s.to, func(key, value []byte) error {
		s.scratch = c.Decode(append(s.scratch[:0], c.idOf(key)), value)
		if r.Field != 0 && !s.scratch[r.Field].Null && s.scratch[r.Field].Int >= r.Below.Int {
			return nil
		}
		return record(s.scratch)
	})
	if err != nil {
		s.open = false
	}
	return err
}

// Reset implements RecordSession.
func (s *kvRecordSession) Reset(ctx context.Context) error { return s.kv.Reset(ctx) }

// Close implements RecordSession.
func (s *kvRecordSession) Close() error { return s.kv.Close() }

const hexDigits = "0123456789abcdef"

// appendPrefix appends the prefix of all keys of the collection.
func (c *Collection) appendPrefix(dst []byte) []byte { return append(append(dst, c.Name...), '/') }

// behind appends the first key after all keys of the collection.
func (c *Collection) behind(dst []byte) []byte { return append(append(dst, c.Name...), '/'+1) }

// appendKey appends the key of a record.
func (c *Collection) appendKey(dst []byte, id *Value) []byte {
	dst = c.appendPrefix(dst)
	if c.ID == Text {
		return append(dst, id.Text...)
	}
	var digits [16]byte
	n := uint64(id.Int)
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = hexDigits[n&15]
		n >>= 4
	}
	return append(dst, digits[:]...)
}

// idOf returns the id of a key. If no id of the collection makes this key, the id is Null, with the rest of the key as
// its text.
func (c *Collection) idOf(key []byte) Value {
	text := key[len(c.Name)+1:]
	if c.ID == Text {
		return Value{Text: text}
	}
	var n uint64
	for _, digit := range text {
		d := bytes.IndexByte([]byte(hexDigits), digit)
		if d < 0 {
			return Value{Null: true, Text: text}
		}
		n = n<<4 | uint64(d)
	}
	if len(text) != 16 || n > math.MaxInt64 {
		return Value{Null: true, Text: text}
	}
	return Value{Int: int64(n)}
}

// layout is the encoding of the values of a collection.
type layout uint8

const (
	mixed   layout = iota // a byte with a bit for each field that is Null, and then the fields and the list
	numbers               // signed numbers of 64 bits, big-endian
	counter               // one such number, little-endian, as AddSession adds
	raw                   // one text
)

func (c *Collection) layout() layout {
	switch {
	case c.Counter:
		return counter
	case c.List != "" || len(c.Fields) == 0:
		return mixed
	}
	for i := range c.Fields {
		if c.Fields[i].Type == Text {
			if len(c.Fields) == 1 {
				return raw
			}
			return mixed
		}
	}
	return numbers
}

// Encode appends the value of a record. In the mixed layout a number is a varint, and a text follows its length, which
// is a uvarint.
func (c *Collection) Encode(dst []byte, fields []Value) []byte {
	switch c.layout() {
	case counter:
		return binary.LittleEndian.AppendUint64(dst, uint64(fields[0].Int))
	case raw:
		return append(dst, fields[0].Text...)
	case numbers:
		for i := range c.Fields {
			dst = binary.BigEndian.AppendUint64(dst, uint64(fields[i].Int))
		}
		return dst
	}
	nulls := len(dst)
	dst = append(dst, 0)
	for i := range c.Fields {
		if fields[i].Null {
			dst[nulls] |= 1 << i
			continue
		}
		dst = appendField(dst, c.Fields[i].Type, &fields[i])
	}
	for rest := fields[len(c.Fields):]; len(rest) > 0 && len(c.Items) > 0; rest = rest[len(c.Items):] {
		for i := range c.Items {
			dst = appendField(dst, c.Items[i].Type, &rest[i])
		}
	}
	return dst
}

func appendField(dst []byte, kind Type, v *Value) []byte {
	if kind != Text {
		return binary.AppendVarint(dst, v.Int)
	}
	return append(binary.AppendUvarint(dst, uint64(len(v.Text))), v.Text...)
}

// Decode appends the fields of a value, whose texts are parts of it. If Encode has not made
// the value, all its fields are Null, and so are the fields of one item of a list.
func (c *Collection) Decode(values []Value, value []byte) []Value {
	start := len(values)
	switch layout := c.layout(); {
	case layout == raw:
		return append(values, Value{Text: value})
	case layout == numbers && len(value) == 8*len(c.Fields):
		for ; len(value) > 0; value = value[8:] {
			values = append(values, Value{Int: int64(binary.BigEndian.Uint64(value))})
		}
		return values
	case layout == counter && len(value) == 8:
		return append(values, Value{Int: int64(binary.LittleEndian.Uint64(value))})
	case layout == mixed && len(value) > 0:
		var ok bool
		if values, ok = c.decodeMixed(values, value[0], value[1:]); ok {
			return values
		}
	}
	values = values[:start]
	for range len(c.Fields) + len(c.Items) {
		values = append(values, Value{Null: true})
	}
	return values
}

func (c *Collection) decodeMixed(values []Value, nulls byte, value []byte) (_ []Value, ok bool) {
	field := func(kind Type) bool {
		var v Value
		if kind == Text {
			length, n := binary.Uvarint(value)
			if n <= 0 || length > uint64(len(value)-n) {
				return false
			}
			v.Text, value = value[n:n+int(length)], value[n+int(length):]
		} else {
			number, n := binary.Varint(value)
			if n <= 0 {
				return false
			}
			v.Int, value = number, value[n:]
		}
		values = append(values, v)
		return true
	}
	for i := range c.Fields {
		if nulls&(1<<i) != 0 {
			values = append(values, Value{Null: true})
		} else if !field(c.Fields[i].Type) {
			return values, false
		}
	}
	for len(value) > 0 {
		for i := range c.Items {
			if !field(c.Items[i].Type) {
				return values, false
			}
		}
		if len(c.Items) == 0 {
			return values, false
		}
	}
	return values, true
}
