package elle

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"stroppy/internal/foreign"
)

// value is a value of EDN or JSON.
type value struct {
	kind kind
	text string  // of a word, a keyword (without its colon) and a string
	n    int64   // of a whole number
	list []value // of a vector, a list and a set; of a map its keys and values alternately
	line int
}

type kind uint8

const (
	null    kind = iota
	number       // a whole number
	word         // a symbol, a boolean, a character or another number, by its text
	keyword      // of EDN; in JSON every string is one
	text         // a string of EDN
	vector
	mapping
)

// String returns the value as in the file, truncated if it is long.
func (v value) String() string {
	switch v.kind {
	case null:
		return "nil"
	case number:
		return strconv.FormatInt(v.n, 10)
	case keyword:
		return ":" + v.text
	case text:
		return strconv.Quote(v.text)
	case vector, mapping:
		var parts []string
		for i, e := range v.list {
			if i == 4 {
				parts = append(parts, "…")
				break
			}
			parts = append(parts, e.String())
		}
		if v.kind == mapping {
			return "{" + strings.Join(parts, " ") + "}"
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return v.text
}

// get returns the value of a key in a map.
func (v value) get(key string) (value, bool) {
	for i := 0; i+1 < len(v.list); i += 2 {
		if k := v.list[i]; (k.kind == keyword || k.kind == text) && k.text == key {
			return v.list[i+1], true
		}
	}
	return value{}, false
}

// deepest is the maximal nesting of values.
const deepest = 100

// reader reads values of EDN (https://github.com/edn-format/edn). With json it reads JSON, whose syntax is EDN's with
// a colon after each key: a string is a keyword then.
type reader struct {
	data []byte
	at   int
	line int
	json bool
}

func (r *reader) fail(format string, args ...any) error {
	return &foreign.InputError{Line: r.line, What: fmt.Sprintf(format, args...)}
}

// space skips to the next value, and reports whether there is one.
func (r *reader) space() bool {
	for r.at < len(r.data) {
		switch c := r.data[r.at]; {
		case c == '\n':
			r.line++
			r.at++
		case c == ' ' || c == '\t' || c == '\r' || c == ',' || c == '\f' || c == ':' && r.json:
			r.at++
		case c == ';':
			for r.at < len(r.data) && r.data[r.at] != '\n' {
				r.at++
			}
		default:
			return true
		}
	}
	return false
}

// next reads a value. It returns false at the end of the data.
func (r *reader) next(depth int) (value, bool, error) {
	for {
		if !r.space() {
			return value{}, false, nil
		}
		if !strings.HasPrefix(string(r.data[r.at:min(r.at+2, len(r.data))]), "#_") {
			break
		}
		r.at += 2 // what follows is left out
		if _, ok, err := r.next(depth + 1); err != nil || !ok {
			return value{}, false, err
		}
	}
	if depth > deepest {
		return value{}, false, r.fail("values are nested more than %d deep", deepest)
	}
	v := value{line: r.line}
	var err error
	switch c := r.data[r.at]; c {
	case '[', '(':
		v.kind = vector
		err = r.items(&v, map[byte]byte{'[': ']', '(': ')'}[c], depth)
	case '{':
		v.kind = mapping
		if err = r.items(&v, '}', depth); err == nil && len(v.list)%2 != 0 {
			err = r.fail("a map has a key without a value")
		}
	case ']', ')', '}':
		err = r.fail("a %q closes nothing", c)
	case '"':
		v.kind = text
		if r.json {
			v.kind = keyword
		}
		v.text, err = r.quoted()
	case '#':
		return r.tagged(depth)
	case '^':
		r.at++ // metadata is of no interest
		if _, ok, err := r.next(depth + 1); err != nil || !ok {
			return value{}, false, err
		}
		return r.next(depth + 1)
	case '\\':
		r.at++
		_, size := utf8.DecodeRune(r.data[r.at:])
		r.at += max(size, 0)
		v.kind, v.text = word, "\\"+string(r.data[r.at-size:r.at])+r.token()
	default:
		v, err = r.atom()
	}
	return v, err == nil, err
}

// items reads the values up to a closing bracket.
func (r *reader) items(v *value, closing byte, depth int) error {
	began := r.line
	r.at++
	for r.space() {
		if r.data[r.at] == closing {
			r.at++
			return nil
		}
		e, ok, err := r.next(depth + 1)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		v.list = append(v.list, e)
	}
	return &foreign.InputError{Line: began, What: fmt.Sprintf("what begins here has no %q at its end: the file is cut off", closing)}
}

// tagged reads what follows a #: a set, or a tagged value, whose tag is dropped.
func (r *reader) tagged(depth int) (value, bool, error) {
	r.at++
	if r.at < len(r.data) && r.data[r.at] == '{' {
		v := value{kind: vector, line: r.line}
		err := r.items(&v, '}', depth)
		return v, err == nil, err
	}
	if r.token() == "" {
		return value{}, false, r.fail("a # has no tag")
	}
	return r.next(depth + 1)
}

func (r *reader) quoted() (string, error) {
	began, first := r.line, r.at
	for r.at++; r.at < len(r.data); r.at++ {
		switch r.data[r.at] {
		case '"':
			r.at++
			whole := r.data[first:r.at]
			inner := string(whole[1 : len(whole)-1])
			if r.json && strings.Contains(inner, `\`) {
				_ = json.Unmarshal(whole, &inner) // an escape that JSON lacks stays as it is
			}
			return inner, nil
		case '\\':
			r.at++
		case '\n':
			r.line++
		}
	}
	return "", &foreign.InputError{Line: began, What: "a string has no end: the file is cut off"}
}

// token reads up to the end of a word.
func (r *reader) token() string {
	first := r.at
	for r.at < len(r.data) && !strings.ContainsRune(" \t\r\n\f,;[](){}\"", rune(r.data[r.at])) {
		r.at++
	}
	return string(r.data[first:r.at])
}

func (r *reader) atom() (value, error) {
	v := value{line: r.line}
	t := r.token()
	if t == "" {
		return v, r.fail("%q begins no value of EDN", r.data[r.at])
	}
	switch {
	case t == "nil", t == "null" && r.json:
	case t[0] == ':' && len(t) > 1:
		v.kind, v.text = keyword, t[1:]
	default:
		if n, err := strconv.ParseInt(strings.TrimSuffix(t, "N"), 10, 64); err == nil {
			v.kind, v.n = number, n
		} else {
			v.kind, v.text = word, t
		}
	}
	return v, nil
}
