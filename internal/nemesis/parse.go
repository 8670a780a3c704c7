package nemesis

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// Parse reads one line of a script:
//
//	LINE     = FAULT SCHEDULE | ( "mix" | "cycle" ) SCHEDULE ":" FAULT { "|" FAULT }
//	SCHEDULE = [ "at" T | "every" T ] [ "for" T ] [ "jitter" T ]
//
// List tells what a FAULT may be. What Parse returns prints back as a text that
// Parse reads as the same fault: the words of a schedule come in the order above,
// times without their zeros (2m), nodes as n0, and what has a default with it. An
// unknown word is an error that names the nearest known one.
func Parse(text string) (Fault, error) {
	f, err := parse(text)
	if err != nil {
		return Fault{}, fmt.Errorf("the fault %q: %w", clip(text), err)
	}
	return f, nil
}

func parse(text string) (f Fault, err error) {
	r := &reader{}
	if r.tokens, err = tokens(text); err != nil {
		return f, err
	}
	first, ok := r.peek()
	if !ok {
		return f, fmt.Errorf("it is empty: write FAULT TARGET [at T | every T] [for T] [jitter T], such as kill leader every 20s for 10s")
	}
	if first.is(mix) || first.is(cycle) {
		err = f.parseList(r)
	} else {
		err = f.parseOne(r)
	}
	if err != nil {
		return f, err
	}
	return f, f.check()
}

func (f *Fault) parseOne(r *reader) error {
	e, err := r.effect()
	if err != nil {
		return err
	}
	f.effects = []effect{e}
	if err := f.when.parse(r); err != nil {
		return err
	}
	return r.end("word of a schedule", scheduleWords()...)
}

// parseList reads mix and cycle: one schedule for several faults.
func (f *Fault) parseList(r *reader) error {
	f.order = r.take().text
	if err := f.when.parse(r); err != nil {
		return err
	}
	if !r.mark(":") {
		return fmt.Errorf("after %s and its schedule a colon must stand, and then the faults, as in %s", f.order, listExample(f.order))
	}
	for {
		e, err := r.effect()
		if err != nil {
			return err
		}
		f.effects = append(f.effects, e)
		if t, ok := r.peek(); ok && slices.Contains(scheduleWords(), t.text) && !t.quoted {
			return fmt.Errorf("%q belongs before the colon: the faults of one %s share its schedule", t.text, f.order)
		}
		if !r.mark("|") {
			return r.end("word that may follow here", "|")
		}
	}
}

func listExample(order string) string {
	return order + " every 20s for 5s: kill random | pause leader"
}

// token is a word, a mark (":" or "|"), or what stood between quotes.
type token struct {
	text   string
	quoted bool
	mark   bool
}

func (t token) is(word string) bool { return t.text == word && !t.quoted && !t.mark }

// tokens takes a text apart. Single quotes hold a command together; a doubled
// one inside them stands for one.
func tokens(text string) ([]token, error) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, errors.New("it is not text in UTF-8")
	}
	var list []token
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		switch {
		case text == "":
			return list, nil
		case text[0] == ':' || text[0] == '|':
			list, text = append(list, token{text: text[:1], mark: true}), text[1:]
		case text[0] == '\'':
			quoted, rest, err := unquote(text[1:])
			if err != nil {
				return nil, err
			}
			list, text = append(list, token{text: quoted, quoted: true}), rest
		default:
			end := strings.IndexFunc(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune(":|'", c) })
			if end < 0 {
				end = len(text)
			}
			list, text = append(list, token{text: text[:end]}), text[end:]
		}
	}
}

// unquote reads up to the closing quote.
func unquote(text string) (quoted, rest string, err error) {
	var b strings.Builder
	for {
		before, after, closed := strings.Cut(text, "'")
		b.WriteString(before)
		if !closed {
			return "", "", errors.New("a quoted command does not end: close it with a single quote, and double a quote inside it")
		}
		if text = after; !strings.HasPrefix(after, "'") {
			return b.String(), after, nil
		}
		b.WriteByte('\'')
		text = after[1:]
	}
}

func quote(command string) string { return "'" + strings.ReplaceAll(command, "'", "''") + "'" }

// reader gives out the tokens of a line in their order.
type reader struct {
	tokens []token
	next   int
}

func (r *reader) peek() (token, bool) {
	if r.next == len(r.tokens) {
		return token{}, false
	}
	return r.tokens[r.next], true
}

// take returns the next token, an empty one at the end.
func (r *reader) take() token {
	t, ok := r.peek()
	if ok {
		r.next++
	}
	return t
}

// word takes the next token if it is this word.
func (r *reader) word(word string) bool {
	if t, ok := r.peek(); !ok || !t.is(word) {
		return false
	}
	r.next++
	return true
}

func (r *reader) mark(mark string) bool {
	if t, ok := r.peek(); !ok || !t.mark || t.text != mark {
		return false
	}
	r.next++
	return true
}

// must takes the next token, which must be this word.
func (r *reader) must(word, usage string) error {
	if r.word(word) {
		return nil
	}
	t, ok := r.peek()
	if !ok {
		return fmt.Errorf("%q is missing: write %s", word, usage)
	}
	return fmt.Errorf("%q stands where %q is expected: write %s", clip(t.text), word, usage)
}

// end complains of anything that is left.
func (r *reader) end(what string, known ...string) error {
	if t, ok := r.peek(); ok {
		return unknown(t, what, known)
	}
	return nil
}

func (r *reader) effect() (effect, error) {
	t := r.take()
	for _, f := range forms() {
		if t.is(f.word) {
			return f.parse(r)
		}
	}
	if t.text == "" && !t.quoted {
		return nil, errors.New("a fault is missing: after : and | one must stand")
	}
	words := []string{mix, cycle}
	for _, f := range forms() {
		words = append(words, f.word)
	}
	return nil, unknown(t, "fault", words)
}

// target reads one; further are words that the fault knows besides.
func (r *reader) target(further ...string) (target, error) {
	t, ok := r.peek()
	if !ok || t.mark {
		return target{}, fmt.Errorf("it names no target: write a node such as n0, or one of %s", strings.Join(append(further, targetWords()...), ", "))
	}
	r.next++
	if !t.quoted && slices.Contains(targetWords(), t.text) {
		return target{word: t.text}, nil
	}
	if number, ok := parseNode(t.text); ok && !t.quoted {
		return target{node: number}, nil
	}
	return target{}, unknown(t, "target", append(targetWords(), further...))
}

// maxTime keeps sums of times far from an overflow.
const maxTime = 1000 * time.Hour

// span reads a time of at least the given length.
func (r *reader) span(after string, least time.Duration) (time.Duration, error) {
	d, err := r.duration(after)
	switch {
	case err != nil:
		return 0, err
	case d <= 0:
		return 0, fmt.Errorf("the time after %q is %s: it must be more than zero", after, short(d))
	case d < least:
		return 0, fmt.Errorf("the time after %q is %s: the least is %s", after, short(d), short(least))
	}
	return d, nil
}

// duration reads a time of any sign.
func (r *reader) duration(after string) (time.Duration, error) {
	t, ok := r.peek()
	if !ok || t.mark {
		return 0, fmt.Errorf("after %q a time is missing, such as 10s or 2m", after)
	}
	r.next++
	d, err := time.ParseDuration(t.text)
	switch {
	case err != nil || t.quoted:
		return 0, fmt.Errorf("%q after %q is no time: write it as 500ms, 10s, 2m or 1h", clip(t.text), after)
	case d > maxTime || d < -maxTime:
		return 0, fmt.Errorf("the time after %q is %s: the most is %s", after, short(d), short(maxTime))
	}
	return d, nil
}

// short prints a time without the zeros that time.Duration appends.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// number reads a decimal number before a unit, such as 5 of 5%.
func number(text, unit string) (float64, bool) {
	digits, ok := strings.CutSuffix(text, unit)
	if !ok || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(digits, 64)
	return n, err == nil
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// unknown says that a word means nothing here, and which known one is nearest.
func unknown(t token, what string, known []string) error {
	if t.quoted {
		return fmt.Errorf("the quoted %s stands where a %s is expected; only exec takes quoted commands", clip(quote(t.text)), what)
	}
	near := slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(clip(t.text), a) - levenshtein.ComputeDistance(clip(t.text), b)
	})
	return fmt.Errorf("%q is no %s; the nearest is %s", clip(t.text), what, near)
}

// clip bounds what is repeated of a text that somebody else wrote.
func clip(text string) string {
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
