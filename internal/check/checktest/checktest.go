// Package checktest has histories and end states made by hand, for the tests of checkers.
package checktest

import (
	"iter"
	"stroppy/internal/check"
	"stroppy/internal/history"
)

// History is a history made by hand.
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

// End is an end state made by hand.
type End struct {
	ObjectRows     []history.Object
	LedgerRows     []history.Row
	UnexpectedRows []string
}

func (f *End) Objects() iter.Seq2[history.Object, error] { return Each(f.ObjectRows) }

func (f *End) Rows() iter.Seq2[history.Row, error] { return Each(f.LedgerRows) }

func (f *End) Unexpected() []string { return f.UnexpectedRows }

// Each goes through a list without an error.
func Each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// ByName finds results by their names.
func ByName(results []check.Result) map[string]check.Result {
	m := map[string]check.Result{}
	for _, r := range results {
		m[r.Name] = r
	}
	return m
}
