// Package elle reads and writes histories as Jepsen records them and Elle checks them
// (Kingsbury and Alvaro, VLDB 2020; https://github.com/jepsen-io/elle): a map a line, in EDN or
// in JSON, of what a process began and of what it came to,
//
//	{:type :invoke, :f :txn, :process 0, :time 1, :index 0, :value [[:append 1 1] [:r 2 nil]]}
//	{:type :ok,     :f :txn, :process 0, :time 9, :index 1, :value [[:append 1 1] [:r 2 [4 5]]]}
//
// in which :ok is committed, :fail aborted and :info unknown. The lines are in the order of real time. Lists are
// appended to, [:append k v], and read, [:r k [v …]]; registers are written, [:w k v], and read, [:r k v]. Each element
// of a list, and each value of a register, is written once.
package elle

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/lists"
	"stroppy/internal/check/sessions"
	"stroppy/internal/foreign"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Recorded converts a recorded run to transactions. It returns an error for a run of another kind.
type Recorded func(run *history.Reader) (iter.Seq2[*lists.Transaction, error], error)

// Format returns the format. recorded converts runs for writing; with nil, the format is only read.
func Format(recorded Recorded) foreign.Format {
	var export func(run *history.Reader, to io.Writer) (foreign.Written, error)
	if recorded != nil {
		export = func(run *history.Reader, to io.Writer) (foreign.Written, error) {
			transactions, err := recorded(run)
			if err != nil {
				return foreign.Written{}, &foreign.InputError{What: err.Error()}
			}
			return Write(to, transactions)
		}
	}
	return foreign.Format{
		Name: "elle", About: "appends to lists and reads of them, or writes and reads of registers, a map a line in EDN or JSON; of Jepsen and Elle",
		Levels: isolation.Levels(), Default: isolation.StrictSerializable,
		Check: checkFile, Export: export,
	}
}

func checkFile(ctx context.Context, path string, expect isolation.Level) (*foreign.Checked, error) {
	data, err := foreign.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h, err := Read(data)
	if err != nil {
		return nil, err
	}
	return h.check(ctx, expect)
}

// check decides a history.
func (h *History) check(ctx context.Context, expect isolation.Level) (*foreign.Checked, error) {
	c := &foreign.Checked{Transactions: len(h.Transactions), Operations: h.Operations, Name: who}
	for i := range h.Transactions {
		if h.Transactions[i].Outcome == history.Aborted {
			c.Aborted += len(h.Transactions[i].Ops)
		}
	}
	decide := h.checkLists
	if h.Register {
		decide = h.checkRegisters
	}
	return c, decide(ctx, expect, c)
}

// nothing returns the error of a history in which nothing took effect.
func nothing() error {
	return &foreign.InputError{What: "it has no transaction that is known to have taken effect, and so nothing to check"}
}

func (h *History) checkRegisters(ctx context.Context, expect isolation.Level, c *foreign.Checked) error {
	registers := h.registers()
	for i := range h.Transactions {
		h.Transactions[i].Ops = nil // they are kept once
	}
	if len(registers.Transactions) == 0 {
		return nothing()
	}
	found, err := sessions.CheckAll(ctx, registers, expect)
	if err != nil {
		return err
	}
	c.Sessions, c.Objects, c.Results = len(registers.Sessions), found.Keys, found.Results
	c.Strongest = check.Texts(found.Holds)
	c.Name = func(id history.ID) string { return registers.Name(id) }
	return nil
}

func (h *History) checkLists(ctx context.Context, expect isolation.Level, c *foreign.Checked) error {
	report, err := lists.Check(ctx, h.input())
	if err != nil {
		return err
	}
	if report.Transactions == 0 {
		return nothing()
	}
	held := expect
	if held == isolation.Unknown {
		held = isolation.StrictSerializable
	}
	c.Sessions, c.Objects, c.Strongest = report.Clients, report.Lists, check.Texts(report.Holds)
	for _, l := range withCausal(report.Levels) {
		if expect != isolation.Unknown && !expect.Includes(l.Level) {
			continue
		}
		r := l.Result
		r.Required = held.Includes(l.Level)
		c.Results = append(c.Results, r)
	}
	return nil
}

// withCausal adds the result for causal consistency, which the checker of lists does not decide.
func withCausal(levels []lists.LevelResult) []lists.LevelResult {
	causal := check.Result{Name: isolation.Causal.String(), Why: fact.ListCausalOpen{}}
	at := len(levels)
	for i, l := range levels {
		switch {
		case isolation.Causal.Includes(l.Level) && l.Status == check.Invalid:
			causal.Status, causal.Why = check.Invalid, fact.ListBroken{At: causal.Name}
		case l.Level.Includes(isolation.Causal) && l.Status == check.Valid:
			causal.Status, causal.Why = check.Valid, fact.ListLevelHolds{}
		}
		if l.Level < isolation.Causal {
			at = i + 1
		}
	}
	return slices.Insert(slices.Clone(levels), at, lists.LevelResult{Level: isolation.Causal, Result: causal})
}

// input returns the input of the checker of lists.
func (h *History) input() lists.Input {
	return lists.Input{
		Expect: isolation.StrictSerializable, Complete: true, RealTime: h.Times,
		Transactions: func(yield func(*lists.Transaction, error) bool) {
			for i := range h.Transactions {
				if !yield(&h.Transactions[i], nil) {
					return
				}
			}
		},
		Lasted: func(ended, began history.ID) (time.Duration, bool) { return h.lasted(int(ended)-1, int(began)-1) },
		List:   h.list, Element: func(_, element uint64) string { return h.name(element) }, Who: who,
	}
}

// who names a transaction by its position in the file, from 1.
func who(id history.ID) string { return fmt.Sprintf("T%d", uint64(id)) }
