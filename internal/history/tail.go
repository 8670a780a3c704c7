package history

import (
	"fmt"
	"os"
)

// Tail reads a history that is being written. Each call continues at the end of the last one. A Tail must be
// used by one goroutine at a time.
type Tail struct {
	reader *Reader
	offset int64 // of the first block that was not returned yet
	seen   sums  // over the blocks before it
}

// Tail returns a Tail at the first block. The Reader may have been opened when the file was shorter; its
// other methods still read that length.
func (r *Reader) Tail() *Tail {
	return &Tail{reader: r, offset: r.source.first, seen: startSums(r.source.preamble)}
}

// Blocks returns the blocks completed since the last call, in the order of the file. It reads only their
// heads; damage within a block is found when the block is read. complete is true when the history was closed
// and no block is left. After an error, the Tail must not be used.
func (t *Tail) Blocks() (list []Block, complete bool, err error) {
	now, err := t.reader.source.grown()
	if err != nil {
		return nil, false, err
	}
	p, offset, err := now.walk(t.offset, func(b Block) error {
		list = append(list, b)
		t.seen.add(b.check, b.Records)
		return nil
	})
	t.offset = offset
	if err == nil && p == atFooter {
		err = now.holds(t.seen, offset)
	}
	return list, now.complete, err
}

// grown returns the source with its current length.
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
