package history

import (
	"iter"
	"sync"
)

// Block describes one block of a file by its head. Any goroutine can read it without the others.
type Block struct {
	Client  uint32 // the client whose transactions the block contains
	Records uint32
	Length  uint32 // of the payload, in bytes
	Offset  int64  // of the block in the file, in bytes

	sum   uint32 // of the payload
	check uint32 // of the head
}

// Blocks yields every complete block in the order of the file. It reads only the heads. It yields an error
// and ends at the first damage of a head, or if the file contradicts its footer. Damage within a block is
// found when the block is read.
func (r *Reader) Blocks() iter.Seq2[Block, error] { return r.source.blocks }

func (s *blockSource) blocks(yield func(Block, error) bool) {
	_, err := s.heads(func(b Block) error {
		if !yield(b, nil) {
			return errEnough
		}
		return nil
	})
	if err != nil && err != errEnough {
		yield(Block{}, err)
	}
}

// payload reads and verifies one block. It uses buffer and enlarges it if necessary.
func (s *blockSource) payload(b Block, buffer []byte) ([]byte, error) {
	if int(b.Length) > cap(buffer) {
		buffer = make([]byte, b.Length)
	}
	payload := buffer[:b.Length]
	err := s.read(payload, b.Offset+blockHeadSize)
	if err == nil && checksum(payload) != b.sum {
		err = s.damaged(b.Offset, BadChecksum, "the checksum of the block is wrong")
	}
	return payload, err
}

// Cursor reads the transactions of one block after another. A Cursor must not be used by several goroutines
// at the same time, but several cursors may read the same file. After its buffers have grown, it allocates
// memory only for large blocks and transactions, and does not keep that memory.
type Cursor struct {
	Transaction Transaction // the transaction read by Next, which reuses its Ops, Elements and Broken
	Block       Block       // the current block
	Record      int         // position of Transaction within Block, from 0

	source  *blockSource
	earlier *earlierReads
	before  func(id ID, ops []Op) ([]Op, bool)
	change  func(*Transaction) // may be nil
	buffer  []byte
	decoder decoder
	context context
	err     error
}

// Cursor returns a new cursor without a block.
func (r *Reader) Cursor() *Cursor {
	c := &Cursor{source: r.source, earlier: &r.earlier, change: r.change}
	c.before = func(id ID, ops []Op) ([]Op, bool) { return c.earlier.take(c.source, c.Block.Offset, id, ops) }
	return c
}

// Open moves the cursor before the first transaction of b. If b is damaged, Next returns false and Err
// returns the damage.
func (c *Cursor) Open(b Block) {
	c.release()
	c.Block, c.Record = b, -1
	c.context.startBlock()
	c.context.before = c.before
	if b.Length > largeBlock {
		c.buffer = largeBuffers.Take(int(b.Length))
	}
	c.buffer, c.err = c.source.payload(b, c.buffer)
	c.decoder = decoder{b: c.buffer}
	if c.err != nil {
		c.Block.Records = 0
	}
}

// Next reads the next transaction of the block. It returns false at the end of the block and at the first
// damage.
func (c *Cursor) Next() bool {
	if c.Record+1 >= int(c.Block.Records) {
		if c.err == nil && c.decoder.left() > 0 {
			c.err = c.source.overfull(c.Block.Offset, c.Block.Records)
		}
		c.release()
		return false
	}
	if c.err != nil {
		return false
	}
	c.Record++
	previous := c.context.id
	c.releaseOps()
	c.decoder.transaction(&c.Transaction, &c.context)
	if c.decoder.bad {
		c.err = c.source.senseless(c.Block.Offset, c.Record, c.Block.Records)
		return false
	}
	if c.context.differed {
		c.earlier.note(c.Block.Offset, &c.Transaction)
	}
	c.err = c.source.misplaced(c.Block.Offset, c.Block.Client, previous, c.Transaction.ID)
	if c.change != nil {
		c.change(&c.Transaction)
	}
	return c.err == nil
}

// Err returns the damage that ended the block's transactions early, or nil.
func (c *Cursor) Err() error { return c.err }

// Ref returns the position of Transaction in the recording.
func (c *Cursor) Ref() Ref {
	return Ref{File: folder + "/" + transactionsFile, Offset: c.Block.Offset, Record: c.Record}
}

// EachBlock calls do for every block of the history, from several workers. do receives the worker's number,
// from 0, and an opened cursor, from which it reads transactions with Next. Blocks are assigned in the order
// of the file and completed in any order.
//
// EachBlock returns the first error in the order of the file, from the file or from do. All blocks before the
// error were processed, and some after it.
func (r *Reader) EachBlock(workers int, do func(worker int, c *Cursor) error) error {
	return r.eachBlock(r.Blocks(), workers, do)
}

func (r *Reader) eachBlock(blocks iter.Seq2[Block, error], workers int, do func(worker int, c *Cursor) error) error {
	cursors := make([]*Cursor, workers)
	return deal(blocks, workers, func(worker int, b Block) error {
		c := cursors[worker]
		if c == nil {
			c = r.Cursor()
			cursors[worker] = c
		}
		c.Open(b)
		if c.err != nil {
			return c.err
		}
		if err := do(worker, c); err != nil {
			return err
		}
		return c.err
	})
}

// deal passes the blocks to the workers in the order of the file, until the first error. It returns the error
// that is first in the file. No block after a known error is started.
func deal(blocks iter.Seq2[Block, error], workers int, do func(worker int, b Block) error) error {
	next, stop := iter.Pull2(blocks)
	defer stop()
	var (
		lock  sync.Mutex
		ended bool
		first error
		at    int64
		wait  sync.WaitGroup
	)
	take := func() (b Block, ok bool) {
		lock.Lock()
		defer lock.Unlock()
		if ended {
			return b, false
		}
		b, err, ok := next()
		if err != nil && first == nil { // it comes after all blocks
			first, at = err, 1<<63-1
		}
		ended = !ok || err != nil
		return b, !ended
	}
	fail := func(b Block, err error) {
		lock.Lock()
		defer lock.Unlock()
		if ended = true; first == nil || b.Offset < at {
			first, at = err, b.Offset
		}
	}
	for worker := range workers {
		wait.Go(func() {
			for b, ok := take(); ok; b, ok = take() {
				if err := do(worker, b); err != nil {
					fail(b, err)
				}
			}
		})
	}
	wait.Wait()
	return first
}

// batch is the number of rows of an end state that are passed on together. They fit into a processor's
// nearest cache.
const batch = 256

// EachObject calls do for every object, from several workers. do receives the worker's number, from 0, and a
// slice of objects, which is valid until do returns and must not be modified. Errors are as for EachBlock.
func (e *End) EachObject(workers int, do func(worker int, objects []Object) error) error {
	return eachRow(e.objects, workers, (*decoder).object, do)
}

// EachRow is like EachObject, for the rows of the ledger.
func (e *End) EachRow(workers int, do func(worker int, rows []Row) error) error {
	return eachRow(e.legs, workers, (*decoder).leg, do)
}

// rowReader reads the rows of one block after another.
type rowReader[T any] struct {
	buffer []byte
	rows   [1 + batch]T // the first is the previous row
}

// read calls do for the rows of a block. take reads a row, which is encoded relative to the last one.
func (r *rowReader[T]) read(s *blockSource, b Block, take func(d *decoder, last, row *T), do func(rows []T) error) (err error) {
	if b.Client != rowBlock {
		return nil
	}
	if r.buffer, err = s.payload(b, r.buffer); err != nil {
		return err
	}
	d, rows := decoder{b: r.buffer}, &r.rows
	rows[0] = *new(T)
	for record := 0; record < int(b.Records); {
		n := 0
		for n < min(batch, int(b.Records)-record) && !d.bad {
			take(&d, &rows[n], &rows[n+1])
			n++
		}
		if d.bad {
			n--
			err = s.senseless(b.Offset, record+n, b.Records)
		}
		if n > 0 {
			if refused := do(rows[1 : 1+n]); refused != nil {
				return refused
			}
		}
		if err != nil {
			return err
		}
		rows[0] = rows[n]
		record += n
	}
	if d.left() > 0 {
		return s.overfull(b.Offset, b.Records)
	}
	return nil
}

func eachRow[T any](s *blockSource, workers int, take func(d *decoder, last, row *T), do func(worker int, rows []T) error) error {
	readers := make([]*rowReader[T], workers)
	return deal(s.blocks, workers, func(worker int, b Block) error {
		if readers[worker] == nil {
			readers[worker] = new(rowReader[T])
		}
		return readers[worker].read(s, b, take, func(rows []T) error { return do(worker, rows) })
	})
}
