package scenario

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longAlone is the length of a secret that no sentence contains by chance.
const longAlone = 20

// Scrubber returns a function that removes the secrets of the URL, and others, from a text such as an error of a
// library.
//
// It replaces:
//   - the URL, by the result of Redact;
//   - a distinctive secret, wherever it occurs;
//   - any other secret in the place of a value: the password of a URL, a text in quotes, or a value after = of a secret
//     name.
//
// A short secret, a word or a number stays within a sentence, because a mask there would reveal it. A secret that the
// shown URL contains anyway stays too, except in the place of the password. A secret is found as written, decoded,
// percent-encoded and as Go quotes it.
func Scrubber(raw string, others ...string) func(string) string {
	a, _ := parseAddress(raw)
	s := scrubber{raw: raw, shown: Redact(raw)}
	s.rawAnywhere = strings.Contains(raw, "://") || distinctive(raw)
	for _, secret := range slices.Concat(a.secrets, others) {
		s.add(secret)
	}
	// The longest first, so that no part of one is left where another begins it.
	slices.SortStableFunc(s.secrets, func(x, y wanted) int { return len(y.text) - len(x.text) })
	return s.scrub
}

type scrubber struct {
	raw, shown  string
	rawAnywhere bool
	secrets     []wanted
}

// wanted is a secret in one of its spellings.
type wanted struct {
	text     string
	anywhere bool // replaced wherever it stands
	known    bool // the shown URL has it as a word
	number   bool
}

func (s *scrubber) add(secret string) {
	for _, text := range spellings(secret) {
		if text == "" || slices.ContainsFunc(s.secrets, func(w wanted) bool { return w.text == text }) {
			continue
		}
		s.secrets = append(s.secrets, wanted{
			text:     text,
			anywhere: distinctive(text) && !strings.Contains(s.shown, text),
			known:    hasWord(s.shown, text),
			number:   strings.Trim(text, "0123456789") == "",
		})
	}
}

// escape matches a percent-encoded byte.
var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

// spellings returns the forms in which a library may write a secret.
func spellings(secret string) []string {
	once := goQuoted(secret)
	decoded, _ := url.QueryUnescape(secret) // empty if it is malformed
	list := []string{secret, decoded, once, goQuoted(once)}
	for _, encoded := range []string{url.PathEscape(secret), url.QueryEscape(secret), url.UserPassword("", secret).String()[len(":"):]} {
		list = append(list, encoded, escape.ReplaceAllStringFunc(encoded, strings.ToLower))
	}
	return list
}

// goQuoted returns the text as %q writes it, without the quotes around it.
func goQuoted(text string) string {
	q := strconv.Quote(text)
	return q[1 : len(q)-1]
}

func (s *scrubber) scrub(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		from, to := s.at(text, i)
		if from == "" {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(to)
		i += len(from)
	}
	return out.String()
}

// at returns what is to be replaced at the place i of a text, and by what.
func (s *scrubber) at(text string, i int) (from, to string) {
	rest := text[i:]
	if s.raw != s.shown && s.raw != "" && strings.HasPrefix(rest, s.raw) && (s.rawAnywhere || quoted(text, i, i+len(s.raw))) {
		return s.raw, s.shown
	}
	for _, w := range s.secrets {
		if strings.HasPrefix(rest, w.text) && (w.anywhere || w.placed(text, i)) {
			return w.text, hidden
		}
	}
	return "", ""
}

// marks stand between the parts of a URL, and not in sentences as commas and points do.
const marks = ":/?#@&"

// placed reports whether the secret at text[i:] is in the place of a value.
func (w *wanted) placed(text string, i int) bool {
	j := i + len(w.text)
	before, after := at(text, i-1), at(text, j)
	switch {
	case before == ':' && after == '@':
		return true
	case w.known:
		return false
	case quoted(text, i, j), after == '@' && !alphanumeric(before), before == '=' && !alphanumeric(after) && isSecret(nameBefore(text, i-1)):
		return true
	case w.number: // after a colon it is a port
		return false
	}
	return strings.IndexByte(marks, before) >= 0 && (strings.IndexByte(marks, after) >= 0 || isQuote(after))
}

// quoted reports whether text[i:j] is in quotes, which may be quoted themselves.
func quoted(text string, i, j int) bool {
	before, after := at(text, i-1), at(text, j)
	return isQuote(before) && (after == before || after == '\\' && at(text, j+1) == before)
}

func isQuote(b byte) bool { return b == '"' || b == '\'' || b == '`' }

// nameBefore returns the name that ends at text[end].
func nameBefore(text string, end int) string {
	return text[strings.LastIndexFunc(text[:end], func(r rune) bool {
		return r != '_' && r != '-' && r < utf8.RuneSelf && !alphanumeric(byte(r))
	})+1 : end]
}

// at returns a byte of the text, or 0 outside it.
func at(text string, i int) byte {
	if i < 0 || i >= len(text) {
		return 0
	}
	return text[i]
}

func alphanumeric(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= utf8.RuneSelf
}

// hasWord reports whether text contains word without an adjacent letter or digit.
func hasWord(text, word string) bool {
	for i := range text {
		if strings.HasPrefix(text[i:], word) && !alphanumeric(at(text, i-1)) && !alphanumeric(at(text, i+len(word))) {
			return true
		}
	}
	return false
}

// distinctive reports whether no sentence contains the secret by chance. It is long, mixes letters with digits, has
// capitals within words, or has a sign that words and numbers lack.
func distinctive(secret string) bool {
	switch {
	case len(secret) < leastAlone:
		return false
	case len(secret) >= longAlone, sign.MatchString(secret):
		return true
	}
	// PostgreSQL has one capital within it.
	return strings.ContainsAny(secret, "0123456789") && letter.MatchString(secret) || len(inner.FindAllString(secret, 2)) > 1
}

var (
	sign   = regexp.MustCompile("[^a-zA-Z0-9 .,:;\\-_/=()\\[\\]\"'`]")
	letter = regexp.MustCompile(`[a-zA-Z]`)
	inner  = regexp.MustCompile(`[a-z][A-Z]`)
)
