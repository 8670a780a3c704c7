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

// batch is decoded transactions of one client, in its order, with their memory. The
// memory is used again when each of them is placed and its end has been passed.
type batch struct {
	client history.ID // with no sequence number
	file   int        // which recording of the input it is of
	zero   int64      // of the recording's times, ns
	list   []transaction
	soon   []upcoming     // what the merger is to know of list
	ops    []operation    // of those of list that have more than two
	now    []operation    // of the transaction that is being decoded
	live   int            // transactions that are not both placed and ended, and one until all were handed over
	large  [][]operation  // memory of those of list with many operations, which other batches may use next
	apart  []*transaction // those of list that may wait until the end, with memory of their own
	legs   fingerprint
	counts counts
	err    error
	later  *history.Block  // that is opened when somebody asks
	asked  bool            // somebody was asked to decode it
	rest   *history.Cursor // on the block's other transactions; nil: there are none
	ready  chan struct{}   // has an element when the batch is decoded
	pool   *sync.Pool
}

// counts are what is known of a client's records, also of those that do not count.
type counts struct {
	records               int
	applied, acknowledged int
	inDoubt               int
	committed             int // but for those of the background
	first, last           history.ID
	try, end              int64        // of the first and of the last one
	lookedUp              []history.ID // not applied, and the ledger may have a tombstone
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

// manyOperations is from how many operations on a transaction has memory that is not its
// batch's: most batches never have one, and would keep as much.
const manyOperations = 1 << 10

// largeOperations holds memory for the operations of such transactions.
var largeOperations history.Memory[operation]

// room returns empty memory for so many operations of one transaction.
func (b *batch) room(operations int) []operation {
	if operations < manyOperations {
		return b.now[:0]
	}
	ops := largeOperations.Take(operations)
	b.large = append(b.large, ops)
	return ops
}

// blocks is a source whose blocks can be decoded by any goroutine; *history.Reader is one.
type blocks interface {
	Blocks() iter.Seq2[history.Block, error]
	Cursor() *history.Cursor
}

// feed hands over the transactions of the clients in batches, which several goroutines
// decode. Of a file they are pieces of blocks: of each block that was begun, the piece that
// is handed over and the next one are decoded, so that of many clients at once no more waits
// than fits into a processor's caches.
type feed struct {
	in    Input
	legs  map[history.ID][]history.Row
	mutex sync.Mutex // of look
	look  func(tx *history.Transaction) error
	left  map[history.ID]int // blocks of each client that were not handed over
	file  map[history.ID]int // which recording has a client: two are not to have the same one

	piece   int // how many records of a block are decoded at once
	batches sync.Pool
	cursors []sync.Pool   // of each recording
	order   chan *batch   // the first of each block
	further chan []*batch // the others
	group   []*batch      // of the others, that were not sent
	grouped int           // how many are sent together
	stop    func()        // ends the goroutines, of which none looks at anything afterwards

	apart    []*batch // by recording, of transactions that are in no batch's memory
	counted  Proof
	sum      fingerprint
	lookedUp map[history.ID]bool
}

// Of how many records a batch is: of a source without blocks, and of one with blocks, in
// which those of all clients together are mostDecoded where that is within the bounds.
const (
	batchSize   = 512
	mostPiece   = 512
	leastPiece  = 16
	mostDecoded = 1 << 16
)

// ahead is how many blocks are begun before somebody asks for them.
const ahead = 16

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

// files are the recordings, where each is one that consists of blocks; else nil.
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

// begunBlock is a block of which the first batch is to be decoded.
type begunBlock struct {
	batch *batch
	block history.Block
}

// place is a block of a recording.
type place struct {
	file  int
	block history.Block
}

// deal has the blocks decoded by a goroutine for each processor.
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
			if large(p.block) {
				b.later = &p.block // which is decoded when the client is there
			}
			select {
			case f.order <- b:
			case <-ctx.Done():
				return
			}
			if large(p.block) {
				continue
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

// large reports whether a block has much for each of its records: it is not decoded ahead.
func large(b history.Block) bool { return b.Length > 1<<12*b.Records }

// work decodes what it is given until the context ends.
func (f *feed) work(ctx context.Context, begun <-chan begunBlock) {
	for {
		select {
		case <-ctx.Done():
			return
		case group := <-f.further:
			for _, b := range group {
				if ctx.Err() == nil {
					if b.later != nil {
						f.open(b, b.later)
					}
					f.decode(b)
					b.ready <- struct{}{}
				}
			}
		case j := <-begun:
			f.open(j.batch, &j.block)
			f.decode(j.batch)
			j.batch.ready <- struct{}{}
		}
	}
}

// open opens the block of a batch that is the first of one.
func (f *feed) open(b *batch, block *history.Block) {
	b.rest = f.cursors[b.file].Get().(*history.Cursor)
	b.rest.Open(*block)
}

// prefetch has a large block decoded that is its client's next one.
func (f *feed) prefetch(b *batch) {
	if !b.asked && b.later != nil {
		b.asked = true
		f.further <- []*batch{b}
	}
}

// decode fills a batch with the next transactions of its block.
func (f *feed) decode(b *batch) {
	cursor := b.rest
	for b.counts.records < f.piece && b.err == nil && cursor.Next() {
		b.err = f.add(b, &cursor.Transaction)
	}
	if b.err == nil && b.counts.records == f.piece {
		return
	}
	if err := cursor.Err(); err != nil && b.err == nil {
		b.err = unproved("%v", err)
	}
	b.rest = nil
	f.cursors[b.file].Put(cursor)
}

// after returns the batch that follows one in its block, and has it decoded; nil if there
// is none.
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

// gather decodes sources without blocks, all of them before the first batch is handed over.
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

// next returns the first batch of the next block, which may still be decoded. There is one
// while left has any.
func (f *feed) next() *batch {
	b := <-f.order
	f.left[b.client]--
	return b
}

// take waits for a batch, which is the next one of a client, and takes up what is known of
// it. before is what was known of the client.
func (f *feed) take(b *batch, before *counts) error {
	if i := slices.Index(f.group, b); i >= 0 { // nobody was asked to decode it yet
		f.group = slices.Delete(f.group, i, i+1)
		f.decode(b)
	} else {
		f.prefetch(b)
		<-b.ready
	}
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

// add appends a transaction, if it counts.
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
	t := &b.list[n] // made in its place: copying it would cost a tenth of the check
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
		b.now = nil
	}
	return err
}

// operations puts those of a transaction that count into b.now. It returns false of one that
// was not applied, unless it was refused.
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

// latest bounds the times, in ns: 36 years.
const latest = 1 << 60

// most bounds the versions of an object.
const most = math.MaxUint32 - 1
