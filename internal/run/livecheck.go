package run

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/report"
)

// Every liveEvery, a look takes the transactions that were recorded since the last look, in windows of mostLive
// transactions. Two contradicting transactions may be recorded one after the other. So a window also has transactions
// before it, of the last look and of this one, up to its size.
//
// After a window the check rests as long as the window took, so it uses half of a processor at most. If more than
// mostBehind transactions wait, all but the latest are left out.
const (
	liveEvery  = 2 * time.Second
	mostLive   = 100_000
	mostBehind = 5 * mostLive
)

// checkLive looks for violations in the recorded transactions while the clients run, until the returned function is
// called. Each invalid check is reported once; if requested, the load phase ends with the first. A transaction that
// is not recorded yet accuses nobody, as in a recording that was cut off. The verdict is made after the run, from
// everything.
func (c *conductor) checkLive(ctx context.Context) (end func()) {
	if !c.o.Plan.LiveCheck && !c.o.Plan.StopOnViolation || c.volatile() {
		return func() {}
	}
	c.violated = make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	c.foundLive.Store(new(LiveCheck))
	done := make(chan struct{})
	l := liveCheck{conductor: c, reported: map[string]bool{}, windows: windows{most: mostLive, behind: mostBehind}}
	go func() {
		defer close(done)
		defer l.close()
		for ticker := time.NewTicker(liveEvery); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
				if l.look(ctx) && c.o.Plan.StopOnViolation {
					close(c.violated)
					return
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
		c.checkedLive = &report.LiveCheck{Checked: l.windows.looked, Skipped: l.windows.skipped}
	}
}

// LiveCheck holds the findings so far of the check beside the clients. Nobody changes it.
type LiveCheck struct {
	report.LiveCheck
	Violations []LiveViolation // the first of each check
}

// LiveViolation describes a violation that a check found.
type LiveViolation struct {
	Check, What string
	Found       report.Check // with its evidence
}

// update publishes the progress and the findings.
func (l *liveCheck) update(found ...LiveViolation) {
	now := *l.foundLive.Load()
	now.Checked, now.Skipped = l.windows.looked, l.windows.skipped
	now.Violations = slices.Concat(now.Violations, found)
	l.foundLive.Store(&now)
}

// liveCheck is the check of a run in progress.
type liveCheck struct {
	*conductor
	reader   *history.Reader
	tail     *history.Tail
	windows  windows
	reported map[string]bool // the checks that were reported
}

func (l *liveCheck) close() {
	if l.reader != nil {
		_ = l.reader.Close()
	}
}

// look checks the new transactions, and reports whether they show a violation. An unreadable part is left to the
// check after the run.
func (l *liveCheck) look(ctx context.Context) (found bool) {
	if l.reader == nil {
		reader, err := history.Open(l.o.Dir.History())
		if err != nil {
			l.log.Debug("the recording cannot be checked yet", "error", err)
			return false
		}
		l.reader, l.tail = reader, reader.Tail()
	}
	blocks, _, err := l.tail.Blocks()
	if err != nil {
		l.log.Warn("the recording could not be checked while the run went on", "error", err)
		return false
	}
	if kept := l.windows.skipped == 0; l.windows.add(blocks) > 0 && kept {
		l.log.Warn("the check does not keep up with the run: some transactions are checked after it alone")
	}
	for window := l.windows.next(); len(window) > 0; window = l.windows.next() {
		began := time.Now()
		violated := l.check(ctx, part{reader: l.reader, blocks: window})
		l.update()
		if violated {
			found = true
			if l.o.Plan.StopOnViolation {
				break
			}
		}
		select {
		case <-ctx.Done():
			return found
		case <-time.After(time.Since(began)):
		}
	}
	return found
}

// check checks a window, and reports whether it shows a violation that no earlier window did.
func (l *liveCheck) check(ctx context.Context, window part) (found bool) {
	var results []check.Result
	var err error
	besideClients(func() { results, err = l.o.Spec.CheckPart(ctx, l.reader.Header(), l.expect, window) })
	if err != nil {
		return false // the load phase has ended
	}
	for _, r := range results {
		if r.Required && r.Status == check.Invalid && !l.reported[r.Name] {
			l.reported[r.Name], found = true, true
			one := report.Checks([]check.Result{r}, text.Speaker{Words: l.o.Spec.Words})[0]
			l.log.Warn("a violation shows", "check", r.Name, "detail", one.Detail)
			l.update(LiveViolation{r.Name, one.Detail, one})
			l.o.Progress.Violation(r.Name, one.Detail)
		}
	}
	return found
}

// besideClients runs do on a thread that yields to the clients, and to a database on this machine.
func besideClients(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its priority
		lowerPriority()
		do()
	}()
	<-done
}

// windows holds the windows of a growing recording, in the order of its blocks.
type windows struct {
	most, behind    uint32          // transactions of a window, and those that may wait
	waiting         []history.Block // that were in no window
	done            []history.Block // the latest that were
	round           int             // blocks that were in a window in this round
	looked, skipped uint64          // transactions
}

// add begins a round with what was recorded since the last one, and returns how many
// transactions it leaves out because too many wait.
func (w *windows) add(blocks []history.Block) (skipped uint64) {
	if len(blocks) == 0 {
		return 0
	}
	w.done, w.round = w.done[max(0, len(w.done)-w.round):], 0
	w.waiting = append(w.waiting, blocks...)
	if all := transactions(w.waiting); all > uint64(w.behind) {
		w.done, w.waiting = nil, latest(w.waiting, w.most)
		skipped = all - transactions(w.waiting)
		w.skipped += skipped
	}
	return skipped
}

// next returns the next window of the round; it is empty at the end.
func (w *windows) next() []history.Block {
	n, records := 0, uint32(0)
	for n < len(w.waiting) && (n == 0 || records+w.waiting[n].Records <= w.most) {
		records += w.waiting[n].Records
		n++
	}
	if n == 0 {
		return nil
	}
	fresh := w.waiting[:n:n]
	w.waiting = w.waiting[n:]
	window := slices.Concat(w.done, fresh)
	w.done, w.round = latest(window, w.most), w.round+n
	w.looked += uint64(records)
	return window
}

// latest returns the last blocks, of as many transactions at most, or the last block alone.
func latest(list []history.Block, most uint32) []history.Block {
	records, first := uint32(0), len(list)
	for first > 0 && (first == len(list) || records+list[first-1].Records <= most) {
		first--
		records += list[first].Records
	}
	return list[first:]
}

func transactions(list []history.Block) (n uint64) {
	for _, b := range list {
		n += uint64(b.Records)
	}
	return n
}

// part is a number of blocks of a recording as a source for checks.
type part struct {
	reader *history.Reader
	blocks []history.Block
}

func (p part) Header() history.Header { return p.reader.Header() }

// Complete implements check.Source: there are transactions that this one does not have.
func (p part) Complete() bool { return false }

func (p part) Transactions() iter.Seq2[history.Record, error] {
	return p.reader.TransactionsIn(func(yield func(history.Block, error) bool) {
		for _, b := range p.blocks {
			if !yield(b, nil) {
				return
			}
		}
	})
}
