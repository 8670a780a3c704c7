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
	"syscall"
)

// All files of this package have the same frame: a preamble, blocks and a footer; see docs/reference/history-format.md.
// Numbers are little-endian and checksums are CRC-32C (Castagnoli, RFC 3720 appendix B.4).
const (
	formatVersion = 6
	oldestVersion = 3 // without elements; 4 has no bytes of broken values, 5 no differences

	fileMagic   = "stroppy\x1a" // the last byte ends a text file on a terminal
	blockMagic  = 0x6b636c62    // "blck"
	footerMagic = 0x21646e65    // "end!"

	preambleSize  = 24 // magic 8, version 4, contents 4, length of the JSON 4, checksum of all the rest 4
	blockHeadSize = 24 // magic 4, client 4, length 4, records 4, checksum of the payload 4, of the head 4
	footerSize    = 28 // magic 4, blocks 8, records 8, running checksum 4, checksum of the footer 4

	maxHeader  = 1 << 20
	maxPayload = 1 << 30
)

// contents is the kind of a file of this package.
type contents uint32

const (
	transactions contents = 1 + iota
	objects
	ledger
)

func (c contents) String() string {
	names := [...]string{"nothing known", "transactions", "objects", "a ledger"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("undefined %d", c)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// sums is the content of the footer. It detects missing, repeated and moved blocks. Running is the checksum
// of the preamble's checksum followed by the heads' checksums.
type sums struct {
	Blocks, Records uint64
	Running         uint32
}

func startSums(preamble uint32) sums {
	return sums{Running: crc32.Update(0, castagnoli, binary.LittleEndian.AppendUint32(nil, preamble))}
}

// add counts one block; check is the checksum of its head.
func (s *sums) add(check, records uint32) {
	s.Blocks++
	s.Records += uint64(records)
	s.Running = crc32.Update(s.Running, castagnoli, binary.LittleEndian.AppendUint32(nil, check))
}

func (s *sums) footer() []byte {
	b := binary.LittleEndian.AppendUint32(nil, footerMagic)
	b, _ = binary.Append(b, binary.LittleEndian, s) // the size is fixed, so this cannot fail
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

// parseFooter parses a footer. ok is false if b is not a footer.
func parseFooter(b []byte) (s sums, ok bool) {
	ok = len(b) == footerSize && binary.LittleEndian.Uint32(b) == footerMagic && binary.LittleEndian.Uint32(b[24:]) == checksum(b[:24])
	if ok {
		_, _ = binary.Decode(b[4:], binary.LittleEndian, &s)
	}
	return s, ok
}

type head struct {
	Magic, Client, Length, Records uint32

	Sum   uint32 // of the payload
	Check uint32 // the checksum of the head itself
}

// sealBlock fills in the head, which is the first blockHeadSize bytes of block, for the payload after it.
func sealBlock(block []byte, client, records uint32) {
	payload := block[blockHeadSize:]
	_, _ = binary.Encode(block, binary.LittleEndian, []uint32{blockMagic, client, uint32(len(payload)), records, checksum(payload)})
	binary.LittleEndian.PutUint32(block[20:], checksum(block[:20]))
}

// preamble returns the start of a file and its checksum.
func preamble(c contents, header []byte) ([]byte, uint32) {
	b, _ := binary.Append([]byte(fileMagic), binary.LittleEndian, []uint32{formatVersion, uint32(c), uint32(len(header))})
	sum := crc32.Update(checksum(b), castagnoli, header)
	b = binary.LittleEndian.AppendUint32(b, sum)
	return append(b, header...), sum
}

// file is the output of a blockFile: an *os.File, or a faulty file in tests.
type file interface {
	io.Writer
	Truncate(size int64) error
	Seek(offset int64, whence int) (int64, error)
	Sync() error
	Close() error
}

func createFile(path string, flag int) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o644)
}

// blockFile writes one file of blocks. After the first error it writes nothing more, and the file ends with
// its last complete block.
type blockFile struct {
	doing string // "record the history", "keep the end state"
	path  string
	f     file
	size  int64 // up to the last complete block
	sums  sums
	err   error
}

// startFile writes the preamble, with header as JSON.
func startFile(f file, doing, path string, c contents, header any) (*blockFile, error) {
	text, err := json.Marshal(header)
	if err == nil && len(text) > maxHeader {
		err = fmt.Errorf("the description of the run takes %d bytes: it must stay below %d", len(text), maxHeader)
	}
	b := &blockFile{doing: doing, path: path, f: f}
	if err != nil {
		return nil, explain(doing, path, err)
	}
	start, sum := preamble(c, text)
	b.sums = startSums(sum)
	return b, b.write(start)
}

func (b *blockFile) block(block []byte, records uint32) error {
	if err := b.write(block); err != nil {
		return err
	}
	b.sums.add(binary.LittleEndian.Uint32(block[20:]), records)
	return nil
}

func (b *blockFile) write(p []byte) error {
	if b.err != nil {
		return b.err
	}
	n, err := b.f.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		b.err = explain(b.doing, b.path, err)
		// Remove the written part of a block that did not fit. If that fails, readers ignore the last block
		// because it is cut off.
		if n > 0 && b.f.Truncate(b.size) == nil {
			_, _ = b.f.Seek(b.size, io.SeekStart)
		}
		return b.err
	}
	b.size += int64(n)
	return nil
}

// finish writes the footer, syncs the file and closes it.
func (b *blockFile) finish() error {
	if b.write(b.sums.footer()) == nil {
		if err := b.f.Sync(); err != nil {
			b.err = explain(b.doing, b.path, err)
		}
	}
	if err := b.f.Close(); err != nil && b.err == nil {
		b.err = explain(b.doing, b.path, err)
	}
	return b.err
}

// explain wraps err with the action, the path and advice.
func explain(doing, path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // the path is in the message already
	}
	advice := "see to that file and its disk, then repeat the run"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		advice = "free some space there, or choose another place with --out"
	case errors.Is(err, fs.ErrPermission):
		advice = "give yourself the right to write there, or choose another place with --out"
	}
	return fmt.Errorf("%s in %s: %w: %s", doing, path, err, advice)
}
