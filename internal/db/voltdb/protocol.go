package voltdb

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"stroppy/internal/db"
)

// The client wire protocol of VoltDB, version 1: https://docs.voltdb.com/ClientWireProtocol/. A message is a length in
// four bytes and as many bytes. The first of them is the version of the message. Numbers are big-endian.
const (
	headLength = 4
	// mostAnswer bounds a message; the server limits an answer to 50 MB.
	mostAnswer = 64 << 20
)

// The types of values.
const (
	typeNull      = 1
	typeTinyInt   = 3
	typeSmallInt  = 4
	typeInteger   = 5
	typeBigInt    = 6
	typeFloat     = 8
	typeString    = 9
	typeTimestamp = 11
	typeDecimal   = 22
	typeVarbinary = 25
	typeArray     = 256 - 99
)

// wholeSizes are the sizes in bytes of the whole-number types. NULL is the least number of each type.
var wholeSizes = map[byte]int{typeTinyInt: 1, typeSmallInt: 2, typeInteger: 4, typeBigInt: 8, typeTimestamp: 8}

// perCent is one cent in units of a DECIMAL, which has twelve digits behind the point.
const perCent = 10_000_000_000

// status is the result code of a call.
type status int8

// Values of status: org.voltdb.client.ClientResponse of VoltDB 10.0.
const (
	success            status = 1
	userAbort          status = -1
	gracefulFailure    status = -2
	unexpectedFailure  status = -3
	connectionLost     status = -4
	serverUnavailable  status = -5
	connectionTimeout  status = -6
	responseUnknown    status = -7
	txnRestart         status = -8
	operationalFailure status = -9
)

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// finish writes the length of the message that begins at from.
func finish(b []byte, from int) []byte {
	binary.BigEndian.PutUint32(b[from:], uint32(len(b)-from-headLength))
	return b
}

// appendLogin appends the message that logs in, with the SHA-256 of the password.
func appendLogin(b []byte, user, password string) []byte {
	from := len(b)
	b = append(b, 0, 0, 0, 0, 1, 1)
	b = appendString(appendString(b, "database"), user)
	sum := sha256.Sum256([]byte(password))
	return finish(append(b, sum[:]...), from)
}

// appendCall appends the message that calls a procedure. The answer names the handle.
func appendCall(b []byte, handle uint64, procedure string, types []db.Type, args []db.Value) []byte {
	from := len(b)
	b = append(b, 0, 0, 0, 0, 0)
	b = appendString(b, procedure)
	b = binary.BigEndian.AppendUint64(b, handle)
	if len(types) == 1 && types[0]&listOf != 0 {
		return finish(appendList(b, types[0]&^listOf, args), from)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(args)))
	for i := range args {
		if v := &args[i]; v.Null {
			b = append(b, typeNull)
		} else {
			b = appendValue(append(b, wireTypes[types[i]]), types[i], v)
		}
	}
	return finish(b, from)
}

// wireTypes are the types of arguments.
var wireTypes = [...]byte{db.Integer: typeBigInt, db.Decimal: typeDecimal, db.Text: typeString}

// appendList appends one argument that is a list.
func appendList(b []byte, of db.Type, list []db.Value) []byte {
	b = binary.BigEndian.AppendUint16(append(b, 0, 1, typeArray, wireTypes[of]), uint16(len(list)))
	for i := range list {
		b = appendValue(b, of, &list[i])
	}
	return b
}

func appendValue(b []byte, of db.Type, v *db.Value) []byte {
	switch of {
	case db.Integer:
		return binary.BigEndian.AppendUint64(b, uint64(v.Int))
	case db.Decimal:
		return appendDecimal(b, v.Int)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v.Text))), v.Text...)
}

// appendDecimal appends an amount in cents: a signed number of 128 bits.
func appendDecimal(b []byte, cents int64) []byte {
	magnitude := uint64(cents)
	if cents < 0 {
		magnitude = -magnitude
	}
	high, low := bits.Mul64(magnitude, perCent)
	if cents < 0 {
		var borrow uint64
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, high), low)
}

// parseDecimal is the inverse of appendDecimal; NULL is the least number.
func parseDecimal(b []byte) (cents int64, null bool, err error) {
	high, low := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	if high == 1<<63 && low == 0 {
		return 0, true, nil
	}
	negative := int64(high) < 0
	if negative {
		var borrow uint64
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	if high >= perCent {
		return 0, false, errors.New("a decimal is larger than any amount of cents")
	}
	whole, rest := bits.Div64(high, low, perCent)
	switch {
	case rest != 0:
		return 0, false, errors.New("a decimal has a fraction of a cent")
	case whole > math.MaxInt64:
		return 0, false, errors.New("a decimal is larger than any amount of cents")
	case negative:
		return -int64(whole), false, nil
	}
	return int64(whole), false, nil
}

// message reads a message from front to back. A read beyond the end sets short for ever and returns zero.
type message struct {
	rest  []byte
	short bool
}

func (m *message) take(n int) []byte {
	if n < 0 || n > len(m.rest) {
		m.short, m.rest = true, nil
		return nil
	}
	taken := m.rest[:n:n]
	m.rest = m.rest[n:]
	return taken
}

// number reads a signed whole number of so many bytes.
func (m *message) number(size int) int64 {
	var n int64
	for i, b := range m.take(size) {
		if i == 0 {
			n = int64(int8(b))
		} else {
			n = n<<8 | int64(b)
		}
	}
	return n
}

// bytes reads a string; nil is NULL, whose length is -1.
func (m *message) bytes() []byte {
	n := m.number(4)
	if n == -1 {
		return nil
	}
	return m.take(int(n))
}

// answer is the answer to a call. Its slices point into the message.
type answer struct {
	handle uint64
	status status
	text   []byte // the reason if the call failed
	tables message
	count  int
}

// The optional fields of an answer, by their bits.
const (
	hasHash      = 1 << 4
	hasText      = 1 << 5
	hasException = 1 << 6
	hasAppText   = 1 << 7
)

var errFormat = errors.New("its answer is not of VoltDB's protocol")

// parseAnswer reads a message without its length.
func parseAnswer(body []byte) (a answer, err error) {
	m := message{rest: body}
	m.take(1) // the version
	a.handle = uint64(m.number(8))
	fields := byte(m.number(1))
	a.status = status(m.number(1))
	if fields&hasText != 0 {
		a.text = m.bytes()
	}
	m.take(1) // the application's status
	if fields&hasAppText != 0 {
		m.bytes()
	}
	m.take(4) // the time in the cluster
	if fields&hasException != 0 {
		m.bytes()
	}
	if fields&hasHash != 0 {
		m.take(4)
	}
	a.count = int(m.number(2))
	a.tables = m
	if m.short || a.count < 0 {
		return a, errFormat
	}
	return a, nil
}

// into appends the rows of all tables to r. It adds up the numbers of changed rows that statements without rows report.
func (a *answer) into(r *db.Result) error {
	r.Affected, r.Columns, r.Values = 0, 0, r.Values[:0]
	for range a.count {
		t, err := a.tables.table()
		if err == nil {
			err = t.into(r)
		}
		if err != nil {
			return err
		}
	}
	return a.ended()
}

// ended returns the error of an answer that is shorter than the values read from it.
func (a *answer) ended() error {
	if a.tables.short {
		return errFormat
	}
	return nil
}

// mostColumns is VoltDB's limit for the columns of a table.
const mostColumns = 1024

// table is one table of an answer, with its unread rows.
type table struct {
	message
	types []byte  // of its columns
	names message // of its columns
	rows  int
}

// table reads the head of the next table.
func (m *message) table() (t table, err error) {
	t.rest = m.take(int(m.number(4)))
	t.take(4) // the length of the head
	t.take(1) // a status of the application's
	columns := int(t.number(2))
	if columns < 0 || columns > mostColumns {
		return t, errFormat
	}
	t.types = t.take(columns)
	t.names.rest = t.rest
	for range columns {
		t.bytes()
	}
	t.rows = int(t.number(4))
	if t.short {
		return t, errFormat
	}
	return t, nil
}

// into appends the rows to r, or adds up the numbers of changed rows.
func (t *table) into(r *db.Result) error {
	columns := len(t.types)
	changes := columns == 1 && string(t.names.bytes()) == "modified_tuples"
	if !changes {
		if r.Columns != 0 && r.Columns != columns {
			return errors.New("its statements return rows of different lengths")
		}
		r.Columns = columns
	}
	return t.each(func(_ int, v db.Value) {
		if changes {
			r.Affected += v.Int
		} else {
			r.Values = append(r.Values, v)
		}
	})
}

// each calls a function for all values of all rows, with the number of the column.
func (t *table) each(take func(column int, v db.Value)) error {
	for range t.rows {
		row := message{rest: t.take(int(t.number(4)))}
		for column, kind := range t.types {
			v, err := row.value(kind)
			if err != nil {
				return err
			}
			take(column, v)
		}
		if row.short || t.short {
			return errFormat
		}
	}
	return nil
}

// value reads one column of a row.
func (m *message) value(kind byte) (v db.Value, err error) {
	if size := wholeSizes[kind]; size > 0 {
		v.Int = m.number(size)
		v.Null = v.Int == math.MinInt64>>(64-8*size)
		return v, nil
	}
	switch kind {
	case typeDecimal:
		if b := m.take(16); b != nil {
			v.Int, v.Null, err = parseDecimal(b)
		}
	case typeString, typeVarbinary:
		v.Text = m.bytes()
		v.Null = v.Text == nil
	case typeFloat:
		v.Int = int64(math.Float64frombits(uint64(m.number(8))))
	case typeNull:
		v.Null = true
	default:
		err = fmt.Errorf("a column has the type %d, which no statement here asks for", int8(kind))
	}
	return v, err
}
