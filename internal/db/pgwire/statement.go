package pgwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"stroppy/internal/db"
	"stroppy/internal/money"
)

// These messages of the extended query protocol are constant (PostgreSQL documentation 55.7, "Message
// Formats").
const (
	execute = "E\x00\x00\x00\x09\x00\x00\x00\x00\x00" // the unnamed portal, all rows
	syncAll = "S\x00\x00\x00\x04"
)

// controls holds the messages that begin and end a transaction. begin and beginReader have equal lengths.
type controls struct{ begin, beginReader, commit, rollback string } // the first two have one length

// preparedControls execute statements that a session has prepared under names of one letter.
var preparedControls = controls{
	begin: runNamed("b"), beginReader: runNamed("r"), commit: runNamed("c"), rollback: runNamed("a"),
}

// controlStatements returns the statements of preparedControls with the given isolation.
func controlStatements(isolation string) [4]struct{ name, sql string } {
	begin := beginAt(isolation)
	return [...]struct{ name, sql string }{{"b", begin}, {"r", begin + onlyReads}, {"c", "COMMIT"}, {"a", "ROLLBACK"}}
}

const onlyReads = " READ ONLY"

// beginAt returns the statement that begins a transaction at an isolation, or at the session's if it is
// empty.
func beginAt(isolation string) string {
	if isolation == "" {
		return "BEGIN"
	}
	return "BEGIN ISOLATION LEVEL " + isolation
}

// runNamed returns the message that executes a statement without parameters. An empty name is the statement
// that was parsed last.
func runNamed(name string) string {
	const portal, none = "\x00", "\x00\x00\x00\x00\x00\x00"
	return framed('B', portal+name+"\x00"+none) + execute
}

// framed is a message with its type and its length. Inlined, it and parseMessage would
// need stack while the server is waited for: 4 KiB more for each of 10,000 clients.
//
//go:noinline
func framed(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(body)))) + body
}

// wholeControls returns statements that are sent completely each time. They name the isolation, if there is
// one, because nothing is left in the session.
func wholeControls(isolation string) *controls {
	begin := beginAt(isolation)
	reader := begin + onlyReads
	return &controls{
		begin: runWhole(fmt.Sprintf("%-*s", len(reader), begin)), beginReader: runWhole(reader),
		commit: runWhole("COMMIT"), rollback: runWhole("ROLLBACK"),
	}
}

func runWhole(sql string) string { return parseMessage("", &db.Statement{SQL: sql}) + runNamed("") }

// parseMessage is the message that prepares a statement. Types of numbers are declared,
// because they are sent in binary format; text takes whatever type the server infers.
//
//go:noinline
func parseMessage(name string, s *db.Statement) string {
	body := append([]byte(name), 0)
	body = append(append(body, s.SQL...), 0)
	body = binary.BigEndian.AppendUint16(body, uint16(len(s.Params)))
	oids := [...]uint32{db.Integer: OIDInt8, db.Decimal: OIDNumeric, db.Text: 0, db.Untyped: 0}
	for _, t := range s.Params {
		body = binary.BigEndian.AppendUint32(body, oids[t])
	}
	return framed('P', string(body))
}

// These are the object identifiers of types, from src/include/catalog/pg_type.dat.
const (
	OIDBool    = 16
	OIDInt8    = 20
	OIDInt2    = 21
	OIDInt4    = 23
	OIDText    = 25
	OIDBPChar  = 1042
	OIDVarchar = 1043
	OIDNumeric = 1700
)

// decoder is the format of a column.
type decoder uint8

const (
	asText          decoder = iota // in text format
	asInteger                      // a big-endian integer of its own length, bool included
	asIntegerCents                 // such an integer is whole units, and cents are wanted
	asNumeric                      // a numeric in text format, and cents are wanted
	asNumericNumber                // a numeric in text format, and a whole number is wanted
)

// prepared is a prepared statement with all its messages that do not depend on arguments.
type prepared struct {
	statement *db.Statement
	parse     string // where it is sent whole each time
	bind      []byte // from the portal's name to the number of parameters
	formats   []byte // of the results, and the Execute message
	columns   []decoder
	names     []string // of the columns of a Free statement
}

// newPrepared builds the messages after the server has described the columns.
func newPrepared(name string, s *db.Statement, fields []field) (*prepared, error) {
	if len(s.Columns) > 0 && len(fields) != len(s.Columns) {
		return nil, fmt.Errorf("it returns %d columns, not %d", len(fields), len(s.Columns))
	}
	p := &prepared{statement: s}
	if s.Free { // without formats, all columns are texts
		p.columns = make([]decoder, len(fields))
		for _, f := range fields {
			p.names = append(p.names, f.name)
		}
	}
	p.bind = append(append(append(p.bind, 0), name...), 0)
	p.bind = binary.BigEndian.AppendUint16(p.bind, uint16(len(s.Params)))
	for _, t := range s.Params {
		p.bind = binary.BigEndian.AppendUint16(p.bind, binaryIf(t < db.Text))
	}
	p.bind = binary.BigEndian.AppendUint16(p.bind, uint16(len(s.Params)))

	p.formats = binary.BigEndian.AppendUint16(p.formats, uint16(len(s.Columns)))
	for i, t := range s.Columns {
		how, ok := decoderFor(t, fields[i].oid)
		if !ok {
			return nil, fmt.Errorf("its column %d has the type with OID %d, which cannot be read exactly: add a cast", i+1, fields[i].oid)
		}
		p.columns = append(p.columns, how)
		p.formats = binary.BigEndian.AppendUint16(p.formats, binaryIf(how == asInteger || how == asIntegerCents))
	}
	p.formats = append(p.formats, execute...)
	return p, nil
}

func binaryIf(yes bool) uint16 {
	if yes {
		return 1
	}
	return 0
}

func decoderFor(t db.Type, oid uint32) (decoder, bool) {
	integer := oid == OIDInt8 || oid == OIDInt4 || oid == OIDInt2
	switch {
	case t == db.Text:
		return asText, true
	case t == db.Integer && (integer || oid == OIDBool):
		return asInteger, true
	case t == db.Integer && oid == OIDNumeric:
		return asNumericNumber, true
	case t == db.Decimal && oid == OIDNumeric:
		return asNumeric, true
	case t == db.Decimal && integer:
		return asIntegerCents, true
	}
	return 0, false
}

// append appends the statement's Bind and Execute messages with these arguments.
func (p *prepared) append(dst []byte, args []db.Value) []byte {
	dst = append(dst, p.parse...)
	start := len(dst)
	dst = append(dst, 'B', 0, 0, 0, 0)
	dst = append(dst, p.bind...)
	for i, t := range p.statement.Params {
		dst = AppendValue(dst, t, &args[i])
	}
	formats := len(p.formats) - len(execute)
	dst = append(dst, p.formats[:formats]...)
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return append(dst, p.formats[formats:]...)
}

// AppendValue appends a value after its length, as for Bind and COPY: integers and numerics in binary format,
// everything else as text.
func AppendValue(dst []byte, t db.Type, v *db.Value) []byte {
	switch {
	case v.Null:
		return append(dst, 0xff, 0xff, 0xff, 0xff)
	case t == db.Integer:
		dst = append(dst, 0, 0, 0, 8)
		return binary.BigEndian.AppendUint64(dst, uint64(v.Int))
	case t == db.Decimal:
		dst = append(dst, 0, 0, 0, 0)
		start := len(dst)
		dst = appendNumeric(dst, v.Int)
		binary.BigEndian.PutUint32(dst[start-4:], uint32(len(dst)-start))
		return dst
	case t == db.Untyped:
		dst = append(dst, 0, 0, 0, 0)
		start := len(dst)
		dst = v.AppendUntyped(dst)
		binary.BigEndian.PutUint32(dst[start-4:], uint32(len(dst)-start))
		return dst
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v.Text)))
	return append(dst, v.Text...)
}

// decode decodes one column. It appends text to texts and returns it.
func (how decoder) decode(src []byte, v *db.Value, texts []byte) ([]byte, error) {
	*v = db.Value{}
	if src == nil {
		v.Null = true
		return texts, nil
	}
	var err error
	switch how {
	case asText:
		start := len(texts)
		texts = append(texts, src...)
		v.Text = texts[start:len(texts):len(texts)]
	case asInteger:
		v.Int, err = parseInteger(src)
	case asIntegerCents:
		v.Int, err = parseInteger(src)
		if v.Int > math.MaxInt64/100 || v.Int < math.MinInt64/100 {
			return texts, errors.New("read an integer as money: more than 64 bits of cents")
		}
		v.Int *= 100
	case asNumeric:
		v.Int, err = money.Parse(src)
	case asNumericNumber:
		v.Int, err = money.Parse(src)
		if err == nil && v.Int%100 != 0 {
			return texts, fmt.Errorf("read a numeric as a whole number: it has a fraction")
		}
		v.Int /= 100
	}
	return texts, err
}

func parseInteger(src []byte) (int64, error) {
	switch len(src) {
	case 8:
		return int64(binary.BigEndian.Uint64(src)), nil
	case 4:
		return int64(int32(binary.BigEndian.Uint32(src))), nil
	case 2:
		return int64(int16(binary.BigEndian.Uint16(src))), nil
	case 1:
		return int64(src[0]), nil
	}
	return 0, fmt.Errorf("read an integer of %d bytes", len(src))
}

// affected parses the number of rows at the end of a command tag, such as "INSERT 0 1". It is 0 for a tag
// without a number.
func affected(tag []byte) int64 {
	var n int64
	for i := bytes.LastIndexByte(tag, ' ') + 1; i < len(tag); i++ {
		if tag[i] < '0' || tag[i] > '9' {
			return 0
		}
		n = n*10 + int64(tag[i]-'0')
	}
	return n
}
