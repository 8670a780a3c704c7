package nemesis

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stroppy/internal/spelling"
)

// Parse reads one line of a script:
//
//	LINE     = FAULT SCHEDULE | ( "mix" | "cycle" ) SCHEDULE ":" FAULT { "|" FAULT }
//	SCHEDULE = [ "at" T | "every" T ] [ "for" T ] [ "jitter" T ]
//
// List returns the forms of FAULT. The String of the result is a text that Parse reads as the same
// fault: the words of a schedule are in the order above, times have no zeros (2m), nodes are named
// n0, and defaults are written out. The error for an unknown word names the nearest known word, or
// all.
func Parse(text string) (Fault, error) {
	f, err := parse(text)
	if err != nil {
		return Fault{}, fmt.Errorf("the fault %q: %w", clip(text), err)
	}
	return f, nil
}

func parse(text string) (f Fault, err error) {
	r, err := tokens(text)
	if err != nil {
		return f, err
	}
	switch first := r.peek(); first {
	case "":
		return f, errors.New("it is empty: write FAULT TARGET [at T | every T] [for T] [jitter T], such as kill leader every 20s for 10s")
	case mix, cycle:
		err = f.parseList(r)
	default:
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
	f.order = r.take()
	if err := f.when.parse(r); err != nil {
		return err
	}
	if !r.word(":") {
		return fmt.Errorf("after %s and its schedule a colon must stand, and then the faults, as in %s", f.order, listExample(f.order))
	}
	for {
		e, err := r.effect()
		if err != nil {
			return err
		}
		f.effects = append(f.effects, e)
		if t := r.peek(); slices.Contains(scheduleWords(), t) {
			return fmt.Errorf("%q belongs before the colon: the faults of one %s share its schedule", t, f.order)
		}
		if !r.word("|") {
			return r.end("word that may follow here", "|")
		}
	}
}

func listExample(order string) string {
	return order + " every 20s for 5s: kill random | pause leader"
}

// reader returns the tokens of a line: words, the marks : and |, and commands with their single
// quotes.
type reader struct{ rest []string }

// tokenForm matches a command and its closing quote, a mark, or a word. A doubled quote inside a
// command stands for one.
var tokenForm = regexp.MustCompile(`'(?:[^']|'')*('?)|[:|]|[^\s\v\x{85}\pZ:|']+`)

func tokens(text string) (*reader, error) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, errors.New("it is not text in UTF-8")
	}
	r := &reader{}
	for _, found := range tokenForm.FindAllStringSubmatch(text, -1) {
		if quoted(found[0]) && found[1] == "" {
			return nil, errors.New("a quoted command does not end: close it with a single quote, and double a quote inside it")
		}
		r.rest = append(r.rest, found[0])
	}
	return r, nil
}

func quoted(token string) bool { return strings.HasPrefix(token, "'") }

func quote(command string) string { return "'" + strings.ReplaceAll(command, "'", "''") + "'" }

func unquote(token string) string { return strings.ReplaceAll(token[1:len(token)-1], "''", "'") }

// peek returns the next token, or an empty one at the end.
func (r *reader) peek() string {
	if len(r.rest) == 0 {
		return ""
	}
	return r.rest[0]
}

func (r *reader) take() string {
	t := r.peek()
	r.rest = r.rest[min(1, len(r.rest)):]
	return t
}

// argument takes the next token. It returns an empty one before a mark and at the end.
func (r *reader) argument() string {
	if t := r.peek(); t == ":" || t == "|" {
		return ""
	}
	return r.take()
}

// word takes the next token if it is this one.
func (r *reader) word(word string) bool {
	found := r.peek() == word
	if found {
		r.take()
	}
	return found
}

// must takes the next tokens, which must be these words.
func (r *reader) must(usage string, words ...string) error {
	for _, word := range words {
		switch t := r.peek(); {
		case r.word(word):
		case t == "":
			return fmt.Errorf("%q is missing: write %s", word, usage)
		default:
			return fmt.Errorf("%q is in the place of %q: write %s", clip(t), word, usage)
		}
	}
	return nil
}

// end returns an error if a token is left.
func (r *reader) end(what string, known ...string) error {
	if t := r.peek(); t != "" {
		return unknown(t, what, known)
	}
	return nil
}

func (r *reader) effect() (e effect, err error) {
	words := []string{mix, cycle}
	t := r.take()
	for _, k := range kinds() {
		if words = append(words, k.word); t != k.word {
			continue
		}
		e.word = k.word
		if k.plan == nil {
			e.target, err = r.target()
		}
		if err == nil && k.read != nil {
			err = k.read(&e, r)
		}
		return e, err
	}
	if t == "" {
		return e, errors.New("a fault is missing: after : and | one must stand")
	}
	return e, unknown(t, "fault", words)
}

// target reads a target. The error also names the further words.
func (r *reader) target(further ...string) (target, error) {
	switch t := r.argument(); {
	case t == "":
		return "", fmt.Errorf("it names no target: write a node such as n0, or one of %s", strings.Join(append(further, targetWords()...), ", "))
	case slices.Contains(targetWords(), t):
		return target(t), nil
	default:
		number, err := strconv.ParseUint(strings.TrimPrefix(t, "n"), 10, 16) // n0 or 0
		if err != nil {
			return "", unknown(t, "target", append(targetWords(), further...))
		}
		return target(nodeName(int(number))), nil
	}
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
	t := r.argument()
	if t == "" {
		return 0, fmt.Errorf("after %q a time is missing, such as 10s or 2m", after)
	}
	d, err := time.ParseDuration(t)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q after %q is no time: write it as 500ms, 10s, 2m or 1h", clip(t), after)
	case d.Abs() > maxTime:
		return 0, fmt.Errorf("the time after %q is %s: the most is %s", after, short(d), short(maxTime))
	}
	return d, nil
}

// short prints a time without the zeros that time.Duration appends.
func short(d time.Duration) string {
	text := d.String()
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, end) {
			text = text[:len(text)-2]
		}
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

// meanings returns words of other tools with the fault that each means.
func meanings() map[string]string {
	known := map[string]string{
		"master": primary, "replica": standby, "slave": standby, "secondary": standby, "replicas": standbys, "any": random, "everything": all,
		"after": "at", "in": "at", "each": "every", "during": "for", "lasting": "for",
	}
	for _, k := range kinds() {
		for _, word := range k.also {
			known[word] = k.word
		}
	}
	return known
}

// unknown returns the error for an unknown word. It names the nearest known word, or all.
func unknown(t, what string, known []string) error {
	if quoted(t) {
		return fmt.Errorf("the quoted %s is in the place of a %s; only exec and chaos take a quoted text", clip(t), what)
	}
	return fmt.Errorf("%q is no %s; %s", clip(t), what, spelling.Hint(t, known, meanings(), "take one of "+strings.Join(known, ", ")))
}

// clip bounds the length of a user's text in an error.
func clip(text string) string {
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
