package chains

import (
	"context"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// transaction is one that counts: it was applied, or refused for what it had read. It takes
// 48 bytes, and each operation 32: a history with many clients has many of them waiting.
type transaction struct {
	id       history.ID
	try, end int64  // ns
	first    uint32 // of its operations in the batch
	count    uint32 // of them
	batch    *batch
	lacking  int32 // reads of versions that are not there yet
	state    state

	reader    bool // it writes nothing
	unknown   bool // applied by the ledger alone: nobody knows when at the latest
	demanded  bool // of an unknown one: somebody read what it made
	postponed bool // it is in a heap
}

func (t *transaction) ops() []operation { return t.batch.ops[t.first : t.first+t.count] }

// operation is a read, or a write and what was read before it.
type operation struct {
	value   int64
	writer  history.ID
	amount  int64
	version uint32
	packed  uint32 // the object's number, and what the constants say
}

const (
	write      = 1 << 31
	seen       = 1 << 30 // value and writer were read
	objectBits = seen - 1
)

func (o *operation) object() uint32 { return o.packed & objectBits }
func (o *operation) write() bool    { return o.packed&write != 0 }
func (o *operation) seen() bool     { return o.packed&seen != 0 }

func newOperation(op *history.Op, writes bool) operation {
	o := operation{value: op.Value, writer: op.Writer, amount: op.Amount, version: uint32(op.Version), packed: uint32(op.Object)}
	if writes {
		o.packed |= write
	}
	if op.Observed {
		o.packed |= seen
	}
	return o
}

// batch is decoded transactions of one client, in its order, with their memory. The
// memory is used again when each of them is placed and its end has been passed.
type batch struct {
	client uint64
	list   []transaction
	ops    []operation
	next   int // of the list, that was not handed over
	live   int // what must still be done with the transactions, and one until all were handed over
	legs   fingerprint
	counts counts
	err    error
	ready  chan struct{} // has an element when the batch is decoded
	pool   *sync.Pool
}

// counts are what is known of a client's records, also of those that do not count.
type counts struct {
	records               int
	applied, acknowledged int
	committed             int // but for those of the background
	first, last           history.ID
	try, end              int64        // of the first and of the last one
	lookedUp              []history.ID // not applied, and the ledger may have a tombstone
}

func (b *batch) done() {
	if b.live--; b.live == 0 {
		b.pool.Put(b)
	}
}

// blocks is a source whose blocks can be decoded by any goroutine; *history.Reader is one.
type blocks interface {
	Blocks() iter.Seq2[history.Block, error]
	Cursor() *history.Cursor
}

// feed hands over batches in the order of the file, which several goroutines decode.
type feed struct {
	in    Input
	legs  map[history.ID][]history.Row
	run   uint64
	mutex sync.Mutex // of look
	look  func(tx *history.Transaction) error
	pool  sync.Pool
	order chan *batch
	stop  func()         // ends the goroutines, of which none looks at anything afterwards
	left  map[uint64]int // batches of each client that were not handed over

	last     map[uint64]counts // of each client, of the batches that were
	counted  Proof
	sum      fingerprint
	lookedUp map[history.ID]bool
}

// batchSize is how many records of a source without blocks are in one batch.
const batchSize = 512

// ahead is how many batches are decoded before somebody asks for them.
const ahead = 16

func newFeed(w *check.Watch, in Input, legs map[history.ID][]history.Row) (*feed, error) {
	f := &feed{
		in: in, look: in.Look(), legs: legs, run: in.History.Header().Run, left: map[uint64]int{},
		last: map[uint64]counts{}, lookedUp: map[history.ID]bool{}, stop: func() {},
	}
	f.pool.New = func() any { return &batch{ready: make(chan struct{}, 1), pool: &f.pool} }
	if source, ok := in.History.(blocks); ok {
		return f, f.deal(source)
	}
	return f, f.gather(w)
}

// deal has the blocks decoded by a goroutine for each processor.
func (f *feed) deal(source blocks) error {
	var list []history.Block
	for b, err := range source.Blocks() {
		if err != nil {
			return unproved("%v", err)
		}
		list = append(list, b)
		f.left[uint64(b.Client)]++
	}
	type job struct {
		batch *batch
		block history.Block
	}
	jobs := make(chan job, ahead)
	f.order = make(chan *batch, ahead)
	ctx, stop := context.WithCancel(context.Background())
	var decoding sync.WaitGroup
	f.stop = func() {
		stop()
		decoding.Wait()
	}
	go func() {
		defer close(jobs)
		for _, block := range list {
			b := f.pool.Get().(*batch)
			b.reset(uint64(block.Client))
			select {
			case f.order <- b:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- job{b, block}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range runtime.GOMAXPROCS(0) {
		decoding.Go(func() {
			cursor := source.Cursor()
			for j := range jobs {
				if ctx.Err() == nil {
					f.decode(j.batch, cursor, j.block)
				}
				j.batch.ready <- struct{}{}
			}
		})
	}
	return nil
}

func (f *feed) decode(b *batch, cursor *history.Cursor, block history.Block) {
	cursor.Open(block)
	for cursor.Next() && b.err == nil {
		b.err = f.add(b, &cursor.Transaction)
	}
	if err := cursor.Err(); err != nil && b.err == nil {
		b.err = unproved("%v", err)
	}
}

// gather decodes a source without blocks, all of it before the first batch is handed over.
func (f *feed) gather(w *check.Watch) (problem error) {
	open := map[uint64]*batch{}
	var list []*batch
	for rec := range check.Each(w, "the history", f.in.History.Transactions(), &problem) {
		b := open[rec.ID.Client()]
		if b == nil || b.counts.records == batchSize {
			b = f.pool.Get().(*batch)
			b.reset(rec.ID.Client())
			b.ready <- struct{}{}
			f.left[b.client]++
			open[b.client], list = b, append(list, b)
		}
		if b.err == nil {
			b.err = f.add(b, rec.Transaction)
		}
	}
	f.order = make(chan *batch, len(list))
	for _, b := range list {
		f.order <- b
	}
	if problem != nil {
		return unproved("%v", problem)
	}
	return nil
}

// next returns the next batch. There is one while left has any.
func (f *feed) next() (*batch, error) {
	b := <-f.order
	<-b.ready
	if b.err != nil {
		return nil, b.err
	}
	f.left[b.client]--
	c := b.counts
	switch before, ok := f.last[b.client]; {
	case c.records == 0:
	case !ok && c.first.Sequence() > 1:
		return nil, unproved("%v is the first of its client", c.first)
	case ok && (c.first != before.last+1 || c.try < before.end):
		return nil, unproved("%v does not follow %v", c.first, before.last)
	}
	if c.records > 0 {
		f.last[b.client] = c
	}
	f.counted.Applied += c.applied
	f.counted.Acknowledged += c.acknowledged
	f.counted.Committed += c.committed
	f.sum.join(b.legs)
	for _, id := range c.lookedUp {
		f.lookedUp[id] = true
	}
	return b, nil
}

func (b *batch) reset(client uint64) {
	*b = batch{client: client, list: b.list[:0], ops: b.ops[:0], live: 1, ready: b.ready, pool: b.pool}
}

// add appends a transaction, if it counts.
func (f *feed) add(b *batch, tx *history.Transaction) error {
	c := &b.counts
	switch {
	case tx.ID.Run() != f.run || tx.ID.Client() != b.client:
		return unproved("%v is in the records of client %d of run %d", tx.ID, b.client, f.run)
	case c.records == 0:
		c.first, c.try = tx.ID, tx.Try
	case tx.ID != c.last+1 || tx.Try < c.end:
		return unproved("%v does not follow %v", tx.ID, c.last)
	}
	if tx.End < tx.Try {
		return unproved("%v ended before it began", tx.ID)
	}
	c.records++
	c.last, c.end = tx.ID, tx.End
	if tx.Outcome == history.Committed && !tx.Kind.Background() {
		c.committed++
	}
	if tx.Outcome == history.Rejected || tx.Kind.Background() {
		f.mutex.Lock()
		err := f.look(tx)
		f.mutex.Unlock()
		if err != nil {
			return unproved("%v", err)
		}
	}
	t := transaction{id: tx.ID, try: tx.Try, end: tx.End, reader: true, batch: b}
	first := len(b.ops)
	var err error
	switch {
	case tx.Outcome == history.Aborted:
		if tx.LookedUp {
			c.lookedUp = append(c.lookedUp, tx.ID)
		}
		return nil
	case f.asked(tx):
		var applied bool
		if applied, err = f.resolve(b, &t, tx); !applied {
			return err
		}
	case tx.Outcome == history.Unknown: // it wrote nothing
		return nil
	default:
		err = f.observed(b, &t, tx)
	}
	if tx.Outcome == history.Committed {
		c.applied++
		if !t.reader {
			c.acknowledged++
		}
	}
	if len(b.ops) == first {
		return err
	}
	t.first, t.count = uint32(first), uint32(len(b.ops)-first)
	b.list = append(b.list, t)
	b.live += 2
	return err
}

// asked says that the ledger is asked for the legs of a transaction.
func (f *feed) asked(tx *history.Transaction) bool {
	_, asked := f.legs[tx.ID]
	return asked || blind(tx)
}

// observed adds the operations of a transaction whose client saw what it wrote. One that
// was refused has read, and wrote nothing.
func (f *feed) observed(b *batch, t *transaction, tx *history.Transaction) error {
	refused, legs := tx.Outcome == history.Rejected, uint32(0)
	for i := range tx.Ops {
		op := &tx.Ops[i]
		writes := op.Write && !refused
		switch {
		case op.Object >= f.in.Objects && writes:
			return unproved("%v wrote an object that no load made", tx.ID)
		case op.Object >= f.in.Objects || !op.Observed:
			continue
		case op.Version >= most:
			return unproved("%v read an impossible version", tx.ID)
		}
		b.ops = append(b.ops, newOperation(op, writes))
		if writes {
			t.reader = false
			b.legs.add(tx.ID, legs, op.Object, op.Amount, op.Version+1)
			legs++
		}
	}
	return nil
}

// most bounds the versions of an object.
const most = math.MaxUint32 - 1

// resolve adds the operations of a transaction whose client did not see what it made, as
// the ledger has it. It returns false of one that was not applied.
func (f *feed) resolve(b *batch, t *transaction, tx *history.Transaction) (applied bool, err error) {
	if f.legs == nil {
		return false, unproved("what %v made is not recorded", tx.ID)
	}
	rows := slices.Clone(f.legs[tx.ID])
	switch {
	case len(rows) > 0:
	case tx.Outcome == history.Committed:
		return false, unproved("%v was acknowledged and is not in the ledger", tx.ID)
	default:
		b.counts.lookedUp = append(b.counts.lookedUp, tx.ID)
		return false, nil
	}
	t.unknown = tx.Outcome == history.Unknown
	legs := uint32(0)
	for i := range tx.Ops {
		op := &tx.Ops[i]
		o := newOperation(op, op.Write)
		switch {
		case op.Object >= f.in.Objects:
			return false, unproved("%v is about an object that no load made", tx.ID)
		case !op.Write && !op.Observed:
			continue
		case op.Version >= most:
			return false, unproved("%v read an impossible version", tx.ID)
		case op.Write:
			n := slices.IndexFunc(rows, func(r history.Row) bool { return r.Object == op.Object && r.Amount == op.Amount })
			if n < 0 || rows[n].Version == 0 || rows[n].Version > most {
				return false, unproved("the ledger has %v otherwise than it was sent", tx.ID)
			}
			if op.Observed && op.Version+1 != rows[n].Version { // it read a version and overwrote a later one
				b.ops = append(b.ops, newOperation(op, false))
				o.packed &^= seen
			}
			o.version = uint32(rows[n].Version - 1)
			b.legs.add(tx.ID, legs, op.Object, op.Amount, rows[n].Version)
			legs++
			rows = slices.Delete(rows, n, n+1)
			t.reader = false
		}
		b.ops = append(b.ops, o)
	}
	if len(rows) > 0 {
		return false, unproved("the ledger has more of %v than was sent", tx.ID)
	}
	if t.unknown {
		b.live++ // its memory is never used again: it may wait until the end
	}
	return true, nil
}
