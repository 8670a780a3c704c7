// Package checktest provides histories and end states for the tests of checkers.
package checktest

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
)

// History is an in-memory history.
type History struct {
	Txns       []history.Transaction
	Incomplete bool
	Run        uint64
	Keys       map[string]string
	Err        error
}

func (r *History) Header() history.Header { return history.Header{Run: r.Run, Keys: r.Keys} }
func (r *History) Complete() bool         { return !r.Incomplete }
func (r *History) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for i := range r.Txns {
			if !yield(history.Record{Transaction: &r.Txns[i], Ref: history.Ref{File: "h", Record: i}}, nil) {
				return
			}
		}
		if r.Err != nil {
			yield(history.Record{}, r.Err)
		}
	}
}

// End is an in-memory end state.
type End struct {
	ObjectRows     []history.Object
	LedgerRows     []history.Row
	UnexpectedRows []string
}

func (f *End) Objects() iter.Seq2[history.Object, error] { return Each(f.ObjectRows) }

func (f *End) Rows() iter.Seq2[history.Row, error] { return Each(f.LedgerRows) }

func (f *End) Unexpected() []string { return f.UnexpectedRows }

// Each yields the elements of a list without errors.
func Each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Reported is a result with its texts.
type Reported struct {
	check.Result
	Detail    string // the sentence of the report, and one line for each instance
	Anomalies []text.Anomaly
}

// Results returns results without their texts.
func Results(list []Reported) (results []check.Result) {
	for _, r := range list {
		results = append(results, r.Result)
	}
	return results
}

// Verdict returns the verdict of results.
func Verdict(list []Reported) check.Status { return check.Verdict(Results(list)) }

// ByName indexes results by name.
func ByName[R check.Result | Reported](results []R) map[string]R {
	m := map[string]R{}
	for _, r := range results {
		switch named := any(r).(type) {
		case check.Result:
			m[named.Name] = r
		case Reported:
			m[named.Name] = r
		}
	}
	return m
}

// Misexplained describes an error in the explanations of results, and is empty if there is none. An anomaly
// must be one sentence. Its edges must form a closed path, except for a single read. Its known transactions
// must be in the order of their beginnings.
func Misexplained(results []Reported) string {
	for _, r := range results {
		for _, a := range r.Anomalies {
			wrong := func(what string) string { return fmt.Sprintf("%s, %s: %s: %+v", r.Name, a.Name, what, a) }
			if strings.Contains(a.Detail, "\n") || a.Count < 1 {
				return wrong("it is no sentence")
			}
			for i, e := range a.Cycle {
				next := a.Cycle[(i+1)%len(a.Cycle)]
				switch {
				case len(a.Cycle) > 1 && e.To != next.From && i < 31: // only the beginning of a longer cycle is kept
					return wrong(fmt.Sprintf("edge %d does not lead to the next one", i+1))
				case e.Text == "" || strings.HasSuffix(e.Text, ".") || e.Kind == 0:
					return wrong(fmt.Sprintf("edge %d does not say why", i+1))
				}
			}
			if !slices.IsSortedFunc(a.Spans, func(x, y text.Span) int { return cmp.Compare(x.Begin, y.Begin) }) {
				return wrong("its transactions are not in the order of time")
			}
			for _, s := range a.Spans {
				if !slices.ContainsFunc(a.Cycle, func(e text.Edge) bool { return e.From == s.ID || e.To == s.ID }) {
					return wrong(fmt.Sprintf("%v is in no edge", s.ID))
				}
			}
		}
	}
	return ""
}

// Worded returns results with their texts.
func Worded(results []check.Result, words check.Words) []Reported {
	say := text.Speaker{Words: words}
	var list []Reported
	for _, r := range results {
		reported := Reported{r, say.Detail(&r), say.Anomalies(&r)}
		for _, f := range r.Findings {
			for _, instance := range f.Instances {
				reported.Detail += "\n" + check.Capital(say.Clause(instance)) + "."
			}
		}
		list = append(list, reported)
	}
	return list
}
