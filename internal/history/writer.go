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

// These are the names of a history's files, and of the folder in a Ref.
const (
	folder           = "history"
	transactionsFile = FileName
)

// FileName is the file of the transactions in a history's folder.
const FileName = "transactions.bin"

const recording = "record the history"

// maxAge is the maximal time that a client keeps a record in its buffer, measured by the records' End.
const maxAge = 1e9

// These constants determine the size of a block. All clients together fill about fillBudget, so that many
// clients have small blocks: 64 kB for up to 256 clients, and 1 kB from 16,384 on.
const (
	fillBudget = 16 << 20
	minBlock   = 1 << 10
	maxBlock   = 64 << 10
	// pauseBudget is about the amount of data that a few clients may produce while the disk pauses.
	pauseBudget = 32 << 20
)

// Writer writes the history of one run. Each client appends to its own ClientWriter; one goroutine writes the
// full blocks to the file.
type Writer struct {
	clients []ClientWriter
	size    int         // size of a block's buffer
	blocks  chan *block // to the goroutine
	free    sync.Pool   // unused blocks
	stop    chan struct{}
	done    chan struct{}
	out     *blockFile
	dir     string // folder of the manifest; empty: none
	failure *failure
	closed  bool
	result  error
}

// block is a buffer on its way between a client and the goroutine.
type block struct {
	data    []byte // head and payload
	client  uint32
	records uint32

	_ [96]byte // 128 bytes in all: no two blocks share a cache line
}

// failure holds the first error. It is separate from all frequently written data, so that every client can
// check it for each transaction at no cost.
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

// Create starts the history of a run in dir, the run's history folder, and creates dir if necessary. An
// existing history is an error. clients is the number of ClientWriters, including background clients.
func Create(dir string, h Header, clients int) (*Writer, error) {
	path := filepath.Join(dir, transactionsFile)
	if clients < 1 {
		return nil, fmt.Errorf("%s in %s: %d clients: use at least one", recording, path, clients)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, explain(recording, dir, err)
	}
	f, err := createFile(path, os.O_EXCL)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s in %s: a history exists already: choose another folder with --out: %w", recording, path, fs.ErrExist)
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

// create starts a history with header as JSON in its preamble.
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
	// Every client has one buffer, and all may deliver theirs together. Additional buffers for a few clients,
	// created on demand, allow the disk to pause. A client waits if the disk is so slow that the channel is
	// full.
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

// Err returns the first write error so far. Any goroutine may call it at any time. After an error the history
// does not grow, but its earlier content remains readable.
func (w *Writer) Err() error { return w.failure.get() }

// Copy adds another recording of the same run, whose clients were in another process. If that recording is
// damaged or incomplete, Copy adds its intact beginning and returns an error; the caller must then call Fail
// after all copies. r must not grow any more.
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

// manyClients returns the error for a client number that this recording cannot have.
func (r *Reader) manyClients(client uint32, of int) error {
	return fmt.Errorf("%s in %s: it has a client %d, but the target has only %d clients: use the parts of one run", recording, r.source.path, client, of)
}

// copiedWhole returns an error if a recording that was copied completely has no end.
func (w *Writer) copiedWhole(r *Reader) error {
	if r.Complete() {
		return nil
	}
	return fmt.Errorf("%s in %s: %s ends early: the history is not complete", recording, w.out.path, r.source.path)
}

// Fail records an error, unless there is one already. The history stays incomplete.
func (w *Writer) Fail(err error) { w.failure.set(err) }

// Close completes the history. All clients must have flushed. If one has not, or if writing failed, Close
// returns an error and the history stays incomplete.
func (w *Writer) Close() error {
	if w.closed {
		return w.result
	}
	w.closed = true
	close(w.stop)
	<-w.done
	for i := range w.clients {
		if w.clients[i].holds.Load() {
			w.failure.set(fmt.Errorf("%s in %s: client %d has not delivered its last records: the history is not complete", recording, w.out.path, i))
			break
		}
	}
	w.drain() // blocks that arrived while the goroutine was stopping
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

// write is the goroutine's function. It accepts blocks after an error too, so that no client waits for a full
// disk.
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
	if cap(b.data) == w.size { // not made for one large record
		w.free.Put(b)
	}
}

// ClientWriter is one client's part of the history. It must be used by one goroutine at a time. It delivers
// its buffer when the buffer is full, or when its first record is one second older than its last.
type ClientWriter struct {
	w       *Writer
	block   *block // nil before the first record
	context context
	first   int64 // End of the block's first record
	number  uint32
	scratch []byte      // for records larger than a block
	earlier earlier     // the last such record
	holds   atomic.Bool // block has records; set once for each block, for Close
	_       [64]byte    // the next client's fields are on another cache line
}

// Append copies tx into the history. It takes no lock, and allocates memory only for a transaction larger
// than a block. The error is the Writer's first one; after it, nothing more is recorded.
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

// begin ensures that there is a block. tx becomes the first record of a new one.
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

// appendLarge records a transaction that may exceed a block. If it does, it gets a block of its own size.
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

// Flush delivers the buffered records. The goroutine that appends must call it once at its end.
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
