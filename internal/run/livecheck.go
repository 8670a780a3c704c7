package run

import (
	"context"
	"iter"
	"runtime"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// What a check during the load phase looks at: every liveEvery it takes what was recorded
// since the time before, and what was new then, because two transactions that contradict
// each other may be recorded one after the other. Of more than mostLive transactions it
// takes the latest ones.
const (
	liveEvery = 2 * time.Second
	mostLive  = 100_000
)

// checkLive looks for violations in what is recorded while the clients run, until the
// function that it returns is called. Each check that is found invalid is reported once;
// if asked, the load phase ends with the first. What is found counts as it would in a recording that was
// cut off: a transaction that is not recorded yet accuses nobody. The verdict is made
// after the run, from everything.
func (c *conductor) checkLive(ctx context.Context) (end func()) {
	if !c.o.Plan.LiveCheck && !c.o.Plan.StopOnViolation || c.volatile() {
		return func() {}
	}
	c.violated = make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l := liveCheck{conductor: c, reported: map[string]bool{}}
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
	}
}

// liveCheck is the check of a run that goes on.
type liveCheck struct {
	*conductor
	reader   *history.Reader
	tail     *history.Tail
	before   []history.Block // that the last look was the first to see
	reported map[string]bool // the checks that were reported
}

func (l *liveCheck) close() {
	if l.reader != nil {
		_ = l.reader.Close()
	}
}

// look checks what is new, and says whether a violation is among it. What cannot be read
// now is left to the check after the run, which says so.
func (l *liveCheck) look(ctx context.Context) (found bool) {
	if l.reader == nil {
		reader, err := history.Open(l.o.Dir.History())
		if err != nil {
			l.log.Debug("the recording cannot be checked yet", "error", err)
			return false
		}
		l.reader, l.tail = reader, reader.Tail()
	}
	var fresh []history.Block
	if _, err := l.tail.EachBlock(1, func(_ int, cursor *history.Cursor) error {
		fresh = append(fresh, cursor.Block)
		return nil
	}); err != nil {
		l.log.Warn("the recording could not be checked while the run went on", "error", err)
		return false
	}
	seen := part{reader: l.reader, blocks: latest(append(l.before, fresh...), mostLive)}
	l.before = fresh
	var results []check.Result
	var err error
	besideClients(func() { results, err = l.o.Spec.CheckPart(ctx, l.reader.Header(), l.expect, seen) })
	if err != nil {
		return false // the load phase has ended
	}
	for _, r := range results {
		if r.Required && r.Status == check.Invalid && !l.reported[r.Name] {
			l.reported[r.Name], found = true, true
			l.log.Warn("a violation shows", "check", r.Name, "detail", r.Detail)
			l.o.Progress.Violation(r.Name, r.Detail)
		}
	}
	return found
}

// besideClients does something on a thread that yields to the clients, and to a database on
// this machine.
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

// latest returns the last blocks, of as many transactions at most, or the last block alone.
func latest(list []history.Block, most uint32) []history.Block {
	records, first := uint32(0), len(list)
	for first > 0 && (first == len(list) || records+list[first-1].Records <= most) {
		first--
		records += list[first].Records
	}
	return list[first:]
}

// part is some blocks of a recording as a source for checks.
type part struct {
	reader *history.Reader
	blocks []history.Block
}

func (p part) Header() history.Header { return p.reader.Header() }

// Complete implements check.Source: there are transactions that this one does not have.
func (p part) Complete() bool { return false }

func (p part) Transactions() iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		cursor := p.reader.Cursor()
		for _, b := range p.blocks {
			cursor.Open(b)
			for cursor.Next() {
				if !yield(history.Record{Transaction: &cursor.Transaction, Ref: cursor.Ref()}, nil) {
					return
				}
			}
			if err := cursor.Err(); err != nil {
				yield(history.Record{Ref: cursor.Ref()}, err)
				return
			}
		}
	}
}
