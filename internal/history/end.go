package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// These are the names of the end state's files in the history folder.
const (
	objectsFile = "end-objects.bin"
	ledgerFile  = "end-ledger.bin"
	partSuffix  = ".part" // suffix while a file is being written
)

const keeping = "keep the end state"

// The head of a block names a client in a history. In the files of an end state, it names the content of the
// block instead.
const (
	rowBlock uint32 = iota
	unexpectedBlock
)

// These constants limit the unexpected rows that are kept, and their length in bytes. That many are enough to
// prove an error.
const (
	maxUnexpected     = 1000
	maxUnexpectedText = 1000
)

// endBlock is the size of an end state's block. endRow is the maximal size of one row.
const (
	endBlock = 64 << 10
	endRow   = 64
)

// EndWriter writes the end state of a database. It must be used by one goroutine. The files appear only after
// Close: an interrupted download leaves none.
type EndWriter struct {
	dir        string
	objects    rowWriter
	legs       rowWriter
	object     Object // the previous object
	leg        Row
	unexpected []string
	more       int // number of unexpected rows beyond maxUnexpected
	closed     bool

	versions, entries uint64 // see Books
}

// rowWriter collects rows into blocks.
type rowWriter struct {
	out     *blockFile
	data    []byte
	records uint32
}

// CreateEnd starts an end state in dir, the run's history folder, and creates dir if necessary. Close
// replaces an earlier end state.
func CreateEnd(dir string) (*EndWriter, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, explain(keeping, dir, err)
	}
	owner, err := IdentityIn(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keeping, err)
	}
	w := &EndWriter{dir: dir}
	for _, part := range []struct {
		rows *rowWriter
		name string
		c    contents
	}{{&w.objects, objectsFile, objects}, {&w.legs, ledgerFile, ledger}} {
		path := filepath.Join(dir, part.name+partSuffix)
		f, err := createFile(path, os.O_TRUNC)
		if err != nil {
			_ = w.Abandon()
			return nil, explain(keeping, path, err)
		}
		part.rows.data = make([]byte, blockHeadSize, endBlock)
		if part.rows.out, err = startFile(f, keeping, path, part.c, owner); err != nil {
			_ = f.Close()
			_ = w.Abandon()
			return nil, err
		}
	}
	return w, nil
}

// Object adds one object, in any order.
func (w *EndWriter) Object(a Object) error {
	w.versions += a.Version
	return addRow(&w.objects, a, &w.object, putObject)
}

// Books returns the sum of the versions of all objects so far, and the number of rows without tombstones. The
// two numbers are equal for a correct database without concurrent changes.
func (w *EndWriter) Books() (versions, legs uint64) { return w.versions, w.entries }

// Restart discards everything added since CreateEnd. After an error, the writer must not be used.
func (w *EndWriter) Restart() error {
	if err := w.Abandon(); err != nil {
		return err
	}
	fresh, err := CreateEnd(w.dir)
	if err != nil {
		return err
	}
	*w = *fresh
	return nil
}

// Row adds one row of the ledger, in any order.
func (w *EndWriter) Row(l Row) error {
	if l.Mark == 0 {
		w.entries++
	}
	return addRow(&w.legs, l, &w.leg, putLeg)
}

// Unexpected adds a description of data that the workload never wrote, such as an object with an impossible
// key. The first thousand are kept; the others are counted.
func (w *EndWriter) Unexpected(text string) error {
	if len(w.unexpected) == maxUnexpected {
		w.more++
		return nil
	}
	if len(text) > maxUnexpectedText {
		text = strings.ToValidUTF8(text[:maxUnexpectedText], "") + "…"
	}
	w.unexpected = append(w.unexpected, text)
	return nil
}

// Close completes the end state and puts its files in place, if Object, Row and the disk reported no error.
// Otherwise no end state exists afterwards. After a failed download, call Abandon instead.
func (w *EndWriter) Close() error {
	if w.closed {
		return fmt.Errorf("%s in %s: it was closed or abandoned before", keeping, w.dir)
	}
	if err := w.finish(); err != nil {
		_ = w.Abandon()
		return err
	}
	w.closed = true
	// The objects are placed last and removed first: while they exist, the ledger beside them belongs to
	// them.
	objects, legs := filepath.Join(w.dir, objectsFile), filepath.Join(w.dir, ledgerFile)
	err := os.Remove(objects)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = list(w.dir, map[string]entry{
			objectsFile: w.objects.out.sums.entry(), ledgerFile: w.legs.out.sums.entry(),
		})
	}
	if err == nil {
		err = os.Rename(legs+partSuffix, legs)
	}
	if err == nil {
		err = os.Rename(objects+partSuffix, objects)
	}
	if err != nil {
		return explain(keeping, w.dir, err)
	}
	return nil
}

func (w *EndWriter) finish() error {
	if err := w.objects.flush(rowBlock); err != nil {
		return err
	}
	if w.more > 0 {
		w.unexpected = append(w.unexpected, fmt.Sprintf("… and %d more", w.more))
	}
	for _, text := range w.unexpected {
		if err := w.objects.room(len(text)+binary.MaxVarintLen64, unexpectedBlock); err != nil {
			return err
		}
		w.objects.data = binary.AppendUvarint(w.objects.data, uint64(len(text)))
		w.objects.data = append(w.objects.data, text...)
		w.objects.records++
	}
	if err := w.objects.flush(unexpectedBlock); err != nil {
		return err
	}
	if err := w.legs.flush(rowBlock); err != nil {
		return err
	}
	return errors.Join(w.objects.out.finish(), w.legs.out.finish())
}

// Abandon discards a failed download. An earlier end state remains. After Close, it does nothing.
func (w *EndWriter) Abandon() error {
	if w.closed {
		return nil
	}
	w.closed = true
	var errs []error
	for _, rows := range []*rowWriter{&w.objects, &w.legs} {
		if rows.out == nil {
			continue
		}
		_ = rows.out.f.Close() // finish may have closed it
		if err := os.Remove(rows.out.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, explain("remove a half-written end state", rows.out.path, err))
		}
	}
	return errors.Join(errs...)
}

// addRow adds a row, encoded relative to the last row of the block.
func addRow[T any](r *rowWriter, row T, last *T, put func(b []byte, i int, row, last T) int) error {
	if err := r.room(endRow, rowBlock); err != nil {
		return err
	}
	if r.records == 0 {
		*last = *new(T)
	}
	r.data = r.data[:put(r.data[:endBlock], len(r.data), row, *last)]
	r.records++
	*last = row
	return nil
}

// room flushes the block if it has no room for the given bytes.
func (r *rowWriter) room(bytes int, kind uint32) error {
	if len(r.data)+bytes > endBlock {
		return r.flush(kind)
	}
	return r.out.err
}

func (r *rowWriter) flush(kind uint32) error {
	if r.records == 0 {
		return r.out.err
	}
	sealBlock(r.data, kind, r.records)
	err := r.out.block(r.data, r.records)
	r.data, r.records = r.data[:blockHeadSize], 0
	return err
}

// End is the end state of a database. Several goroutines may call its methods.
type End struct {
	objects, legs *blockSource
	unexpected    []string
}

// OpenEnd opens the end state in dir, the run's history folder. If there is none, the error is an
// fs.ErrNotExist.
func OpenEnd(dir string) (*End, error) {
	run, err := IdentityIn(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", readingEnd, err)
	}
	return openEnd(dir, run)
}

// openEnd opens the end state of a run. The error is a Damage if a file belongs to the run but cannot be
// trusted.
func openEnd(dir string, run Identity) (*End, error) {
	e := new(End)
	var err error
	if e.objects, err = openWhole(filepath.Join(dir, objectsFile), objects); err == nil {
		e.legs, err = openWhole(filepath.Join(dir, ledgerFile), ledger)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && e.objects != nil:
		err = absent(filepath.Join(dir, ledgerFile), EndLedger)
	case errors.Is(err, fs.ErrNotExist):
		if _, beside := os.Stat(filepath.Join(dir, ledgerFile)); beside == nil {
			err = absent(filepath.Join(dir, objectsFile), EndObjects)
		}
	}
	if err == nil {
		err = e.belongs(run)
	}
	if err == nil {
		err = e.readUnexpected()
	}
	if err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// absent returns the damage of an end state with a missing file.
func absent(path string, input Inputs) error {
	return &Damage{Input: input, File: path, Problem: Missing, Offset: -1, err: errDamaged,
		doing: readingEnd, what: restoreEnd}
}

// belongs returns an error if the end state belongs to another run than the history beside it.
func (e *End) belongs(run Identity) error {
	var objects, legs Identity
	if err := errors.Join(e.objects.unmarshal(&objects), e.legs.unmarshal(&legs)); err != nil {
		return err
	}
	mixed := func(s *blockSource, owner Identity, other string, of Identity) error {
		return fmt.Errorf("%s in %s: it belongs to %s, and the %s to %s: put the files of one run together", readingEnd, s.path, owner, other, of)
	}
	switch {
	case run != Identity{} && objects != run:
		return mixed(e.objects, objects, "history beside it", run)
	case run != Identity{} && legs != run:
		return mixed(e.legs, legs, "history beside it", run)
	case legs != objects:
		return mixed(e.legs, legs, "objects beside it", objects)
	}
	return nil
}

const (
	readingEnd = "read the end state"
	restoreEnd = "restore it from a copy, or download the end state again with `stroppy check RUN_DIR --db URL`"
)

// openWhole opens one file of an end state, which must be complete.
func openWhole(path string, c contents) (*blockSource, error) {
	s, err := openSource(readingEnd, path, c)
	if err == nil && s.added != nil {
		err = s.added
	} else if err == nil && !s.complete {
		err = s.fail(&Damage{Problem: CutShort, Offset: -1, err: errDamaged, what: "its last part is missing: " + restoreEnd})
	}
	return s, err
}

// Unexpected returns descriptions of the data that the workload never wrote.
func (e *End) Unexpected() []string { return e.unexpected }

// Count returns the number of objects, plus the unexpected rows.
func (e *End) Count() uint64 { return e.objects.footer.Records }

// Close closes the files.
func (e *End) Close() error { return errors.Join(e.objects.close(), e.legs.close()) }

// Objects yields every object in the order of writing. At the first damage it yields an error and ends. The
// sequence can be used repeatedly.
func (e *End) Objects() iter.Seq2[Object, error] { return rows(e.objects, (*decoder).object) }

// Rows yields every row of the ledger in the order of writing. At the first damage it yields an error and
// ends. The sequence can be used repeatedly.
func (e *End) Rows() iter.Seq2[Row, error] { return rows(e.legs, (*decoder).leg) }

// rows yields the rows of a file. take reads a row, which is encoded relative to the last one.
func rows[T any](s *blockSource, take func(d *decoder, last, row *T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var reader rowReader[T]
		for b, err := range s.blocks {
			if err == nil {
				err = reader.read(s, b, take, func(rows []T) error {
					for _, row := range rows {
						if !yield(row, nil) {
							return errEnough
						}
					}
					return nil
				})
			}
			if err == errEnough {
				return
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
		}
	}
}

// readUnexpected reads only the blocks with unexpected rows.
func (e *End) readUnexpected() error {
	s := e.objects
	_, _, err := s.walk(s.first, func(b Block) error {
		if b.Client != unexpectedBlock {
			return nil
		}
		payload, err := s.payload(b, nil)
		if err != nil {
			return err
		}
		d := decoder{b: payload}
		for record := range int(b.Records) {
			if e.unexpected = append(e.unexpected, d.text()); d.bad {
				return s.senseless(b.Offset, record, b.Records)
			}
		}
		if d.left() > 0 {
			return s.overfull(b.Offset, b.Records)
		}
		return nil
	})
	return err
}

func putObject(b []byte, i int, a, last Object) int {
	i = put(b, i, zigzag(int64(a.N-last.N-1)))
	i = put(b, i, zigzag(a.Value-last.Value))
	i = put(b, i, a.Version)
	i = putID(b, i, a.Writer, last.Writer)
	b[i] = byte(a.State)
	return i + 1
}

func (d *decoder) object(last, a *Object) {
	b, i := d.b, d.i
	n, i := short(b, i)
	value, i := varint(b, i)
	a.N = last.N + 1 + uint64(unzigzag(n))
	a.Value = last.Value + unzigzag(value)
	a.Version, i = short(b, i)
	a.Writer, i = takeID(b, i, last.Writer)
	if i >= len(b) {
		d.fail()
		return
	}
	a.State = State(b[i])
	d.i = i + 1
}

// The number, state and mark of a leg share one value, with two bits for the mark and three for the state.
const (
	markMask    = 3
	stateShift  = 2
	stateMask   = 7
	numberShift = 5
)

func putLeg(b []byte, i int, l, last Row) int {
	i = put(b, i, uint64(l.Number)<<numberShift|uint64(l.State)<<stateShift|uint64(l.Mark))
	i = putID(b, i, l.Transaction, last.Transaction)
	i = put(b, i, zigzag(int64(l.Object-last.Object)))
	i = put(b, i, zigzag(l.Amount))
	return put(b, i, l.Version)
}

func (d *decoder) leg(last, l *Row) {
	b, i := d.b, d.i
	number, i := short(b, i)
	l.Transaction, i = takeID(b, i, last.Transaction)
	object, i := varint(b, i)
	amount, i := varint(b, i)
	l.Version, i = short(b, i)
	if i > len(b) || number >= 1<<(32+numberShift) {
		d.fail()
		return
	}
	l.Number, l.State, l.Mark = uint32(number>>numberShift), State(number>>stateShift&stateMask), Mark(number&markMask)
	l.Object = last.Object + uint64(unzigzag(object))
	l.Amount = unzigzag(amount)
	d.i = i
}
