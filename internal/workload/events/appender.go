package events

import (
	"context"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// appender makes the appends of one client. The stream and the content are a function of the seed, the run, the
// client's number and the number of calls. The database decides the place. The appender allocates nothing once its
// buffer has the length of the longest value.
type appender struct {
	formula formula
	config  *Config

	run, client, sequence uint64
	first, step, own      uint64 // it appends to first, first+step …, which are own in number
	shared                bool   // others append to its stream
	ends                  ends

	value []byte

	// The append that is tried.
	tried  uint64 // the place of its first event in the latest try; 0: that did not get so far
	before uint64 // the same of the try before; 0: there was none

	_ [128]byte // nothing of another client on a cache line, nor on the one prefetched with it
}

func newAppender(c *Config, f formula, streams, run, client uint64) *appender {
	clients := uint64(c.Clients)
	a := &appender{
		formula: f, config: c, run: run, client: client,
		first: client % streams, step: clients, own: 1, shared: streams < clients,
	}
	if !a.shared {
		a.own = (streams - client + clients - 1) / clients
	}
	a.ends = ends{make([]uint64, a.own), make([]history.ID, a.own)}
	return a
}

// Next fills in the client's next append. Its one operation is on the stream; the
// amount is the bytes of all its values.
func (a *appender) Next(tx *history.Transaction) {
	stream := a.first + a.sequence%a.own*a.step
	a.sequence++
	a.tried, a.before = 0, 0
	id := history.NewID(a.run, a.client, a.sequence)
	*tx = history.Transaction{ID: id, Kind: appends, Ops: tx.Ops[:0]}
	var bytes uint64
	for i := range a.config.Batch {
		bytes += a.formula.length(a.config.Size, id, uint32(i))
	}
	tx.Ops = append(tx.Ops, history.Op{Object: stream, Write: true, Amount: int64(bytes)})
}

// make returns the value of one event of the append; it is valid until the next.
func (a *appender) make(id history.ID, member uint32) []byte {
	a.value = a.formula.appendValue(a.value[:0], id, member, a.formula.length(a.config.Size, id, member))
	return a.value
}

// unsent ends an append of which nothing was sent that could be applied.
func (a *appender) unsent(tx *history.Transaction) bool {
	if a.tried == 0 {
		tx.Outcome = history.Aborted
	}
	return a.tried == 0
}

// done records that the append was applied behind the place end.
func done(tx *history.Transaction, end uint64) {
	tx.Outcome = history.Committed
	tx.Ops[0].Observed, tx.Ops[0].Version = true, end
}

// ends holds where a client's own streams end: by stream, its last place plus 1; 0 is not known. Nothing is kept for
// shared streams.
type ends struct {
	after  []uint64
	writer []history.ID // of the last place
}

func (a *appender) slot(stream uint64) uint64 { return (stream - a.first) / a.step }

// end returns the end of a stream and the writer of its last place.
func (a *appender) end(stream uint64) (end uint64, writer history.ID) {
	at := a.slot(stream)
	return a.ends.after[at], a.ends.writer[at]
}

// setEnd records the end of a stream and the writer of its last place.
func (a *appender) setEnd(stream, end uint64, writer history.ID) {
	if !a.shared {
		at := a.slot(stream)
		a.ends.after[at], a.ends.writer[at] = end, writer
	}
}

// try runs one try of an append. After an error it is not known any more where the stream ends.
func (a *appender) try(ctx context.Context, tx *history.Transaction, run func(context.Context, *history.Transaction) error) error {
	workload.Forget(tx)
	if a.tried != 0 {
		a.before = a.tried
	}
	a.tried = 0
	err := run(ctx, tx)
	if err != nil {
		a.ends.after[a.slot(tx.Ops[0].Object)] = 0
	}
	if db.ConstraintOf(err) == db.UniqueKey {
		return errTaken
	}
	return err
}
