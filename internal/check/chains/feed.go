package chains

import (
	"context"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// batch holds decoded transactions of one client in order, and owns their memory. The memory is reused after
// all of them were placed and their ends were passed.
type batch struct {
	client history.ID // without a sequence number
	file   int        // index of the recording in the input
	zero   int64      // zero of the recording's times, ns
	list   []transaction
	soon   []upcoming     // what the merger needs to know of list
	ops    []operation    // operations of the transactions with more than two
	now    []operation    // operations of the transaction being decoded
	live   int            // transactions that are not both placed and ended, plus one until all were passed on
	large  [][]operation  // memory of transactions with many operations, passed on to other batches
	apart  []*transaction // transactions that may wait until the end and have their own memory
	legs   fingerprint
	counts counts
	err    error
	later  *history.Block  // the block, if it is not decoded in advance
	rest   *history.Cursor // over the block's remaining transactions; nil: none
	ready  chan struct{}   // receives an element when the batch is decoded
	pool   *sync.Pool
}

// counts summarizes all records of a client, including those without influence on the order.
type counts struct {
	records               int
	applied, acknowledged int
	inDoubt               int
	committed             int // without background transactions
	first, last           history.ID
	try, end              int64        // of the first and of the last transaction
	lookedUp              []history.ID // not applied; the ledger may have a tombstone
}

func (b *batch) done() {
	if b.live--; b.live > 0 {
		return
	}
	for _, ops := range b.large {
		largeOperations.Put(ops)
	}
	clear(b.large)
	b.large = b.large[:0]
	b.pool.Put(b)
}

// manyOperations is the number of operations from which a transaction has memory outside its batch. Most
// batches contain no such transaction and would keep that memory unused.
const manyOperations = 1 << 10

// largeOperations holds memory for the operations of such transactions.
var largeOperations history.Memory[operation]

// room returns empty memory for the operations of one transaction.
func (b *batch) room(operations int) []operation {
	if operations < manyOperations {
		return b.now[:0]
	}
	ops := largeOperations.Take(operations)
	b.large = append(b.large, ops)
	return ops
}

// blocks is a source whose blocks any goroutine can decode, such as *history.Reader.
type blocks interface {
	Blocks() iter.Seq2[history.Block, error]
	Cursor() *history.Cursor
}

// feed provides the transactions of the clients in batches, which several goroutines decode. For a file, a batch is a
// piece of a block. Only the current and the next piece of each open block are decoded. So the decoded pieces of many
// clients fit into a processor's caches.
type feed struct {
	in    Input
	legs  map[history.ID][]history.Row
	mutex sync.Mutex // guards Input.Look
	look  func(tx *history.Transaction) error
	left  map[history.ID]int // blocks of each client that were not passed on yet
	file  map[history.ID]int // recording of each client; a client must not occur in two

	piece   int // number of records decoded together
	batches sync.Pool
	cursors []sync.Pool   // one for each recording
	order   chan *batch   // the first batch of each block
	further chan []*batch // the other batches
	group   []*batch      // batches for further that were not sent yet
	grouped int           // number of batches sent together
	advance atomic.Int32  // number of transactions with many operations in batches that were not taken yet
	stop    func()        // stops the goroutines and waits until none calls Look

	apart    []*batch // by recording: transactions outside the batches' memory
	counted  Proof
	sum      fingerprint
	lookedUp map[history.ID]bool
}

// These constants limit the number of records in a batch: for a source without blocks, and for one with
// blocks. With blocks, all clients together decode about mostDecoded records, within the limits.
const (
	batchSize   = 512
	mostPiece   = 512
	leastPiece  = 16
	mostDecoded = 1 << 16
)

// ahead is the number of blocks that are opened in advance. mostAdvance limits how many transactions with
// many operations are decoded in advance: to reach the next block of a client that writes seldom, many blocks
// of the others are opened.
const (
	ahead       = 16
	mostAdvance = 4
)

func newFeed(w *check.Watch, in Input, legs map[history.ID][]history.Row) (*feed, error) {
	f := &feed{in: in, look: in.Look(), legs: legs, left: map[history.ID]int{}, file: map[history.ID]int{}, lookedUp: map[history.ID]bool{}, stop: func() {}}
	f.batches.New = func() any { return &batch{ready: make(chan struct{}, 1), pool: &f.batches} }
	for _, r := range in.History {
		if max(r.Zero, -r.Zero) > latest || r.Error < 0 || r.Error > latest {
			return nil, unproved("run %d began at no time", r.Header().Run)
		}
		f.apart = append(f.apart, &batch{file: len(f.apart), live: math.MaxInt / 2})
	}
	if files := in.files(); files != nil {
		return f, f.deal(files)
	}
	return f, f.gather(w)
}

// files returns the recordings if each consists of blocks, and nil otherwise.
func (in *Input) files() (list []blocks) {
	for _, r := range in.History {
		source, ok := r.Source.(blocks)
		if !ok {
			return nil
		}
		list = append(list, source)
	}
	return list
}

// begunBlock holds a block whose first batch must be decoded.
type begunBlock struct {
	batch *batch
	block history.Block
}

// place is the position of a block in a recording.
type place struct {
	file  int
	block history.Block
}

// deal starts the goroutines that decode the blocks, one for each processor.
func (f *feed) deal(files []blocks) error {
	list, err := f.places(files)
	if err != nil {
		return err
	}
	clients := max(1, len(f.left))
	f.piece, f.grouped = f.in.piece, f.in.grouped
	if f.piece == 0 {
		f.piece = max(leastPiece, min(mostPiece, mostDecoded/clients))
		f.grouped = max(1, min(64, clients/16))
	}
	f.cursors = make([]sync.Pool, len(files))
	for i, file := range files {
		f.cursors[i].New = func() any { return file.Cursor() }
	}
	f.order, f.further = make(chan *batch, ahead), make(chan []*batch, ahead)
	begun := make(chan begunBlock, ahead)
	ctx, stop := context.WithCancel(context.Background())
	var decoding sync.WaitGroup
	f.stop = func() {
		stop()
		decoding.Wait()
	}
	decoding.Go(func() {
		for _, p := range list {
			b := f.batches.Get().(*batch)
			b.reset(f.client(p), p.file, f.in.History[p.file].Zero)
			select {
			case f.order <- b:
			case <-ctx.Done():
				return
			}
			select {
			case begun <- begunBlock{b, p.block}:
			case <-ctx.Done():
				return
			}
		}
	})
	for range runtime.GOMAXPROCS(0) {
		decoding.Go(func() { f.work(ctx, begun) })
	}
	return nil
}

// large reports whether a block may contain transactions with many operations: its records are long, or it
// has few of them, as audits are written. A read that repeats an earlier one takes no space in the file, so a
// short record may have many operations.
func large(b history.Block) bool { return b.Records < leastPiece || b.Length > 1<<12*b.Records }

// work decodes blocks and batches until the context ends.
func (f *feed) work(ctx context.Context, begun <-chan begunBlock) {
	for {
		select {
		case <-ctx.Done():
			return
		case group := <-f.further:
			for _, b := range group {
				if ctx.Err() == nil {
					f.decode(b)
					b.ready <- struct{}{}
				}
			}
		case j := <-begun:
			if large(j.block) && f.advance.Load() >= mostAdvance {
				j.batch.later = &j.block
			} else {
				f.open(j.batch, &j.block)
				f.decode(j.batch)
			}
			j.batch.ready <- struct{}{}
		}
	}
}

// open opens the block of a batch, which is the first of the block.
func (f *feed) open(b *batch, block *history.Block) {
	b.rest = f.cursors[b.file].Get().(*history.Cursor)
	b.rest.Open(*block)
}

// decode fills a batch with the next transactions of its block, and with at most one that has many
// operations.
func (f *feed) decode(b *batch) {
	cursor := b.rest
	for b.counts.records < f.piece && len(b.large) == 0 && b.err == nil {
		if cursor.Next() {
			b.err = f.add(b, &cursor.Transaction)
			continue
		}
		if err := cursor.Err(); err != nil {
			b.err = unproved("%v", err)
		}
		break
	}
	if b.err == nil && (b.counts.records == f.piece || len(b.large) > 0) {
		return
	}
	b.rest = nil
	f.cursors[b.file].Put(cursor)
}

// after returns the next batch of the block and starts its decoding. It returns nil if there is none.
func (f *feed) after(b *batch) *batch {
	if b.rest == nil {
		return nil
	}
	next := f.batches.Get().(*batch)
	next.reset(b.client, b.file, b.zero)
	next.rest = b.rest
	if f.group = append(f.group, next); len(f.group) == f.grouped {
		f.further <- f.group
		f.group = make([]*batch, 0, f.grouped)
	}
	return next
}

// gather decodes sources without blocks completely, before the first batch is passed on.
func (f *feed) gather(w *check.Watch) (problem error) {
	open := map[history.ID]*batch{}
	var list []*batch
	for file, r := range f.in.History {
		run := r.Header().Run
		for rec := range check.Each(w, "the history", r.Transactions(), &problem) {
			client := clientOf(rec.ID)
			if client.Run() != run {
				return unproved("%v is in the records of run %d", rec.ID, run)
			}
			b := open[client]
			if b == nil || b.counts.records == batchSize {
				b = f.batches.Get().(*batch)
				b.reset(client, file, r.Zero)
				b.ready <- struct{}{}
				if err := f.count(client, file); err != nil {
					return err
				}
				open[client], list = b, append(list, b)
			}
			if b.err == nil {
				b.err = f.add(b, rec.Transaction)
			}
		}
		if problem != nil {
			return unproved("%v", problem)
		}
	}
	f.order = make(chan *batch, len(list))
	for _, b := range list {
		f.order <- b
	}
	return nil
}

// count counts a block of a client.
func (f *feed) count(client history.ID, file int) error {
	if f.left[client]++; f.left[client] == 1 {
		f.file[client] = file
	}
	if f.file[client] != file {
		return unproved("client %d of run %d is in two recordings", client.Client(), client.Run())
	}
	return nil
}

// next returns the first batch of the next block, which may still be decoding. It must not be called after
// the last block.
func (f *feed) next() *batch {
	b := <-f.order
	f.left[b.client]--
	return b
}

// take waits for the client's next batch and merges its counts into before.
func (f *feed) take(b *batch, before *counts) error {
	if i := slices.Index(f.group, b); i >= 0 { // no goroutine was asked to decode it yet
		f.group = slices.Delete(f.group, i, i+1)
		f.decode(b)
	} else {
		<-b.ready
	}
	if b.later != nil {
		f.open(b, b.later)
		f.decode(b)
	}
	f.advance.Add(-int32(len(b.large)))
	if b.err != nil {
		return b.err
	}
	c := b.counts
	switch {
	case c.records == 0:
		return nil
	case before.records == 0 && c.first.Sequence() > 1:
		return unproved("%v is the first of its client", c.first)
	case before.records > 0 && (c.first != before.last+1 || c.try < before.end):
		return unproved("%v does not follow %v", c.first, before.last)
	}
	*before = c
	f.counted.Applied += c.applied
	f.counted.Acknowledged += c.acknowledged
	f.counted.InDoubt += c.inDoubt
	f.counted.Committed += c.committed
	f.sum.join(b.legs)
	for _, id := range c.lookedUp {
		f.lookedUp[id] = true
	}
	return nil
}

func (b *batch) reset(client history.ID, file int, zero int64) {
	*b = batch{client: client, file: file, zero: zero, list: b.list[:0], soon: b.soon[:0], ops: b.ops[:0], now: b.now[:0], large: b.large, live: 1, ready: b.ready, pool: b.pool}
}

// add appends a transaction to the batch if it belongs to the order.
func (f *feed) add(b *batch, tx *history.Transaction) error {
	c := &b.counts
	switch {
	case clientOf(tx.ID) != b.client:
		return unproved("%v is in the records of client %d of run %d", tx.ID, b.client.Client(), b.client.Run())
	case c.records == 0:
		c.first, c.try = tx.ID, tx.Try
	case tx.ID != c.last+1 || tx.Try < c.end:
		return unproved("%v does not follow %v", tx.ID, c.last)
	}
	if tx.End < tx.Try || tx.Try < -latest || tx.End > latest {
		return unproved("%v ended before it began, or never", tx.ID)
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
	if tx.Outcome == history.Aborted {
		if tx.LookedUp {
			c.lookedUp = append(c.lookedUp, tx.ID)
		}
		return nil
	}
	n := len(b.list)
	b.list = slices.Grow(b.list, 1)[:n+1]
	t := &b.list[n] // built in place: a copy would cost a tenth of the check
	*t = transaction{id: tx.ID, try: tx.Try + b.zero, end: tx.End + b.zero, flags: reader, batch: b}
	if tx.Kind.Background() {
		t.flags |= background
	}
	large := len(tx.Ops) >= manyOperations
	b.now = b.room(len(tx.Ops))
	applied, err := f.operations(b, t, tx)
	if applied && tx.Outcome == history.Committed {
		c.applied++
		if !t.has(reader) {
			c.acknowledged++
		}
	}
	if applied && err == nil && len(b.now) > 0 {
		f.keep(b, t, large)
	} else {
		b.list = b.list[:n]
	}
	if large {
		f.advance.Add(1)
		b.now = nil
	}
	return err
}

// operations stores the relevant operations of a transaction in b.now. It returns false if the transaction
// was neither applied nor rejected.
func (f *feed) operations(b *batch, t *transaction, tx *history.Transaction) (applied bool, err error) {
	switch {
	case f.in.End == nil:
		return f.witnessed(b, t, tx)
	case f.asked(tx):
		if tx.Outcome == history.Unknown {
			b.counts.inDoubt++
		}
		return f.resolve(b, t, tx)
	case tx.Outcome == history.Unknown: // it wrote nothing
		return false, nil
	}
	return true, f.observed(b, t, tx)
}

// latest limits the times, in ns: 36 years.
const latest = 1 << 60

// most limits the version numbers of an object.
const most = math.MaxUint32 - 1
