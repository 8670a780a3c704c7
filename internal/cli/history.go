package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/exit"
	"stroppy/internal/history"
	"stroppy/internal/registry"
	"stroppy/internal/run"
	"stroppy/internal/workload"
)

func (a *app) historyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "history RUN_DIR [ID…]", Short: "Show what was recorded of transactions and accounts",
		Long: "Each recorded transaction is one line: its id, what it was, how it ended, when it was due, sent,\n" +
			"tried for the last time and answered (since the run's start), the accounts that it read and\n" +
			"changed, what it saw there before, and where in the run's files it is recorded.\n" +
			"With ids, such as the witnesses of a report, those transactions alone are shown, and after them\n" +
			"their rows in the ledger of the end state. With --account, what touched that account is shown.\n" +
			"With --around ID, what happened next to a transaction is shown: the transactions on the same\n" +
			"accounts that are nearest in time (--count), or all of those within some time of it (--within).",
		Args: takes(1, math.MaxInt, "shows what a run recorded: name its directory"),
	}
	account := c.Flags().String("account", "", "show what touched the account `NUMBER` or BIC/BAN, and how it ended")
	var near neighbourhood
	c.Flags().StringVar(&near.id, "around", "", "show what happened next to the transaction `ID`, client by client")
	c.Flags().IntVar(&near.count, "count", 20, "of --around: how many transactions beside it, the nearest in time")
	c.Flags().DurationVar(&near.within, "within", 0, "of --around: all that are at most this far from it in time, in place of --count")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := mustBeDirectory(args[0]); err != nil {
			return err
		}
		near.timed = c.Flags().Changed("within")
		switch flags := c.Flags(); {
		case near.id == "" && (flags.Changed("count") || flags.Changed("within")):
			return exit.Usagef("--count and --within limit --around ID: give --around too")
		case near.id != "" && (len(args) > 1 || *account != ""):
			return exit.Usagef("--around shows one transaction and its neighbours: leave other ids and --account out")
		case near.count < 1 || near.within < 0:
			return exit.Usagef("--count must be at least 1, and --within at least 0")
		case flags.Changed("count") && flags.Changed("within"):
			return exit.Usagef("--count and --within both limit --around: give one of them")
		}
		l := &lookup{path: args[0], out: bufio.NewWriter(a.Stdout), found: map[history.ID]bool{}}
		err := l.open(args[1:], *account)
		switch {
		case err != nil:
		case near.id != "":
			err = l.showAround(near, a.Stderr)
		default:
			err = l.show(a.Stderr)
		}
		return errors.Join(err, l.out.Flush(), l.close())
	}
	return c
}

// lookup shows a part of the recording in a run's directory.
type lookup struct {
	path     string
	recorded *history.Reader
	header   history.Header
	end      *history.End // nil: none was downloaded
	objects  workload.Objects
	format   workload.Format
	out      *bufio.Writer

	wanted  []history.ID // in order; none is all
	account *uint64      // nil is all
	found   map[history.ID]bool
}

// open opens the recordings and parses the requested ids and account.
func (l *lookup) open(ids []string, account string) error {
	for _, text := range ids {
		id, err := parseID(text)
		if err != nil {
			return err
		}
		l.wanted = append(l.wanted, id)
	}
	slices.Sort(l.wanted)
	folder := (&run.Directory{Path: l.path}).History()
	var err error
	if l.recorded, err = history.Open(folder); errors.Is(err, fs.ErrNotExist) {
		return noHistory(l.path)
	} else if err != nil {
		return err
	}
	l.header = l.recorded.Header()
	spec, err := registry.Workloads().Find(l.header.Workload)
	if err != nil {
		return err
	}
	l.objects, l.format = spec.Objects(l.header), spec.Format
	if account != "" {
		n, err := l.objects.Number(account)
		if err != nil {
			return exit.With(exit.Usage, err)
		}
		l.account = &n
	}
	if l.end, err = history.OpenEnd(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (l *lookup) close() (err error) {
	if l.recorded != nil {
		err = l.recorded.Close()
	}
	if l.end != nil {
		err = errors.Join(err, l.end.Close())
	}
	return err
}

// parseID parses the id of a transaction.
func parseID(text string) (history.ID, error) {
	refused := exit.Usagef("%q is no transaction id: write it as run-client-number, such as 1-7-312", text)
	parts := strings.Split(text, "-")
	if len(parts) != 3 {
		return 0, refused
	}
	var numbers [3]uint64
	for i, bits := range []int{history.RunBits, history.ClientBits, history.SequenceBits} {
		n, err := strconv.ParseUint(parts[i], 10, bits)
		if err != nil {
			return 0, refused
		}
		numbers[i] = n
	}
	return history.NewID(numbers[0], numbers[1], numbers[2]), nil
}

// show writes the requested transactions, and notes about them to notes.
func (l *lookup) show(notes io.Writer) error {
	for record, err := range l.recorded.Transactions() {
		if err != nil {
			return err
		}
		if !l.asked(record.ID) || l.account != nil && !slices.ContainsFunc(record.Ops, func(op history.Op) bool { return op.Object == *l.account }) {
			continue
		}
		if l.wanted != nil {
			l.found[record.ID] = true
		}
		if _, err := l.out.WriteString(l.transaction(record)); err != nil {
			return err
		}
	}
	if !l.recorded.Complete() {
		fmt.Fprintln(notes, "the run was cut off: what its clients did last is not recorded")
	}
	if l.wanted == nil && l.account == nil {
		return nil
	}
	if l.end == nil {
		fmt.Fprintln(notes, "the end state was not downloaded, so there is no ledger to show")
	} else if err := l.showEnd(); err != nil {
		return err
	}
	for _, id := range l.wanted {
		switch {
		case l.found[id]:
		case l.account != nil:
			return exit.Usagef("%v did not touch %s in the recording %s", id, l.objects.Name(*l.account), l.path)
		case l.end != nil:
			return exit.Usagef("%v is neither in the recording %s nor in the ledger of its end state", id, l.path)
		default:
			return exit.Usagef("%v is not in the recording %s", id, l.path)
		}
	}
	return nil
}

func (l *lookup) asked(id history.ID) bool {
	_, ok := slices.BinarySearch(l.wanted, id)
	return ok || l.wanted == nil
}

// showEnd writes the rows of the ledger by id and leg, and the requested account.
func (l *lookup) showEnd() error {
	var legs []history.Row
	for leg, err := range l.end.Rows() {
		if err != nil {
			return err
		}
		if l.asked(leg.Transaction) && (l.account == nil || leg.Mark != history.Tombstone && leg.Object == *l.account) {
			legs = append(legs, leg)
			l.found[leg.Transaction] = true
		}
	}
	slices.SortFunc(legs, func(a, b history.Row) int {
		return cmp.Or(cmp.Compare(a.Transaction, b.Transaction), cmp.Compare(a.Number, b.Number))
	})
	for _, leg := range legs {
		what := fmt.Sprintf("leg %d  %s %s", leg.Number, l.objects.Name(leg.Object), l.format.Row(leg))
		if leg.Mark == history.Tombstone {
			what = "tombstone: a look-up found nothing and closed the id"
		}
		fmt.Fprintf(l.out, "ledger  %v  %s\n", leg.Transaction, what)
	}
	if l.account == nil {
		return nil
	}
	for account, err := range l.end.Objects() {
		if err != nil {
			return err
		}
		if account.N == *l.account {
			fmt.Fprintf(l.out, "end  %s %s\n", l.objects.Name(account.N), l.format.End(account))
		}
	}
	return nil
}

func (l *lookup) transaction(r history.Record) string {
	how := r.Outcome.String()
	if r.Reason != 0 {
		how += " (" + l.header.ReasonName(r.Reason) + ")"
	}
	if r.LookedUp {
		how += ", found by a look-up"
	}
	tries := "1 try"
	if r.Attempts != 1 {
		tries = fmt.Sprintf("%d tries", r.Attempts)
	}
	words := []string{
		r.ID.String(), fmt.Sprintf("client %d", r.ID.Client()), l.header.KindName(r.Kind), how,
		fmt.Sprintf("due %s sent %s tried %s end %s", since(r.Due), since(r.Sent), since(r.Try), since(r.End)), tries,
	}
	if r.Warmup {
		words = append(words, "warm-up")
	}
	short := ""
	if l.wanted == nil && l.format.Short != nil { // what is asked for by its id is shown whole
		short = l.format.Short(r.Transaction, l.objects)
	}
	if short != "" {
		words = append(words, short)
	}
	values := map[*history.Op]string{}
	if l.format.Value != nil {
		r.EachBroken(func(op *history.Op, value []byte) { values[op] = l.format.Value(value) })
	}
	for i := range r.Ops {
		if op := &r.Ops[i]; short == "" || l.account != nil && op.Object == *l.account {
			words = append(words, l.objects.Name(op.Object)+" "+cmp.Or(values[op], l.format.Operation(op)))
		}
	}
	words = append(words, "["+r.Ref.String()+"]")
	return strings.Join(words, "  ") + "\n"
}

// since writes nanoseconds since the run's start in seconds.
func since(ns int64) string { return fmt.Sprintf("%.6f", float64(ns)/1e9) }

// neighbourhood selects transactions on the same objects as a given one: the nearest in time, or all within a time.
type neighbourhood struct {
	id     string
	count  int
	within time.Duration
	timed  bool // within bounds them, and not count
}

// neighbour is a transaction that shares an object with the requested one.
type neighbour struct {
	record history.Record
	apart  int64 // ns between the two; 0 where they overlap, below 0 where it ended before the other began
}

// showAround writes a transaction and its neighbours by client and, for each client, by time.
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
		return exit.Usagef("%v is not in the recording %s", id, l.path)
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

// neighbours returns the neighbours of a transaction, and the number of those beyond the count.
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

// apartFrom returns the time from the end of one transaction to the beginning of the other, in nanoseconds. It is
// negative if the other ended first, and 0 if they overlap. A transaction of unknown outcome ends when its client gave
// up, although it may be applied later.
func apartFrom(one, other *history.Transaction) int64 {
	switch {
	case other.Try > one.End:
		return other.Try - one.End
	case other.End < one.Try:
		return other.End - one.Try
	}
	return 0
}

// cloned returns a copy of a record, which stays valid when the next record is read.
func cloned(r history.Record) *history.Record {
	tx := *r.Transaction
	tx.Ops = slices.Clone(tx.Ops)
	r.Transaction = &tx
	return &r
}

// beside returns the line of a neighbour: its time and its operations on the shared objects.
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

// mostBeside bounds the number of operations in a line. An audit has one for each account.
const mostBeside = 8
