package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"stroppy/internal/history"
)

// neighbourhood is what of a recording is shown around a transaction: the transactions on
// the same objects, those nearest in time, or all within some time of it.
type neighbourhood struct {
	id     string
	count  int
	within time.Duration
	timed  bool // within bounds them, and not count
}

// neighbour is a transaction on an object of the one that is asked for.
type neighbour struct {
	record history.Record
	apart  int64 // ns between the two; 0 where they overlap, below 0 where it ended before the other began
}

// showAround writes the transaction that is asked for and its neighbours, client by client,
// and those of each in the order of time.
func (l *lookup) showAround(n neighbourhood, notes io.Writer) error {
	id, err := parseID(n.id)
	if err != nil {
		return err
	}
	var center *history.Record
	for record, err := range l.recorded.Transactions() {
		if err != nil {
			return err
		}
		if record.ID == id {
			center = cloned(record)
			break
		}
	}
	if center == nil {
		return usagef("%v is not among the transactions that %s has recorded", id, l.path)
	}
	found, more, err := l.neighbours(center, n)
	if err != nil {
		return err
	}
	found = append(found, neighbour{record: *center})
	first := map[uint64]int64{} // of each client: when the first of its transactions began
	for _, f := range found {
		client := f.record.ID.Client()
		if at, ok := first[client]; !ok || f.record.Try < at {
			first[client] = f.record.Try
		}
	}
	slices.SortFunc(found, func(a, b neighbour) int {
		x, y := a.record.ID.Client(), b.record.ID.Client()
		return cmp.Or(cmp.Compare(first[x], first[y]), cmp.Compare(x, y), cmp.Compare(a.record.Try, b.record.Try), cmp.Compare(a.record.ID, b.record.ID))
	})
	for i, f := range found {
		if client := f.record.ID.Client(); i == 0 || client != found[i-1].record.ID.Client() {
			fmt.Fprintf(l.out, "client %d\n", client)
		}
		fmt.Fprintln(l.out, "  "+l.beside(f, center))
	}
	if more > 0 {
		fmt.Fprintf(notes, "%d more transactions are on the same objects, farther away: --count shows more of them\n", more)
	}
	if !l.recorded.Complete() {
		fmt.Fprintln(notes, "the run was cut off: what its clients did last is not recorded")
	}
	return nil
}

// neighbours finds the transactions beside the one in the center, and how many more there
// are than the count.
func (l *lookup) neighbours(center *history.Record, n neighbourhood) (found []neighbour, more int, err error) {
	objects := map[uint64]bool{}
	for _, op := range center.Ops {
		objects[op.Object] = true
	}
	nearest := func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(max(a.apart, -a.apart), max(b.apart, -b.apart)), cmp.Compare(a.record.ID, b.record.ID))
	}
	trim := func() {
		slices.SortFunc(found, nearest)
		if over := len(found) - n.count; over > 0 {
			found, more = found[:n.count], more+over
		}
	}
	for record, err := range l.recorded.Transactions() {
		if err != nil {
			return nil, 0, err
		}
		if record.ID == center.ID || !slices.ContainsFunc(record.Ops, func(op history.Op) bool { return objects[op.Object] }) {
			continue
		}
		apart := apartFrom(center.Transaction, record.Transaction)
		if n.timed && max(apart, -apart) > n.within.Nanoseconds() {
			continue
		}
		found = append(found, neighbour{*cloned(record), apart})
		if !n.timed && len(found) >= 2*n.count+1024 {
			trim()
		}
	}
	if !n.timed {
		trim()
	}
	return found, more, nil
}

// apartFrom is how long after the end of one transaction the other began, in nanoseconds:
// below 0 where the other had ended before, and 0 where they overlap. A transaction of
// unknown outcome may still have been applied after its client gave up; where it ends is
// when that was.
func apartFrom(one, other *history.Transaction) int64 {
	switch {
	case other.Try > one.End:
		return other.Try - one.End
	case other.End < one.Try:
		return other.End - one.Try
	}
	return 0
}

// cloned is a record that stays as it is when the next one is read.
func cloned(r history.Record) *history.Record {
	tx := *r.Transaction
	tx.Ops = slices.Clone(tx.Ops)
	r.Transaction = &tx
	return &r
}

// beside is a line about a neighbour: when it was, and what it did to the same objects.
func (l *lookup) beside(n neighbour, center *history.Record) string {
	r := n.record
	when := "overlaps"
	switch {
	case r.ID == center.ID:
		when = "THIS ONE"
	case n.apart > 0:
		when = fmt.Sprintf("began %v after its end", time.Duration(n.apart))
	case n.apart < 0:
		when = fmt.Sprintf("ended %v before it began", time.Duration(-n.apart))
	}
	words := []string{r.ID.String(), l.header.KindName(r.Kind), r.Outcome.String(), fmt.Sprintf("tried %s end %s", since(r.Try), since(r.End)), when}
	for i := range r.Ops {
		op := &r.Ops[i]
		if slices.ContainsFunc(center.Ops, func(c history.Op) bool { return c.Object == op.Object }) {
			if len(words) == 5+mostBeside {
				words = append(words, fmt.Sprintf("and %d more of its operations", len(r.Ops)-i))
				break
			}
			words = append(words, l.objects.Name(op.Object)+" "+l.format.Operation(op))
		}
	}
	return strings.Join(words, "  ")
}

// mostBeside bounds how many operations of a transaction are shown, of which an audit has
// one an account.
const mostBeside = 8
