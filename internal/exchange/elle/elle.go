// Package elle reads and writes histories as Jepsen records them and Elle checks them
// (Kingsbury and Alvaro, VLDB 2020; https://github.com/jepsen-io/elle): a map a line, in EDN or
// in JSON, of what a process began and of what it came to,
//
//	{:type :invoke, :f :txn, :process 0, :time 1, :index 0, :value [[:append 1 1] [:r 2 nil]]}
//	{:type :ok,     :f :txn, :process 0, :time 9, :index 1, :value [[:append 1 1] [:r 2 [4 5]]]}
//
// in which :ok is committed, :fail aborted and :info unknown. The order of the lines is that of
// real time. Lists are appended to, [:append k v], and read, [:r k [v …]]; registers
// are written, [:w k v], and read, [:r k v]. Each element of a list, and each value of a
// register, is written once.
package elle

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"stroppy/internal/check/lists"
	"stroppy/internal/exchange"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Recorded turns a recorded run into transactions. An error says that the run is of another
// kind.
type Recorded func(run *history.Reader) (iter.Seq2[*lists.Transaction, error], error)

// Format returns the form. Recorded says how a run is written; with nil it is read only.
func Format(recorded Recorded) exchange.Format {
	var export func(run *history.Reader, to io.Writer) (exchange.Written, error)
	if recorded != nil {
		export = func(run *history.Reader, to io.Writer) (exchange.Written, error) {
			transactions, err := recorded(run)
			if err != nil {
				return exchange.Written{}, &exchange.InputError{What: err.Error()}
			}
			return Write(to, transactions)
		}
	}
	return exchange.Format{
		Name: "elle", About: "appends to lists and reads of them, or writes and reads of registers, a map a line in EDN or JSON; of Jepsen and Elle",
		Levels: levels(), Default: isolation.StrictSerializable,
		Check: checkFile, Export: export,
	}
}

// levels are all but causal, which this check does not decide.
func levels() (list []isolation.Level) {
	for _, l := range isolation.Levels() {
		if l != isolation.Causal {
			list = append(list, l)
		}
	}
	return list
}

func checkFile(ctx context.Context, path string, expect isolation.Level) (*exchange.Checked, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	h, err := Read(data)
	if err != nil {
		return nil, err
	}
	report, err := lists.Check(ctx, h.input())
	if err != nil {
		return nil, err
	}
	c := &exchange.Checked{Sessions: report.Clients, Transactions: len(h.Transactions), Operations: h.Operations, Objects: h.objects(report), Name: who}
	held := expect
	if held == isolation.Unknown {
		held = isolation.StrictSerializable
	}
	for _, l := range report.Levels {
		if expect != isolation.Unknown && !expect.Includes(l.Level) {
			continue
		}
		r := l.Result
		r.Required = held.Includes(l.Level)
		c.Results = append(c.Results, r)
	}
	for _, l := range report.Holds {
		c.Strongest = append(c.Strongest, l.String())
	}
	for i := range h.Transactions {
		if h.Transactions[i].Outcome == history.Aborted {
			c.Aborted += len(h.Transactions[i].Ops)
		}
	}
	return c, nil
}

// objects counts lists or registers.
func (h *History) objects(report *lists.Report) int {
	if !h.Register {
		return report.Lists
	}
	distinct := map[uint64]bool{}
	for _, key := range h.register {
		distinct[key] = true
	}
	return len(distinct)
}

// input is what the checker of lists is given.
func (h *History) input() lists.Input {
	return lists.Input{
		Expect: isolation.StrictSerializable, Complete: true, RealTime: h.Times, Undecided: h.Undecided,
		Transactions: func(yield func(*lists.Transaction, error) bool) {
			for i := range h.Transactions {
				if !yield(&h.Transactions[i], nil) {
					return
				}
			}
		},
		List: h.list, Element: func(_, element uint64) string { return h.name(element) }, Who: who,
	}
}

// who names a transaction by its place among those of the file, from 1.
func who(id history.ID) string { return fmt.Sprintf("T%d", uint64(id)) }
