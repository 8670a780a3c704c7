package elle

import (
	"cmp"
	"slices"
	"time"

	"stroppy/internal/check/lists"
	"stroppy/internal/check/sessions"
	"stroppy/internal/history"
)

// number64 converts a value for the checker of registers, where 0 is the value of an unwritten key.
func number64(v uint64) int64 { return int64(v + 1) }

// registers returns the effective transactions as a history of registers. A transaction of unknown outcome is
// effective if its write was read; its own reads are not known. Otherwise it may have been aborted, and
// omitting it does not change whether the history is correct.
func (h *History) registers() *sessions.History {
	b := &registers{History: h, to: &sessions.History{}, place: make([]int, len(h.Transactions))}
	observed := h.observed()
	var names []uint64
	of := map[uint64][]int{} // the transactions of each process
	for i := range h.Transactions {
		t := &h.Transactions[i]
		switch {
		case t.Outcome == history.Aborted:
			b.aborted(t, i)
		case t.Outcome == history.Committed || observed[i]:
			if of[t.Client] == nil {
				names = append(names, t.Client)
			}
			of[t.Client] = append(of[t.Client], i)
		}
	}
	for process, name := range names {
		list := of[name]
		slices.SortStableFunc(list, func(x, y int) int {
			return cmp.Compare(h.Transactions[x].Begin, h.Transactions[y].Begin)
		})
		b.process(uint32(process), list)
	}
	b.times()
	b.to.Words = sessions.Words{
		Key:         func(key int64) string { return "register " + h.name(uint64(key)) },
		Transaction: func(name int64) string { return who(history.ID(name)) },
		Value: func(v int64) string {
			if v == 0 {
				return "nil"
			}
			return h.name(uint64(v) - 1)
		},
	}
	return b.to
}

// observed returns the transactions of unknown outcome whose writes were read.
func (h *History) observed() map[int]bool {
	type write struct{ key, value uint64 }
	by, observed := map[write]int{}, map[int]bool{}
	for i := range h.Transactions {
		if t := &h.Transactions[i]; t.Outcome == history.Unknown {
			for _, op := range t.Ops {
				if op.Kind == lists.Append {
					by[write{op.Key, op.Element}] = i
				}
			}
		}
	}
	if len(by) == 0 {
		return nil
	}
	for i := range h.Transactions {
		for _, op := range h.Transactions[i].Ops {
			if op.Kind == lists.Read && op.Known && len(op.List) > 0 {
				if t, ok := by[write{op.Key, op.List[0]}]; ok {
					observed[t] = true
				}
			}
		}
	}
	return observed
}

// registers is the state of the conversion.
type registers struct {
	*History
	to    *sessions.History
	of    []int // by transaction of to, which of the history's it is
	place []int // by transaction of the history, which of to's it is, from 1
}

// aborted adds the writes of an aborted transaction.
func (b *registers) aborted(t *lists.Transaction, at int) {
	for _, op := range t.Ops {
		if op.Kind == lists.Append {
			b.to.Aborted = append(b.to.Aborted, sessions.Op{
				Key: int64(op.Key), Value: number64(op.Element), Line: uint32(b.lines[at]), Write: true,
			})
		}
	}
}

// process adds the transactions of a process. Each follows the earlier ones whose outcomes the process had
// learned.
func (b *registers) process(process uint32, list []int) {
	var apart []int
	for i, t := range list {
		if b.Transactions[t].Outcome == history.Unknown {
			apart = append(apart, i)
			continue
		}
		b.add(t)
	}
	if n := len(apart); n > 0 && apart[0] == len(list)-n { // it is behind all others
		b.add(list[apart[0]])
		apart = apart[1:]
	}
	b.end(process, 0)
	for _, i := range apart {
		after := 0
		for _, t := range list[:i] {
			if b.Transactions[t].Outcome != history.Unknown {
				after = b.place[t]
			}
		}
		b.add(list[i])
		b.end(process, after)
	}
}

// end ends a session, unless it is empty.
func (b *registers) end(process uint32, after int) {
	n := len(b.to.Transactions)
	if s := b.to.Sessions; n == 0 || len(s) > 0 && s[len(s)-1].End == n {
		return
	}
	b.to.Sessions = append(b.to.Sessions, sessions.Session{Name: int64(process), End: n, Process: process, After: after})
}

// add adds a transaction.
func (b *registers) add(t int) {
	from := &b.Transactions[t]
	for _, op := range from.Ops {
		to := sessions.Op{Key: int64(op.Key), Line: uint32(b.lines[t])}
		switch {
		case op.Kind == lists.Append:
			to.Write, to.Value = true, number64(op.Element)
		case !op.Known || from.Outcome != history.Committed:
			continue
		case len(op.List) > 0:
			to.Value = number64(op.List[0])
		}
		b.to.Ops = append(b.to.Ops, to)
	}
	b.to.Transactions = append(b.to.Transactions, sessions.Transaction{Name: int64(from.ID), End: len(b.to.Ops)})
	b.of = append(b.of, t)
	b.place[t] = len(b.of)
}

// times computes the positions of the transactions in the order of the lines.
func (b *registers) times() {
	times := &sessions.Times{Real: b.Times}
	for _, t := range b.of {
		from := &b.Transactions[t]
		end := from.End
		if from.Outcome == history.Unknown {
			end = sessions.Never
		}
		times.Begin, times.End = append(times.Begin, from.Begin), append(times.End, end)
	}
	times.Lasted = func(ended, began int) (time.Duration, bool) { return b.lasted(b.of[ended], b.of[began]) }
	b.to.Times = times
}
