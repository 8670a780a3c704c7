package script

import (
	"math"
	"strconv"
	"strings"
)

// Kind is the type of a value.
type Kind uint8

// The types of values. A Text has its type only in an expression, by the rules of Typed.
const (
	Null Kind = iota
	Boolean
	Integer
	Double
	Text
	Undefined // of a variable that nothing has set yet
)

func (k Kind) String() string {
	return [...]string{"null", "boolean", "integer", "double", "text", "undefined"}[k]
}

// Value is a value of a variable or an expression. Int holds a Boolean too, as 0 or 1.
type Value struct {
	Kind   Kind
	Int    int64
	Double float64
	Text   []byte
}

func integer(i int64) Value  { return Value{Kind: Integer, Int: i} }
func double(d float64) Value { return Value{Kind: Double, Double: d} }

func boolean(b bool) Value {
	if b {
		return Value{Kind: Boolean, Int: 1}
	}
	return Value{Kind: Boolean}
}

// Append appends the value in the form in which pgbench sends it.
func (v Value) Append(dst []byte) []byte {
	switch v.Kind {
	case Boolean:
		return strconv.AppendBool(dst, v.Int != 0)
	case Integer:
		return strconv.AppendInt(dst, v.Int, 10)
	case Double:
		return appendDouble(dst, v.Double)
	case Text:
		return append(dst, v.Text...)
	}
	return append(dst, "NULL"...)
}

// appendDouble appends a double like C's %.15g, with the database's words for infinity.
func appendDouble(dst []byte, d float64) []byte {
	switch {
	case math.IsNaN(d):
		return append(dst, "NaN"...)
	case math.IsInf(d, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(d, -1):
		return append(dst, "-Infinity"...)
	}
	return strconv.AppendFloat(dst, d, 'g', 15, 64)
}

// Typed returns the value that an expression sees in a text, and false if there is none. These are values: null;
// beginnings of true, yes, false and no; on and off; integers; and doubles.
func Typed(text []byte) (Value, bool) {
	switch begins := func(word string) bool {
		return len(text) <= len(word) && strings.EqualFold(string(text), word[:len(text)])
	}; {
	case len(text) == 0:
		return Value{}, false
	case len(text) == 4 && begins("null"):
		return Value{}, true
	case begins("true"), begins("yes"), len(text) == 2 && begins("on"):
		return boolean(true), true
	case begins("false"), begins("no"), len(text) >= 2 && begins("off"):
		return boolean(false), true
	}
	for len(text) > 0 && isSpace(text[0]) {
		text = text[1:]
	}
	if isInteger(text) {
		i, err := strconv.ParseInt(string(text), 10, 64)
		return integer(i), err == nil
	}
	d, ok := parseDouble(string(text))
	return double(d), ok
}

func isInteger(text []byte) bool {
	if len(text) > 1 && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	for _, c := range text {
		if !isDigit(c) {
			return false
		}
	}
	return len(text) > 0
}

// parseDouble refuses a number that a double cannot hold, and one that is too small for its full precision, as C does.
func parseDouble(text string) (float64, bool) {
	const smallestNormal = 0x1p-1022
	d, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return 0, false
	case math.Abs(d) < smallestNormal:
		mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
		return d, d == 0 && !strings.ContainsAny(mantissa, "123456789")
	}
	return d, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// isNameStart reports whether a variable's name may begin with c. All letters beyond ASCII may.
func isNameStart(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= 0x80 }

func isNamePart(c byte) bool { return isNameStart(c) || isDigit(c) }

func validName(name string) bool { return name != "" && nameLength(name) == len(name) }

// nameLength returns the length of the variable's name at the beginning of the text, or 0 if there is none.
func nameLength(text string) int {
	if text == "" || !isNameStart(text[0]) {
		return 0
	}
	n := 1
	for n < len(text) && isNamePart(text[n]) {
		n++
	}
	return n
}
