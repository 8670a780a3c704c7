package invariants

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Kind is the kind of an expectation.
type Kind uint8

// The kinds of expectations.
const (
	_         Kind = iota
	Value          // one value, equal to a number
	Unchanged      // one value, as it was before the first transaction
	Empty          // no row
	Equal          // two queries with equal rows, in any order
	Sum            // one value: its start plus the sum of a variable over the committed transactions
)

// Expectation describes the results that an invariant accepts.
type Expectation struct {
	Kind     Kind
	Number   *big.Rat // of Value
	Variable string   // of Sum
	text     string   // as it was written
}

func (e Expectation) String() string { return e.text }

// Invariant is a query with an expectation.
type Invariant struct {
	Name   string
	Expect Expectation
	SQL    string // one query, or two for Equal
	Start  Answer // before the first transaction; of Unchanged and Sum
}

// Queries returns the number of queries.
func (v *Invariant) Queries() int {
	if v.Expect.Kind == Equal {
		return 2
	}
	return 1
}

// Races reports whether the invariant can only be decided while no client writes.
func (v *Invariant) Races() bool { return v.Expect.Kind == Sum }

// Most bounds the number of invariants.
const Most = 64

// form matches the beginning of an invariant.
var form = regexp.MustCompile(`(?is)^\s*([^:\n]*[^:\s])\s*:\s*` +
	`(unchanged|empty|equal|sum\(\s*:[\pL_][\pL_0-9]*\s*\)|[+-]?[0-9]+(?:\.[0-9]+)?)\s*:(.*)$`)

var errForm = errors.New("it must be NAME: EXPECTATION: SQL, and the expectation a number, unchanged, empty, equal " +
	"or sum(:VARIABLE), such as 'stock: unchanged: SELECT sum(pieces) FROM stock'")

// Parse parses invariants of the form NAME: EXPECTATION: SQL, one in a line. A line of another form continues the SQL.
func Parse(lines string) (list []Invariant, err error) {
	for line := range strings.Lines(lines) {
		parts := form.FindStringSubmatch(line)
		switch {
		case parts == nil && strings.TrimSpace(line) == "":
		case parts == nil && len(list) == 0:
			return nil, errForm
		case parts == nil:
			list[len(list)-1].SQL += line
		default:
			list = append(list, Invariant{Name: parts[1], Expect: expectation(parts[2]), SQL: strings.TrimLeft(parts[3], " \t")})
		}
	}
	names := map[string]bool{}
	for i := range list {
		v := &list[i]
		v.SQL = strings.TrimRight(v.SQL, "\n")
		switch {
		case strings.TrimSpace(v.SQL) == "":
			return nil, fmt.Errorf("the invariant %s has no SQL", v.Name)
		case names[v.Name]:
			return nil, fmt.Errorf("two invariants have the name %s: give each its own", v.Name)
		case len(v.Name) > keptText:
			return nil, fmt.Errorf("the name %s… is longer than %d bytes", cut(v.Name, 20), keptText)
		}
		names[v.Name] = true
	}
	if len(list) > Most {
		return nil, fmt.Errorf("there are %d invariants: give at most %d", len(list), Most)
	}
	return list, nil
}

// expectation parses an expectation that matches form.
func expectation(text string) Expectation {
	text = strings.ReplaceAll(text, " ", "")
	e := Expectation{text: strings.ToLower(text)}
	switch e.text {
	case "unchanged":
		e.Kind = Unchanged
	case "empty":
		e.Kind = Empty
	case "equal":
		e.Kind = Equal
	default:
		if number, ok := Number(text); ok {
			e.Kind, e.Number = Value, number
			break
		}
		_, variable, _ := strings.Cut(text, ":")
		e.Kind, e.Variable = Sum, strings.TrimSpace(strings.TrimSuffix(variable, ")"))
		e.text = "sum(:" + e.Variable + ")"
	}
	return e
}

// Lines is the inverse of Parse.
func Lines(list []Invariant) string {
	var lines []string
	for i := range list {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", list[i].Name, list[i].Expect, list[i].SQL))
	}
	return strings.Join(lines, "\n")
}

// Starts returns the answers at the start as a text for the header of a recording.
func Starts(list []Invariant) string {
	starts := make([]Answer, len(list))
	for i := range list {
		starts[i] = list[i].Start
	}
	text, _ := json.Marshal(starts) // of strings and numbers it cannot fail
	return string(text)
}

// Recall returns the invariants of a recording from the texts in its header.
func Recall(lines, starts string) ([]Invariant, error) {
	list, err := Parse(lines)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var answers []Answer
	err = json.Unmarshal([]byte(starts), &answers)
	for i := range list {
		v := &list[i]
		if err == nil && i < len(answers) {
			v.Start = answers[i]
		}
		if (v.Expect.Kind == Unchanged || v.Expect.Kind == Sum) && v.Start.Value == nil {
			return nil, fmt.Errorf("the header of the history has no start of the invariant %s: restore it from a copy", v.Name)
		}
	}
	return list, nil
}

// Wrong returns why the answers before the first transaction cannot belong to the invariant, or an empty text.
func (v *Invariant) Wrong(list []Answer) string {
	a := &list[0]
	if v.Expect.Kind != Empty && v.Expect.Kind != Equal {
		switch {
		case a.Columns > 1:
			return fmt.Sprintf("it must return one value, and it returned %d columns", a.Columns)
		case a.Rows > 1:
			return fmt.Sprintf("it must return one value, and it returned %d rows", a.Rows)
		case a.Rows == 0:
			return "it must return one value, and it returned no row"
		case a.Value == nil:
			return "it must return one value, and it returned NULL: use coalesce"
		}
		if _, ok := a.number(); !ok && v.Expect.Kind != Unchanged {
			return "it must return a number, and it returned " + cut(*a.Value, keptText)
		}
	}
	if v.Expect.Kind == Unchanged || v.Expect.Kind == Sum || v.holds(list, v.want()) {
		return ""
	}
	returned := make([]string, len(list))
	for i := range list {
		returned[i] = fmt.Sprintf("%d rows", list[i].Rows)
		if list[i].Rows > 0 {
			returned[i] += " (the first: " + list[i].First[0] + ")"
		}
	}
	return fmt.Sprintf("it does not hold before the first transaction: it expects %s, and it returned %s: "+
		"correct the data or the invariant", v.Expect, strings.Join(returned, " and "))
}
