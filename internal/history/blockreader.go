package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
)

// blockSource is an open file of blocks. Several goroutines may read it at the same time.
type blockSource struct {
	doing    string // "read the history", "read the end state"
	path     string // for errors
	r        io.ReaderAt
	size     int64
	first    int64 // offset of the first block
	preamble uint32
	header   []byte // JSON
	complete bool   // a footer ends the file
	footer   sums   // of a complete file
	added    error  // the error for bytes after the footer of a complete file

	contents contents
	failure  *atomic.Pointer[Damage] // the first damage that was found; shared by all copies
	gapless  bool                    // the transactions of a block must be consecutive
}

// openSource opens a file with the given contents and reads its preamble.
func openSource(doing, path string, want contents) (*blockSource, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: name the directory of a run that was recorded", doing, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	info, err := f.Stat()
	if err == nil {
		var s *blockSource
		if s, err = newSource(doing, path, f, info.Size(), want); err == nil {
			return s, nil
		}
	}
	_ = f.Close()
	return nil, err
}

// close closes the file, if it was opened.
func (s *blockSource) close() error {
	if s == nil {
		return nil
	}
	return s.r.(*os.File).Close()
}

func newSource(doing, path string, r io.ReaderAt, size int64, want contents) (*blockSource, error) {
	s := &blockSource{doing: doing, path: path, r: r, size: size, contents: want, failure: new(atomic.Pointer[Damage])}
	if err := s.open(want); err != nil {
		return nil, err
	}
	return s, s.readFooter()
}

// readFooter looks for the footer, which is missing while the file is being written.
func (s *blockSource) readFooter() error {
	if s.size-s.first < footerSize {
		return nil
	}
	tail := make([]byte, footerSize)
	err := s.read(tail, s.size-footerSize)
	if err != nil {
		return err
	}
	if s.footer, s.complete = parseFooter(tail); !s.complete {
		s.added, err = s.appended()
	}
	return err
}

// mostAppended is the distance from the end of a file within which its footer is searched.
const mostAppended = 4 << 10

// appended handles a file with bytes after its footer: the file is complete, but data was added.
func (s *blockSource) appended() (added, err error) {
	tail := make([]byte, min(s.size-s.first, footerSize+mostAppended))
	if err := s.read(tail, s.size-int64(len(tail))); err != nil {
		return nil, err
	}
	for i := len(tail) - footerSize; i >= 0; i-- {
		if _, ok := parseFooter(tail[i : i+footerSize]); ok {
			more := len(tail) - footerSize - i
			return s.damaged(s.size-int64(more), Appended, fmt.Sprintf("%d bytes were added behind its end", more)), nil
		}
	}
	return nil, nil
}

func (s *blockSource) open(want contents) error {
	start := make([]byte, min(preambleSize, s.size))
	if err := s.read(start, 0); err != nil {
		return err
	}
	if n := min(len(start), len(fileMagic)); string(start[:n]) != fileMagic[:n] {
		return fmt.Errorf("%s in %s: this is not a file of Stroppy: name the directory of a run", s.doing, s.path)
	}
	if len(start) >= 12 {
		switch v := binary.LittleEndian.Uint32(start[8:]); {
		case v > formatVersion:
			return fmt.Errorf("%s in %s: it has format %d and this Stroppy reads formats up to %d: use a newer Stroppy", s.doing, s.path, v, formatVersion)
		case v < oldestVersion:
			return fmt.Errorf("%s in %s: it has format %d, which this Stroppy does not read: use the Stroppy that recorded it", s.doing, s.path, v)
		}
	}
	if len(start) < preambleSize {
		return s.cutOff()
	}
	length := int64(binary.LittleEndian.Uint32(start[16:]))
	if length > maxHeader {
		return s.damaged(0, BadChecksum, "its description is impossibly long")
	}
	if preambleSize+length > s.size {
		return s.cutOff()
	}
	s.header = make([]byte, length)
	if err := s.read(s.header, preambleSize); err != nil {
		return err
	}
	s.preamble = binary.LittleEndian.Uint32(start[20:])
	if crc32.Update(checksum(start[:20]), castagnoli, s.header) != s.preamble {
		return s.damaged(0, BadChecksum, "the checksum of its description is wrong")
	}
	if got := contents(binary.LittleEndian.Uint32(start[12:])); got != want {
		return fmt.Errorf("%s in %s: it holds %s instead of %s: put the files of the run back in their places", s.doing, s.path, got, want)
	}
	s.first = preambleSize + length
	return nil
}

func (s *blockSource) unmarshal(header any) error {
	if err := json.Unmarshal(s.header, header); err != nil {
		return s.damaged(preambleSize, Senseless, "its description cannot be understood ("+err.Error()+")")
	}
	return nil
}

func (s *blockSource) cutOff() error {
	return fmt.Errorf("%s in %s: it is cut off before its first record: nothing was recorded; repeat the run", s.doing, s.path)
}

// read fills b from offset. The range must be within the file.
func (s *blockSource) read(b []byte, offset int64) error {
	n, err := s.r.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case err == nil, errors.Is(err, io.EOF):
		return s.damaged(offset+int64(n), CutShort, "it became shorter while it was read")
	default:
		return s.fail(&Damage{Problem: Unreadable, Offset: offset + int64(n), err: err})
	}
}

// place is the kind of data at the current position of a walk over the blocks.
type place int

const (
	atBlock  place = iota // a complete block
	atFooter              // the footer of a complete file
	atEnd                 // the end of an incomplete file
	atCut                 // a block that is cut off by the end of the file
)

// window holds the bytes that a walk over the heads of blocks read last.
type window struct {
	buffer []byte
	offset int64 // of the bytes in the file
}

// If blocks are less than smallBlock apart, several heads are read together.
const (
	smallBlock = 16 << 10
	windowSize = 64 << 10
)

// bytes returns n bytes from offset. The result is valid until the next call.
func (w *window) bytes(s *blockSource, offset int64, n int) ([]byte, error) {
	if from := offset - w.offset; from < 0 || from+int64(n) > int64(len(w.buffer)) {
		size, near := n, from > 0 && from < int64(len(w.buffer))+smallBlock
		if near {
			size = int(min(windowSize, s.size-offset))
		}
		w.buffer = slices.Grow(w.buffer[:0], size)[:size]
		err := s.read(w.buffer, offset)
		if err != nil && near { // the error may be after the requested bytes
			w.buffer = w.buffer[:n]
			err = s.read(w.buffer, offset)
		}
		if err != nil {
			w.buffer = w.buffer[:0]
			return nil, err
		}
		w.offset = offset
	}
	from := offset - w.offset
	return w.buffer[from : from+int64(n)], nil
}

// at returns the kind of data at offset and, for a block, its head.
func (s *blockSource) at(offset int64, w *window) (p place, h head, err error) {
	left := s.size - offset
	switch {
	case left == 0:
		return atEnd, h, nil
	case s.complete && left == footerSize:
		return atFooter, h, nil
	case left < blockHeadSize && !s.complete:
		return atCut, h, nil
	}
	var raw [blockHeadSize]byte
	read, err := w.bytes(s, offset, int(min(left, blockHeadSize)))
	if err != nil {
		return p, h, err
	}
	copy(raw[:], read)
	_, _ = binary.Decode(raw[:], binary.LittleEndian, &h)
	what := "the block is longer than the file"
	switch {
	case h.Magic == footerMagic && left < footerSize && !s.complete:
		return atCut, h, nil
	case h.Magic == footerMagic && s.added != nil:
		return p, h, s.added
	case h.Magic == footerMagic:
		what = "its closing part is wrong, or something was added behind it"
	case h.Magic != blockMagic:
		what = "no block starts there"
	case left < blockHeadSize || h.Check != checksum(raw[:20]):
		what = "the checksum of the block's head is wrong"
	case h.Length > maxPayload:
		what = "the block is impossibly long"
	case int64(h.Length) <= left-blockHeadSize:
		return atBlock, h, nil
	case !s.complete:
		return atCut, h, nil
	}
	return p, h, s.damaged(offset, BadChecksum, what)
}

// end walks over the heads of the blocks and returns how the file ends. Damage is reported when the blocks
// are read.
func (s *blockSource) end() place {
	if s.complete {
		return atFooter
	}
	p, _, _ := s.walk(s.first, func(Block) error { return nil })
	return p
}

// walk calls do for every complete block from an offset on, without the payload, until the first error. It
// returns the kind and the offset of what follows.
func (s *blockSource) walk(from int64, do func(b Block) error) (p place, offset int64, err error) {
	var w window
	for offset = from; ; {
		p, h, err := s.at(offset, &w)
		if err == nil && p == atBlock {
			err = do(Block{h.Client, h.Records, h.Length, offset, h.Sum, h.Check})
		}
		if err != nil || p != atBlock {
			return p, offset, err
		}
		offset += blockHeadSize + int64(h.Length)
	}
}

// errEnough ends a loop over blocks or records early, without a fault in the file.
var errEnough = errors.New("the reader has enough")

// heads calls do for every complete block, without the payload, until the first error. It returns this error and
// the offset of the block. Damage of a head and a contradiction with the footer are errors too.
func (s *blockSource) heads(do func(b Block) error) (offset int64, err error) {
	seen := startSums(s.preamble)
	p, offset, err := s.walk(s.first, func(b Block) error {
		seen.add(b.check, b.Records)
		return do(b)
	})
	if err == nil && p == atFooter {
		err = s.holds(seen, offset)
	}
	return offset, err
}

// holds compares the blocks of a complete file with its footer, which is at offset.
func (s *blockSource) holds(seen sums, offset int64) error {
	if seen == s.footer {
		return nil
	}
	return s.damaged(offset, BadCount, fmt.Sprintf("it holds %d records in %d blocks, and not the %d records in %d blocks that were written",
		seen.Records, seen.Blocks, s.footer.Records, s.footer.Blocks))
}

func (s *blockSource) senseless(offset int64, record int, records uint32) error {
	return s.damaged(offset, BadRecord, fmt.Sprintf("record %d of the block's %d cannot be understood", record, records))
}

// misplaced returns the damage of a transaction that does not belong to its block. Either the block is
// another client's, or, in a verified file, the transaction does not follow the previous one, which is 0 for
// the first.
func (s *blockSource) misplaced(offset int64, client uint32, previous, id ID) error {
	switch {
	case id.Client() != uint64(client):
		return s.damaged(offset, BadRecord, fmt.Sprintf("the block is of client %d and holds transaction %v", client, id))
	case s.gapless && previous != 0 && id != previous+1:
		return s.gap(offset, previous+1, id)
	}
	return nil
}

// gap returns the damage of a client's transactions that are not consecutive.
func (s *blockSource) gap(offset int64, want, got ID) error {
	return s.damaged(offset, Gap, fmt.Sprintf("transaction %v is missing: %v is in its place", want, got))
}

func (s *blockSource) overfull(offset int64, records uint32) error {
	return s.damaged(offset, BadRecord, fmt.Sprintf("the block holds more than its %d records", records))
}
