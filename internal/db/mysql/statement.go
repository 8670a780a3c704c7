package mysql

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/money"
)

// prepared is one session's form of a statement.
type prepared struct {
	statement *db.Statement
	parts     []string // of its text, around the parameters
	call      bool     // it calls a procedure, which may return several result sets
	rows      bool     // it may return rows
	handle    driver.Stmt
	args      []driver.NamedValue
}

// newPrepared parses a statement. Without Parts, its parameters are question marks, and it must contain no others.
func newPrepared(s *db.Statement) (*prepared, error) {
	p := &prepared{statement: s, parts: s.Parts}
	if p.parts == nil {
		p.parts = strings.Split(s.SQL, "?")
	}
	if found := len(p.parts) - 1; found != len(s.Params) {
		return nil, fmt.Errorf("it has %d question marks for %d parameters", found, len(s.Params))
	}
	first, _, _ := strings.Cut(strings.TrimSpace(s.SQL), " ")
	p.call = strings.EqualFold(first, "CALL")
	p.rows = p.call || len(s.Columns) > 0 || s.Free
	p.args = make([]driver.NamedValue, len(s.Params))
	for i := range p.args {
		p.args[i].Ordinal = i + 1
	}
	return p, nil
}

// text returns the text that the server prepares, with text parameters converted to decimals.
func (p *prepared) text() string {
	var b strings.Builder
	for i, part := range p.parts {
		b.WriteString(part)
		switch {
		case i == len(p.statement.Params):
		case p.statement.Params[i] == db.Decimal:
			b.WriteString("CAST(? AS " + decimalType + ")")
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

func (p *prepared) bind(args []db.Value) []driver.NamedValue {
	for i, t := range p.statement.Params {
		v := &args[i]
		switch {
		case v.Null:
			p.args[i].Value = nil
		case v.Double:
			p.args[i].Value = math.Float64frombits(uint64(v.Int))
		case t == db.Integer, t == db.Untyped && v.Text == nil:
			p.args[i].Value = v.Int
		case t == db.Decimal:
			p.args[i].Value = money.Append(nil, v.Int)
		case len(v.Text) == 0:
			p.args[i].Value = "" // a nil slice would be NULL
		default:
			p.args[i].Value = v.Text
		}
	}
	return p.args
}

// append appends the statement with its arguments as literals.
func (p *prepared) append(dst []byte, args []db.Value) []byte {
	for i, part := range p.parts {
		dst = append(dst, part...)
		if i < len(args) {
			dst = appendLiteral(dst, p.statement.Params[i], &args[i])
		}
	}
	return dst
}

// appendLiteral appends a value as an SQL literal that is valid for every sql_mode.
func appendLiteral(dst []byte, t db.Type, v *db.Value) []byte {
	switch {
	case v.Null:
		return append(dst, "NULL"...)
	case t == db.Integer:
		return strconv.AppendInt(dst, v.Int, 10)
	case t == db.Decimal:
		return money.Append(dst, v.Int)
	case t == db.Untyped && v.Text == nil:
		return v.AppendUntyped(dst)
	}
	for _, c := range v.Text {
		if c < ' ' || c > '~' || c == '\'' || c == '\\' {
			dst = append(dst, "CONVERT(X'"...)
			dst = hex.AppendEncode(dst, v.Text)
			return append(dst, "' USING utf8mb4)"...)
		}
	}
	dst = append(dst, '\'')
	dst = append(dst, v.Text...)
	return append(dst, '\'')
}

// decode decodes one column. The library returns integers as such and everything else as text, which is valid
// until the next row.
func decode(t db.Type, column driver.Value) (v db.Value, text []byte, err error) {
	switch c := column.(type) {
	case nil:
		v.Null = true
	case int64:
		switch {
		case t == db.Integer:
			v.Int = c
		case t == db.Decimal && c <= math.MaxInt64/100 && c >= math.MinInt64/100:
			v.Int = c * 100
		case t == db.Decimal:
			err = errTooMuch
		default:
			text = strconv.AppendInt(nil, c, 10)
		}
	case float32, float64:
		if t != db.Untyped {
			return v, nil, unexactType(column)
		}
		text = fmt.Append(nil, c)
	case []byte:
		switch t {
		case db.Text, db.Untyped:
			text = c
		case db.Decimal:
			v.Int, err = money.Parse(c)
		default: // a sum of integers is a decimal without places
			v.Int, err = strconv.ParseInt(string(c), 10, 64)
		}
	case uint64:
		switch v.Int = int64(c); {
		case t == db.Untyped:
			v.Int, text = 0, strconv.AppendUint(nil, c, 10)
		case c > math.MaxInt64 || t != db.Integer:
			err = errTooMuch
		}
	default:
		err = unexactType(column)
	}
	return v, text, err
}

func unexactType(column driver.Value) error {
	return fmt.Errorf("it has the type %T, which cannot be read exactly: add a CAST", column)
}

var errTooMuch = errors.New("the number does not fit in 64 bits")
