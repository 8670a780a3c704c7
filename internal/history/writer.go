package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// The names of the files of a history, and of the folder that Ref speaks of.
const (
	folder           = "history"
	transactionsFile = FileName
)

// FileName is that of the transactions, in a history's folder.
const FileName = "transactions.bin"

const recording = "record the history"

// maxAge is how long a client keeps a record to itself, by the records' own End.
const maxAge = 1e9

// The size of a block. All clients together fill about fillBudget, so that many
// clients have small blocks: 64 kB for up to 256 clients, 1 kB from 16,384 on.
const (
	fillBudget = 16 << 20
	minBlock   = 1 << 10
	maxBlock   = 64 << 10
	// pauseBudget is about how much few clients fill while the disk pauses.
	pauseBudget = 32 << 20
)

// Writer writes the history of one run. Each client appends to its own
// ClientWriter; full blocks go to one goroutine, which writes the file.
type Writer struct {
	clients []ClientWriter
	size    int         // of a block's buffer
	blocks  chan *block // to the goroutine
	free    sync.Pool   // of blocks
	stop    chan struct{}
	done    chan struct{}
	out     *blockFile
	dir     string // of the manifest; empty: there is none
	failure *failure
	closed  bool
	result  error
}

// block is a buffer on its way between a client and the goroutine.
type block struct {
	data    []byte // head and payload
	client  uint32
	records uint32

	_ [96]byte // 128 in all: no two of them on one cache line
}

// failure holds the first error. It lives apart from all that is written
// often, so that every client can look at it for each transaction at no cost.
type failure struct {
	_   [64]byte
	err atomic.Pointer[error]
	_   [64]byte
}

func (f *failure) get() error {
	if p := f.err.Load(); p != nil {
		return *p
	}
	return nil
}

func (f *failure) set(err error) { f.err.CompareAndSwap(nil, &err) }

// Create starts the history of a run in dir, the run's history folder, which is
// made if it is missing. A folder that holds a history is refused. clients is
// the number of ClientWriters, those of background clients included.
func Create(dir string, h Header, clients int) (*Writer, error) {
	path := filepath.Join(dir, transactionsFile)
	if clients < 1 {
		return nil, fmt.Errorf("%s in %s: %d clients: take at least one", recording, path, clients)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, explain(recording, dir, err)
	}
	f, err := createFile(path, os.O_EXCL)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s in %s: a history is there already: choose another folder with --out: %w", recording, path, fs.ErrExist)
	}
	if err != nil {
		return nil, explain(recording, path, err)
	}
	w, err := create(f, path, description{h, true}, clients)
	if err == nil {
		w.dir = dir
	}
	return w, err
}

// create starts a history whose preamble keeps header as JSON.
func create(f file, path string, header any, clients int) (*Writer, error) {
	out, err := startFile(f, recording, path, transactions, header)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	w := &Writer{
		clients: make([]ClientWriter, clients),
		size:    min(max(fillBudget/clients, minBlock), maxBlock),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		out:     out,
		failure: new(failure),
	}
	// Every client has one buffer, and all may hand theirs over at once. Few
	// clients get more, so that a disk may pause; they are made when needed. A client
	// waits when the disk is so slow that the channel is full.
	w.blocks = make(chan *block, max(2*clients+16, pauseBudget/w.size)-clients)
	w.free.New = func() any { return &block{data: make([]byte, 0, w.size)} }
	for i := range w.clients {
		w.clients[i].w, w.clients[i].number = w, uint32(i)
	}
	go w.write()
	return w, nil
}

// Client returns the writer of client i, from 0.
func (w *Writer) Client(i int) *ClientWriter { return &w.clients[i] }

// Err returns the first error in writing so far; it may be called at any time
// from any goroutine. From then on the history grows no more, but what was
// written before stays readable.
func (w *Writer) Err() error { return w.failure.get() }

// Copy adds all that another recording of the same run holds, whose clients were in
// another process, as it is. Where that one is damaged or incomplete an error says so, and
// what was whole before is there; then this one is to Fail too, once all is copied that
// there is. r must not grow any more.
func (w *Writer) Copy(r *Reader) error {
	var buffer []byte
	for b, err := range r.Blocks() {
		if err == nil && int(b.Client) >= len(w.clients) {
			err = r.manyClients(b.Client, len(w.clients))
		}
		if err == nil {
			buffer, err = r.source.payload(b, buffer)
		}
		if err != nil {
			return err
		}
		copied := &block{data: append(make([]byte, blockHeadSize, blockHeadSize+len(buffer)), buffer...), client: b.Client, records: b.Records}
		if err := w.clients[b.Client].send(copied); err != nil {
			return err
		}
	}
	return w.copiedWhole(r)
}

// manyClients says that a recording has a client that this one cannot have.
func (r *Reader) manyClients(client uint32, of int) error {
	return fmt.Errorf("%s in %s: there is a client %d, and a part of it is to be added to a recording of %d: take the parts of one run", recording, r.source.path, client, of)
}

// copiedWhole says that a recording of which all was copied has no end.
func (w *Writer) copiedWhole(r *Reader) error {
	if r.Complete() {
		return nil
	}
	return fmt.Errorf("%s in %s: %s ends before its time: the history is not complete", recording, w.out.path, r.source.path)
}

// Fail has the history end with an error and stay incomplete, unless there is one already.
func (w *Writer) Fail(err error) { w.failure.set(err) }

// Close completes the history, after all clients have flushed. Where one has
// not, or writing has failed, it says so and the history stays incomplete.
func (w *Writer) Close() error {
	if w.closed {
		return w.result
	}
	w.closed = true
	close(w.stop)
	<-w.done
	for i := range w.clients {
		if w.clients[i].holds.Load() {
			w.failure.set(fmt.Errorf("%s in %s: client %d has not handed over its last records: the history is not complete", recording, w.out.path, i))
			break
		}
	}
	w.drain() // what came while the goroutine was stopping
	if w.result = w.Err(); w.result != nil {
		_ = w.out.f.Close()
		return w.result
	}
	if w.result = w.out.finish(); w.result == nil && w.dir != "" {
		w.result = list(w.dir, map[string]entry{transactionsFile: w.out.sums.entry()})
	}
	if w.result != nil {
		w.failure.set(w.result)
	}
	return w.result
}

// write is the goroutine. It goes on taking blocks after an error, so that no
// client ever waits for a disk that is full.
func (w *Writer) write() {
	defer close(w.done)
	for {
		select {
		case b := <-w.blocks:
			w.put(b)
		case <-w.stop:
			w.drain()
			return
		}
	}
}

func (w *Writer) drain() {
	for {
		select {
		case b := <-w.blocks:
			w.put(b)
		default:
			return
		}
	}
}

func (w *Writer) put(b *block) {
	if w.out.err == nil {
		sealBlock(b.data, b.client, b.records)
		if err := w.out.block(b.data, b.records); err != nil {
			w.failure.set(err)
		}
	}
	if cap(b.data) == w.size { // it was not made for one large record
		w.free.Put(b)
	}
}

// ClientWriter is the part of the history that one client writes. One goroutine
// uses it at a time. It fills a buffer of its own and hands it over when it is
// full or when its first record is a second older than its last.
type ClientWriter struct {
	w       *Writer
	block   *block // nil until the first record
	context context
	first   int64 // End of the block's first record
	number  uint32
	scratch []byte      // of records larger than a block
	earlier earlier     // the last one of these
	holds   atomic.Bool // records are in block; set once a block, for Close
	_       [64]byte    // the next client's fields are on another cache line
}

// Append copies tx into the history. It takes no lock and allocates nothing
// except for a transaction larger than a block. An error is the Writer's first
// one: nothing more is recorded.
func (c *ClientWriter) Append(tx *Transaction) error {
	if err := c.w.failure.get(); err != nil {
		return err
	}
	most := maxRecord + maxOp*len(tx.Ops) + maxElement*len(tx.Elements) + len(tx.Broken)
	if most > c.w.size-blockHeadSize {
		return c.appendLarge(tx)
	}
	if c.block != nil && len(c.block.data)+most > cap(c.block.data) {
		if err := c.Flush(); err != nil {
			return err
		}
	}
	c.begin(tx)
	c.block.data = appendTransaction(c.block.data, tx, &c.context)
	c.block.records++
	if tx.End-c.first > maxAge {
		return c.Flush()
	}
	return nil
}

// begin makes sure that there is a block, whose first record is tx if it is new.
func (c *ClientWriter) begin(tx *Transaction) {
	if c.block != nil && c.block.records > 0 {
		return
	}
	if c.block == nil {
		c.block = c.w.free.Get().(*block)
	}
	c.block.data = c.block.data[:blockHeadSize]
	c.block.client, c.block.records = c.number, 0
	c.context.startBlock()
	c.first = tx.End
	c.holds.Store(true)
}

// appendLarge records a transaction that may not fit a block: where it does fit
// after all it goes into one, else it gets a block of its own size.
func (c *ClientWriter) appendLarge(tx *Transaction) error {
	alone := c.context
	alone.startBlock()
	c.scratch = append(c.scratch[:0], make([]byte, blockHeadSize)...)
	if c.earlier.comparable(tx) {
		c.scratch = appendDifferences(c.scratch, tx, &alone, &c.earlier)
		c.earlier.note(tx, c.earlier.row+1)
	} else {
		c.scratch = appendTransaction(c.scratch, tx, &alone)
		c.earlier.note(tx, 0)
	}
	if len(c.scratch)-blockHeadSize > maxPayload {
		err := fmt.Errorf("%s in %s: transaction %s with %d operations takes %d bytes, and a block holds %d: audit a smaller sample",
			recording, c.w.out.path, tx.ID, len(tx.Ops), len(c.scratch), maxPayload)
		c.w.failure.set(err)
		return err
	}
	if err := c.Flush(); err != nil {
		return err
	}
	if len(c.scratch) <= c.w.size {
		c.begin(tx)
		c.block.data = append(c.block.data[:0], c.scratch...)
		c.block.records, c.context = 1, alone
		return nil
	}
	large := &block{data: append([]byte(nil), c.scratch...), client: c.number, records: 1}
	c.holds.Store(true)
	return c.send(large)
}

// Flush hands over what the client holds. The goroutine that appends calls it
// once at its end.
func (c *ClientWriter) Flush() error {
	if c.block == nil || c.block.records == 0 {
		return c.w.failure.get()
	}
	b := c.block
	c.block = nil
	return c.send(b)
}

func (c *ClientWriter) send(b *block) error {
	select {
	case <-c.w.stop:
	default:
		select {
		case c.w.blocks <- b:
			c.holds.Store(false)
			return c.w.failure.get()
		case <-c.w.done:
		}
	}
	if err := c.w.failure.get(); err != nil {
		return err
	}
	return fmt.Errorf("%s in %s: client %d records after the history was closed", recording, c.w.out.path, c.number)
}
