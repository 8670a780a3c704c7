package track

import "strings"

// The text of a statement has param for each parameter, and own for the id of the transaction.
const (
	param = '\x00'
	own   = '\x01'
)

// The kinds of tokens. Any other character is its own kind.
const (
	word    = 'w'
	quoted  = 'q' // an identifier in quotes
	literal = 's'
	number  = 'n'
)

// token is a part of a statement, without blanks and comments.
type token struct {
	kind     byte
	text     string // of an identifier in quotes: without them
	from, to int
	depth    int // of the parentheses around it
}

// is reports whether the token is one of these words.
func (t token) is(words ...string) bool {
	for _, w := range words {
		if t.kind == word && strings.EqualFold(t.text, w) {
			return true
		}
	}
	return false
}

// names reports whether the token is an identifier. Upper and lower case are the same.
func (t token) names(name string) bool {
	return (t.kind == word || t.kind == quoted) && strings.EqualFold(t.text, name)
}

// tokenize splits a statement. It returns false for text that databases read differently.
func tokenize(s string) (list []token, ok bool) {
	depth := 0
	for i := 0; i < len(s); {
		c, n := s[i], 1
		t := token{kind: c, from: i, depth: depth}
		switch {
		case c == ' ', '\t' <= c && c <= '\r':
			i++
			continue
		case strings.HasPrefix(s[i:], "--"):
			i += len(s[i:]) - len(strings.TrimLeft(s[i:], "-"))
			if end := strings.IndexByte(s[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(s)
			}
			continue
		case strings.HasPrefix(s[i:], "/*"), c == '#', c == '$', c == own:
			return nil, false
		case c == '\'', c == '"', c == '`':
			if n = quotedLength(s[i:]); n < 0 {
				return nil, false
			}
			t.kind, t.text = quoted, s[i+1:i+n-1]
			if c == '\'' {
				t.kind = literal
			}
		case nameByte(c) && !digit(c):
			for i+n < len(s) && nameByte(s[i+n]) {
				n++
			}
			t.kind, t.text = word, s[i:i+n]
		case digit(c):
			for i+n < len(s) && (nameByte(s[i+n]) || s[i+n] == '.') {
				n++
			}
			t.kind, t.text = number, s[i:i+n]
		case c == '(':
			depth++
		case c == ')':
			depth--
			t.depth = depth
		}
		i += n
		t.to = i
		list = append(list, t)
	}
	return list, depth == 0
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func nameByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= 0x80 || digit(c)
}

// quotedLength returns the length of a text in quotes, and -1 if it has no end or a backslash. Databases read a
// backslash in different ways.
func quotedLength(s string) int {
	for n := 1; n < len(s); n++ {
		switch {
		case s[n] == '\\':
			return -1
		case s[n] == s[0] && n+1 < len(s) && s[n+1] == s[0]:
			n++
		case s[n] == s[0]:
			return n + 1
		}
	}
	return -1
}
