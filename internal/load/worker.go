package load

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/pace"
	"stroppy/internal/stats"
)

// worker is the loop of one client. It belongs to one goroutine, except for counters, which others read.
type worker struct {
	driver   *Driver
	client   Client
	number   int // of the history client
	every    time.Duration
	after    time.Duration // from the beginning to the first transaction of a background client
	wake     chan struct{} // of a background client, or nil
	log      *history.ClientWriter
	recorder *stats.Recorder // nil in the background
	random   *rand.Rand
	timer    *time.Timer
	alarm    *alarm       // nil where pacing needs none
	queue    *queue       // of an open loop
	pauses   *pace.Pauses // of a closed loop whose clients think
	errors   errorCounts

	// These contexts are children of the driver's contexts. A database library that registers with its
	// context for every call then takes no lock that other clients take.
	stopping, aborting context.Context

	// A transaction may be begun, and repeated after a conflict, while open is not done. It is stopping, but
	// the driver's context for the first transaction of a background client, so that a short load phase has
	// one.
	open context.Context

	tx      history.Transaction
	last    int64  // the latest reading of the clock
	answer  int64  // clock when the database last answered this transaction; 0 before
	known   int64  // the same of the latest transaction whose outcome it reported
	share   uint64 // transactions to do
	sent    uint64 // transactions done
	next    int64  // when a background transaction is due, or one after a pause
	free    bool   // there was nothing else to do when the transaction was due
	retried int    // conflicts of this transaction that were retried
	outage  int    // fruitless contacts in a row
	down    bool   // no answer since the database was lost
	broken  bool   // the session must be Reset
	woken   bool   // wake ended the latest sleep
	cut     bool   // transactions were left when stopping was done
	warm    bool   // what has been admitted goes beyond the warm-up
	early   uint64 // shed of those that were due in the warm-up; known once warm
	skipped uint64 // of those due after the warm-up: late by more than the limit
	server  string // of the latest connection, if renewed

	counters counters
	live     []stats.Live // latency of committed transactions, by Driver.slots
	_        [128]byte    // nothing of another worker on a cache line, nor on the one prefetched with it
}

func newWorker(d *Driver, number int, c Client, every time.Duration) *worker {
	random := rand.New(rand.NewPCG(d.options.Seed, uint64(number)))
	w := &worker{driver: d, client: c, number: number, every: every, random: random, share: math.MaxUint64, errors: errorCounts{}}
	w.counters.kinds = make([][4]atomic.Uint64, (len(d.options.Kinds)+1+3)/4*4) // two cache lines, or a multiple
	w.live = make([]stats.Live, (len(d.options.Kinds)+1+15)/16*16)              // whole pairs of cache lines
	if every == 0 {
		w.share = d.options.share(number)
		w.recorder = &stats.Recorder{Limit: int64(d.options.LatencyLimit)}
	}
	return w
}

// pace prepares the pacing of a client.
func (w *worker) pace() {
	o := &w.driver.options
	switch {
	case !o.Plan.Closed():
		w.queue = &queue{source: newSource(o, w.number, w.driver.begin, w.driver.end), room: o.room(w.number)}
	case o.Think > 0:
		w.pauses = pace.NewPauses(o.Think, o.Arrival, o.all(), w.number, o.Seed)
		w.next = w.driver.begin + int64(w.pauses.First())
	}
}

func (w *worker) clock() int64 { return w.driver.clock() }

func (w *worker) run() {
	d := w.driver
	var cancel context.CancelFunc
	w.aborting, cancel = context.WithCancel(d.aborting)
	defer cancel()
	if w.every > 0 {
		w.stopping, cancel = context.WithCancel(d.stoppingBackground)
		w.open = d.stopping
	} else {
		w.stopping, cancel = context.WithCancel(d.stopping)
		w.open = w.stopping
	}
	defer cancel()

	w.log = d.options.History.Client(w.number)
	defer w.flush()
	w.timer = time.NewTimer(time.Hour)
	defer w.timer.Stop()
	if o := &d.options; w.every == 0 && d.precise && (!o.Plan.Closed() || o.Think > 0) {
		if w.alarm = newAlarm(); w.alarm != nil {
			defer w.alarm.close()
			defer context.AfterFunc(w.stopping, w.alarm.cancel)()
		}
	}
	w.last, w.next = d.begin, d.begin+int64(w.after)
	if w.every == 0 {
		w.pace()
	}
	for w.start() {
		w.decide()
		w.record()
	}
}

// start prepares the next transaction and returns when it must be sent, or returns false if there are no
// more. It sets all fields that the client does not set.
//
// In a closed loop, one reading of the clock is the End of one transaction and the Due, Sent and Try of the next. So
// choosing and recording count as part of the next. Due equals Sent, unless a lost session had to be replaced first.
func (w *worker) start() bool {
	if w.sent == w.share {
		return false
	}
	due := w.due()
	if w.broken && w.last < w.driver.end {
		w.repairBetween(w.driver.end)
		if w.queue != nil {
			due = w.due() // an outage may have made the transaction too late
		}
	}
	if w.last >= w.driver.end {
		return false
	}
	if w.cut = w.broken || w.open.Err() != nil; w.cut {
		return false
	}
	if due >= w.driver.end {
		if due < never || w.driver.end < never { // otherwise all of the count have come
			w.cut = !w.wait(w.driver.end)
		}
		if w.cut || w.wake == nil || w.last >= w.driver.end {
			return false
		}
		due, w.next = w.last, w.last
	}
	w.tx = history.Transaction{Ops: w.tx.Ops[:0], Elements: w.tx.Elements[:0], Broken: w.tx.Broken[:0]}
	w.client.Next(&w.tx)
	w.free = due >= w.last
	if w.cut = due > w.last && !w.wait(due); w.cut {
		return false
	}
	if w.wake != nil && w.last < due {
		due, w.next = w.last, w.last
	}
	if w.driver.options.Reconnect && w.every == 0 {
		w.renew()
		if w.cut = (w.broken || w.open.Err() != nil) && w.last < w.driver.end; w.cut || w.last >= w.driver.end {
			return false
		}
		if w.queue == nil && w.pauses == nil {
			due = w.last
		}
	}
	w.sent++
	if w.queue != nil {
		w.admit()
		w.queue.take()
		w.counters.sent.Store(w.sent)
	}
	w.retried, w.answer = 0, 0
	w.tx.Warmup = due-w.driver.begin < int64(w.driver.options.Warmup)
	w.tx.Due, w.tx.Sent, w.tx.Try = due, w.last, w.last
	return true
}

func (w *worker) due() int64 {
	switch {
	case w.every > 0 || w.pauses != nil:
		return w.next
	case w.queue != nil:
		w.admit()
		if w.driver.options.LatencyLimit > 0 {
			w.skip()
		}
		return w.queue.first()
	}
	return w.last
}

// skip skips the transactions that are too late to be sent.
func (w *worker) skip() {
	n, early := w.queue.skipLate(w.last-int64(w.driver.options.LatencyLimit), w.driver.warm())
	if n == 0 {
		return
	}
	w.shed(n)
	if w.warm {
		w.early += early
		w.skipped += n - early
		w.driver.sheds.add(w.last, n-early)
	}
}

// renew opens a new connection for the next transaction.
func (w *worker) renew() {
	begun := w.last
	err := w.client.Reset(w.watchedMove())
	w.last = w.clock()
	if err != nil {
		kind, _ := classify(err)
		w.note(kind, err)
		w.lost()
		if kind.class == db.Fatal || kind.class == db.Constraint {
			w.fail("new session", err)
		} else {
			w.repairBetween(w.driver.end)
		}
	} else if begun >= w.driver.warm() {
		w.recorder.RecordConnect(w.last - begun)
	}
}

// admit adds the transactions due by now to the queue.
func (w *worker) admit() {
	warm := w.driver.warm()
	if w.last >= warm && !w.warm {
		w.warm = true
		w.shed(w.queue.admit(warm - 1))
		w.early = w.counters.shed.Load()
	}
	if shed := w.queue.admit(w.last); shed > 0 {
		if w.warm {
			w.driver.sheds.add(w.last, shed)
		}
		w.shed(shed)
	}
}

func (w *worker) shed(n uint64) { w.counters.shed.Store(w.counters.shed.Load() + n) }

// wait returns true at due, or false when the load phase is over.
func (w *worker) wait(due int64) bool {
	for w.last = w.clock(); w.last < due; w.last = w.clock() {
		d := time.Duration(due - w.last)
		if w.alarm == nil {
			if !w.sleep(w.stopping, d) {
				return false
			}
			if w.woken {
				w.last, w.woken = w.clock(), false
				return true
			}
			continue
		}
		if d >= flushBefore {
			w.flush()
		}
		if !w.alarm.wait(d) {
			return false
		}
	}
	return true
}

// record records the transaction, whose outcome became known or which was given up at the latest reading of
// the clock.
func (w *worker) record() {
	tx := &w.tx
	tx.End = w.last
	if err := w.log.Append(tx); err != nil {
		w.driver.failNow(err)
	}
	if w.every > 0 {
		w.open = w.stopping
		w.next += int64(w.every)
		if late := w.last - w.next; late > 0 { // skip what was missed
			w.next += (late + int64(w.every) - 1) / int64(w.every) * int64(w.every)
		}
		return
	}
	if tx.Outcome != history.Unknown {
		w.known = max(w.known, w.answer)
	}
	w.recorder.Record(tx)
	if w.queue != nil || w.pauses != nil {
		w.recorder.RecordSent(tx, w.free)
	}
	if w.pauses != nil {
		w.next = tx.End + int64(w.pauses.Next())
	}
	slot := w.driver.slots[tx.Kind]
	if tx.Outcome == history.Committed {
		w.live[slot].Add(tx.End - tx.Due)
	}
	add(&w.counters.outcomes[tx.Outcome&3])
	add(&w.counters.kinds[slot][tx.Outcome&3])
}

// note counts an error.
func (w *worker) note(kind errorKind, err error) {
	w.errors.add(kind, err)
	add(&w.counters.classes[kind.class])
}

func (w *worker) flush() {
	if err := w.log.Flush(); err != nil {
		w.driver.failNow(err)
	}
}
