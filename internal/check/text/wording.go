package text

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// wording is the text of one kind of fact. A kind may have several wordings, for different values of fields. A wording
// applies to a fact that has the same values as the fields of of that are not zero. The first one that applies is
// used; an empty text means none.
//
// The text has names of fields in braces, and each may have a form:
//
//	{Reader}            the field as its type demands: a transaction, an object, an amount, a duration …
//	{Writer or nobody}  the same, and another text for the zero value
//	{By!}               the same; the wording applies only if the value is not zero
//	{By id}             a transaction or an element without its noun
//	{Found ,}           a number with commas
//	{Found record}      a number with its noun, which may be a field: {Found Noun}
//	{Found record was}  the same with the matching form of "to be"
//	{# record}          in a heading: the number of violations
//
// The words one, book and part stand for the nouns of the workload, in braces and in forms.
type wording struct {
	of   fact.Fact
	text string
}

// byKind groups wordings by the type of their facts.
func byKind(lists ...[]wording) func() map[reflect.Type][]wording {
	return sync.OnceValue(func() map[reflect.Type][]wording {
		kinds := map[reflect.Type][]wording{}
		for _, w := range slices.Concat(lists...) {
			kind := reflect.TypeOf(w.of)
			kinds[kind] = append(kinds[kind], w)
		}
		return kinds
	})
}

var (
	clauses = byKind(commonClauses, bookClauses, presenceClauses, groupClauses, orderClauses, runClauses,
		registerClauses, logClauses, replicaClauses, listClauses, sessionClauses, invariantClauses, rowClauses)
	headings = byKind(totalHeadings, registerHeadings, logHeadings, listHeadings, rowHeadings)
	listings = byKind(totalListings)
)

// say returns the text of the first wording for a fact. n is the number of violations. It returns an empty string if
// there is no wording.
func (s Speaker) say(kinds map[reflect.Type][]wording, f fact.Fact, n int) string {
	for _, w := range kinds[reflect.TypeOf(f)] {
		if !w.applies(f) {
			continue
		}
		if text := s.replace(w.text, f, n); text != "" || w.text == "" {
			return text
		}
	}
	return ""
}

func (w *wording) applies(f fact.Fact) bool {
	want, got := reflect.ValueOf(w.of), reflect.ValueOf(f)
	for i := range want.NumField() {
		if field := want.Field(i); !field.IsZero() && !field.Equal(got.Field(i)) {
			return false
		}
	}
	return true
}

// fill replaces the names in braces by the fields of a fact.
func (s Speaker) fill(text string, f fact.Fact) string { return s.replace(text, f, 0) }

// replace is like fill, with a number of violations. It returns an empty string if a field that must not be zero is
// zero.
func (s Speaker) replace(text string, f fact.Fact, n int) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		field, form, _ := strings.Cut(name, " ")
		field, needed := strings.CutSuffix(field, "!")
		switch of := reflect.ValueOf(f); {
		case needed && of.FieldByName(field).IsZero():
			return ""
		case field == "#":
			b.WriteString(check.Plural(n, s.nouns(form, of)))
		case field[0] >= 'a':
			b.WriteString(s.nouns(field, of))
		default:
			b.WriteString(s.field(of, field, form))
		}
		text = after
	}
}

// nouns replaces the words for the nouns of the workload, and names of fields.
func (s Speaker) nouns(text string, of reflect.Value) string {
	words := strings.Fields(text)
	for i, word := range words {
		switch {
		case word == "one":
			words[i] = s.one()
		case word == "book":
			words[i] = s.book()
		case word == "part":
			words[i] = s.part()
		case word[0] <= 'Z':
			words[i] = of.FieldByName(word).String()
		}
	}
	return strings.Join(words, " ")
}

// field returns a field of a fact in a form.
func (s Speaker) field(of reflect.Value, name, form string) string {
	value := reflect.Indirect(of.FieldByName(name))
	if otherwise, ok := strings.CutPrefix(form, "or "); ok && value.IsZero() {
		return otherwise
	}
	switch v := value.Interface().(type) {
	case fact.Member:
		return s.Member(v)
	case fact.Object:
		return s.On(v)
	case fact.Element:
		if form == "id" {
			return string(v)
		}
		return listElement(v)
	case fact.Elements:
		return s.listOf(v)
	case fact.ListRead:
		return s.listRead(v, form == "short")
	case history.ID:
		if form == "id" {
			return v.String()
		}
		return s.id(v)
	case time.Duration:
		if atLeast := of.FieldByName("AtLeast"); atLeast.IsValid() && atLeast.Bool() {
			return "at least " + check.Lasted(v)
		}
		return check.Lasted(v)
	case int64:
		if form == "" {
			return s.Amount(v)
		}
	}
	if form == "" {
		return fmt.Sprint(value.Interface())
	}
	n := value.Convert(reflect.TypeFor[uint64]()).Uint()
	noun, are := strings.CutSuffix(form, " was")
	noun = s.nouns(noun, of)
	switch {
	case form == ",":
		return check.Group(n)
	case are:
		return areOf(n, noun)
	}
	return check.Plural(n, noun)
}

// areOf formats a count of a noun with the matching form of "to be".
func areOf(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return check.Plural(n, noun) + " were"
}
