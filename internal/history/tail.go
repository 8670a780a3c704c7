package history

import (
	"fmt"
	"os"
)

// Tail reads a history that is still being written, on from where it stopped the last
// time. One goroutine uses it at a time.
type Tail struct {
	reader *Reader
	offset int64 // of the first block that was not handed over yet
	seen   sums  // of those before it
}

// Tail returns one that stands before the first block. The Reader may have been opened
// when the file was shorter; its other methods go on reading what there was then.
func (r *Reader) Tail() *Tail {
	return &Tail{reader: r, offset: r.source.first, seen: startSums(r.source.preamble)}
}

// Blocks returns the blocks that have been written as a whole since the last call, in the
// order of the file, and reads their heads alone: damage within a block shows when the block
// is read. It is complete when the history was closed and no block is left; of a history that
// is never closed it never is. After an error it is of no more use.
func (t *Tail) Blocks() (list []Block, complete bool, err error) {
	now, err := t.reader.source.grown()
	if err != nil {
		return nil, false, err
	}
	p, offset, err := now.walk(t.offset, func(b blockRead) error {
		list = append(list, b.block())
		t.seen.add(b.Check, b.Records)
		return nil
	})
	t.offset = offset
	if err == nil && p == atFooter {
		err = now.holds(t.seen, offset)
	}
	return list, now.complete, err
}

// grown returns the source as it is by now.
func (s *blockSource) grown() (*blockSource, error) {
	f, ok := s.r.(*os.File)
	if !ok {
		return s, nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w: see to its disk", s.doing, s.path, err)
	}
	now := *s
	now.size = info.Size()
	now.complete, now.added = false, nil
	return &now, now.readFooter()
}
