package plume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"

	"stroppy/internal/check/sessions"
	"stroppy/internal/foreign"
)

// operation is a line of the file.
type operation struct {
	key, value, transaction int64
	kind                    uint32 // twice an index of the part's sessions, plus 1 for a write
	line                    uint32 // counted in the part, from 1
}

func (o *operation) session() uint32 { return o.kind >> 1 }
func (o *operation) write() bool     { return o.kind&1 == 1 }

// part is the content of a part of the file.
type part struct {
	operations []operation
	sessions   []int64 // by name, as they were met
	lines      uint32
	err        error

	known map[int64]uint32
	last  int64 // the session of the last line, and its index
	index uint32
	met   bool
}

// readBuffer is the number of bytes that are read together. No line may be longer.
const readBuffer = 1 << 18

// mostLines is the maximal number of lines that can be numbered.
const mostLines = math.MaxUint32

// Read reads the history in a file, with one part for each processor. An error in the content is an
// *foreign.InputError with the first wrong line.
func Read(ctx context.Context, path string) (*sessions.History, error) {
	file, err := foreign.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readParts(ctx, file, file.Size, int(min(int64(runtime.GOMAXPROCS(0)), 1+file.Size/readBuffer)))
}

// readParts reads parts of about equal size, each in its own goroutine.
func readParts(ctx context.Context, from io.ReaderAt, size int64, count int) (*sessions.History, error) {
	parts := make([]part, count)
	var group sync.WaitGroup
	for i := range parts {
		group.Go(func() {
			n := int64(len(parts))
			parts[i].read(ctx, from, size*int64(i)/n, size*int64(i+1)/n, size)
		})
	}
	group.Wait()
	lines := uint64(0)
	for i := range parts {
		if err := parts[i].err; err != nil {
			var input *foreign.InputError
			if errors.As(err, &input) {
				return nil, &foreign.InputError{Line: int(lines) + input.Line, What: input.What}
			}
			return nil, err
		}
		if lines += uint64(parts[i].lines); lines > mostLines {
			return nil, &foreign.InputError{What: "it has too many lines to check"}
		}
	}
	return gather(parts)
}

// read reads the lines that begin in [from, to).
func (p *part) read(ctx context.Context, file io.ReaderAt, from, to, size int64) {
	p.known = map[int64]uint32{}
	p.operations = make([]operation, 0, (to-from)/16)
	buffer := make([]byte, readBuffer)
	at, kept := from, 0
	if from > 0 { // the line that is going on belongs to the part before
		at--
	}
	skip := from > 0
	for at < size {
		if p.err = context.Cause(ctx); p.err != nil {
			return
		}
		n, err := file.ReadAt(buffer[kept:min(int64(len(buffer)), int64(kept)+size-at)], at)
		if n == 0 && err != nil {
			p.err = fmt.Errorf("read: %w", err)
			return
		}
		begin := at - int64(kept) // where the buffer begins in the file
		at += int64(n)
		text := buffer[:kept+n]
		rest, done := p.lined(text, begin, to, at == size, &skip)
		if p.err != nil || done {
			return
		}
		kept = copy(buffer, rest)
		if kept == len(buffer) {
			p.err = p.wrong("the line is longer than an operation can be")
			return
		}
	}
}

// lined reads the lines of a text that begins at an offset, and returns the incomplete last line. It is done
// at the first line that begins at to or later.
func (p *part) lined(text []byte, begin, to int64, last bool, skip *bool) (rest []byte, done bool) {
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		if end < 0 && !last {
			return text, false
		}
		line, next := text, len(text)
		if end >= 0 {
			line, next = text[:end], end+1
		}
		switch {
		case *skip:
			*skip = false
		case begin >= to:
			return nil, true
		default:
			if p.err = p.line(line); p.err != nil {
				return nil, true
			}
		}
		text, begin = text[next:], begin+int64(next)
	}
	return nil, false
}

func (p *part) wrong(what string) error {
	return &foreign.InputError{Line: int(p.lines), What: what}
}

// line reads one line.
func (p *part) line(text []byte) error {
	p.lines++
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	if len(text) < len("r(0,0,0,0)") || text[1] != '(' || text[len(text)-1] != ')' || text[0] != 'r' && text[0] != 'w' {
		return p.wrong(notALine(text))
	}
	var numbers [4]int64
	rest := text[2:]
	for i := range numbers {
		value, length := number(rest)
		if length == 0 || i < 3 && rest[length] != ',' || i == 3 && length != len(rest)-1 {
			return p.wrong(notALine(text))
		}
		numbers[i], rest = value, rest[length+1:]
	}
	session, transaction := numbers[2], numbers[3]
	if session < 0 || transaction < abortedTransaction {
		return p.wrong(fmt.Sprintf("%q has a negative session or transaction, and only the transaction of an aborted write is -1", text))
	}
	kind := p.session(session) << 1
	if text[0] == 'w' {
		kind++
	}
	p.operations = append(p.operations, operation{key: numbers[0], value: numbers[1], transaction: transaction, kind: kind, line: p.lines})
	return nil
}

// abortedTransaction is the number of all aborted transactions.
const abortedTransaction = -1

// notALine describes an invalid line and the expected form. It truncates a long line.
func notALine(text []byte) string {
	const most = 60
	if len(text) > most {
		text = append(text[:most:most], "…"...)
	}
	return fmt.Sprintf("%q is no operation: one is w(KEY,VALUE,SESSION,TRANSACTION) or r(…), four whole numbers of 64 bits", text)
}

// number parses an integer at the beginning of a text that does not end with a digit, and returns its length.
// The length is 0 if there is no integer of 64 bits.
func number(text []byte) (value int64, length int) {
	negative := text[0] == '-'
	if negative {
		length = 1
	}
	from := length
	var n uint64
	for ; length < len(text); length++ {
		digit := text[length] - '0'
		if digit > 9 {
			break
		}
		if length-from >= 18 && (n > math.MaxInt64/10 || n*10 > math.MaxInt64-uint64(digit)) {
			return 0, 0
		}
		n = n*10 + uint64(digit)
	}
	if length == from || length == len(text) {
		return 0, 0
	}
	if negative {
		return -int64(n), length
	}
	return int64(n), length
}

// session returns the index of a session.
func (p *part) session(name int64) uint32 {
	if p.met && name == p.last {
		return p.index
	}
	index, ok := p.known[name]
	if !ok {
		index = uint32(len(p.sessions))
		p.known[name] = index
		p.sessions = append(p.sessions, name)
	}
	p.met, p.last, p.index = true, name, index
	return index
}
