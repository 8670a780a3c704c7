package history

import (
	"errors"
	"fmt"
	"iter"
	"math"
)

// OpeningFolder is the folder of the state at the start of a run, in the directory of the run. It holds the files of an
// end state.
const OpeningFolder = "opening"

// KeyOpening is the key of a header with the fingerprint of that state.
const KeyOpening = "opening"

// mostOpened is the largest number of objects that a Base holds in memory, in 24 bytes each.
const mostOpened = 1 << 25

// Base is the state of the data at the start of a run, after earlier runs have changed the loaded data. A check can
// take this state as the loaded data: then the versions of an object count from it, its writers are the load, and the
// ledger has no row of an earlier run.
type Base struct {
	run     uint64 // the rows of earlier runs have lower numbers
	objects []openedObject
	own     fingerprint // of the rows of our runs
	others  fingerprint // of the rows without a run
	content fingerprint // of the objects
}

type openedObject struct {
	value   int64
	version uint64
	writer  ID
}

// notOpened is the version of an object that was not read yet.
const notOpened = math.MaxUint64

// fingerprint is a number of values and the sum of their hashes, which does not depend on their order.
type fingerprint struct{ count, sum uint64 }

func (f *fingerprint) add(words ...uint64) {
	h := uint64(len(words))
	for _, w := range words { // the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)
		h = (h ^ w) * 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	f.count, f.sum = f.count+1, f.sum+h
}

func (f *fingerprint) addRow(r *Row) {
	f.add(uint64(r.Transaction), uint64(r.Number), uint64(r.Mark), r.Object, uint64(r.Amount), r.Version)
}

// ReadBase reads the state in dir, at the start of the run of a header. An error is the reason why the
// state is no loaded data, and fs.ErrNotExist if there is no state.
func ReadBase(dir string, h Header) (*Base, error) {
	end, err := OpenEnd(dir)
	if err != nil {
		return nil, err
	}
	defer end.Close()
	switch {
	case h.Objects > mostOpened:
		return nil, fmt.Errorf("the %d objects at its start are too many to be compared", h.Objects)
	case len(end.Unexpected()) > 0:
		return nil, fmt.Errorf("the data at its start hold something else: %s", end.Unexpected()[0])
	}
	o := &Base{run: h.Run, objects: make([]openedObject, h.Objects)}
	for i := range o.objects {
		o.objects[i].version = notOpened
	}
	for a, err := range end.Objects() {
		if err != nil {
			return nil, err
		}
		if err := o.take(&a); err != nil {
			return nil, err
		}
	}
	if o.content.count != h.Objects {
		return nil, fmt.Errorf("%d of %d objects are missing at its start", h.Objects-o.content.count, h.Objects)
	}
	for r, err := range end.Rows() {
		if err != nil {
			return nil, err
		}
		if r.Transaction.Run() < h.Run { // a run may note itself before its first transaction
			o.of(r.Transaction).addRow(&r)
		}
	}
	return o, nil
}

// take adds an object of the state.
func (o *Base) take(a *Object) error {
	switch {
	case a.N >= uint64(len(o.objects)):
		return errors.New("earlier runs have added objects to the data")
	case o.objects[a.N].version != notOpened:
		return errors.New("an object is there twice at its start")
	case a.State == Broken:
		return errors.New("an object has a value at its start that no transaction wrote")
	}
	o.objects[a.N] = openedObject{a.Value, a.Version, a.Writer}
	o.content.add(a.N, uint64(a.Value), a.Version, uint64(a.Writer))
	return nil
}

func (o *Base) of(id ID) *fingerprint {
	if id == 0 {
		return &o.others
	}
	return &o.own
}

// Fingerprint returns the text of KeyOpening.
func (o *Base) Fingerprint() string {
	return fmt.Sprintf("%d objects %x rows %d %x others %d %x", o.content.count, o.content.sum, o.own.count, o.own.sum, o.others.count, o.others.sum)
}

// Value returns the value of an object.
func (o *Base) Value(n uint64) int64 {
	if n >= uint64(len(o.objects)) {
		return 0
	}
	return o.objects[n].value
}

// Writer returns the last writer of an object; 0: the load.
func (o *Base) Writer(n uint64) ID {
	if n >= uint64(len(o.objects)) {
		return 0
	}
	return o.objects[n].writer
}

// find returns what an operation has read; nil: no object of the state.
func (o *Base) find(op *Op) *openedObject {
	if !op.Observed || op.State == Absent || op.Object >= uint64(len(o.objects)) {
		return nil
	}
	return &o.objects[op.Object]
}

// Explains reports whether a transaction saw no older state. Otherwise the state is not the one in which the run began.
func (o *Base) Explains(tx *Transaction) bool {
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if was := o.find(op); was != nil && !o.follows(was, op.Version, op.Writer) {
			return false
		}
	}
	return true
}

// follows reports whether a version and its writer are as old as the state, or later. Some workloads count no
// versions, and others record no writers.
func (o *Base) follows(was *openedObject, version uint64, writer ID) bool {
	switch {
	case version < was.version:
		return false
	case writer == was.writer || writer.Run() >= o.run:
		return true
	}
	return writer == 0 && was.version > 0
}

// Rebase changes a transaction as if the state were the loaded data.
func (o *Base) Rebase(tx *Transaction) {
	for i := range tx.Ops {
		op := &tx.Ops[i]
		if was := o.find(op); was != nil {
			op.Version -= was.version
			if op.Writer == was.writer {
				op.Writer = 0
			}
		}
	}
}

// Compare compares what an end state has of earlier runs with the state. It returns the number of their rows that are
// gone, and whether all that is left of them is the same.
func (o *Base) Compare(end *End) (lost uint64, same bool, err error) {
	then := Base{}
	for r, err := range end.Rows() {
		if err != nil {
			return 0, false, err
		}
		if r.Transaction.Run() < o.run {
			then.of(r.Transaction).addRow(&r)
		}
	}
	same = then.own == o.own && then.others == o.others
	for a, err := range end.Objects() {
		if err != nil {
			return 0, false, err
		}
		same = same && a.N < uint64(len(o.objects)) && o.follows(&o.objects[a.N], a.Version, a.Writer)
	}
	return o.own.count - min(o.own.count, then.own.count), same, nil
}

// Rebased is an end state as if a Base were the loaded data.
type Rebased struct {
	*End
	opening *Base
}

// End returns an end state as if the state were the loaded data.
func (o *Base) End(end *End) *Rebased { return &Rebased{end, o} }

// object changes an object. It reports false for an object that is left out.
func (e *Rebased) object(a *Object) bool {
	if a.N < uint64(len(e.opening.objects)) {
		was := &e.opening.objects[a.N]
		a.Version -= was.version
		if a.Writer == was.writer {
			a.Writer = 0
		}
	}
	return true
}

// row changes a row. It reports false for a row of an earlier run.
func (e *Rebased) row(r *Row) bool {
	if r.Transaction.Run() < e.opening.run {
		return false
	}
	if r.Object < uint64(len(e.opening.objects)) && r.Version > 0 {
		r.Version -= e.opening.objects[r.Object].version
	}
	return true
}

// Objects is like End.Objects.
func (e *Rebased) Objects() iter.Seq2[Object, error] { return changed(e.End.Objects(), e.object) }

// Rows is like End.Rows, without the rows of earlier runs.
func (e *Rebased) Rows() iter.Seq2[Row, error] { return changed(e.End.Rows(), e.row) }

// EachObject is like End.EachObject.
func (e *Rebased) EachObject(workers int, do func(worker int, objects []Object) error) error {
	return e.End.EachObject(workers, changedEach(workers, e.object, do))
}

// EachRow is like End.EachRow, without the rows of earlier runs.
func (e *Rebased) EachRow(workers int, do func(worker int, rows []Row) error) error {
	return e.End.EachRow(workers, changedEach(workers, e.row, do))
}

// changed yields the changed values, without those that change leaves out.
func changed[T any](values iter.Seq2[T, error], change func(*T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range values {
			if (err != nil || change(&v)) && !yield(v, err) {
				return
			}
		}
	}
}

// changedEach is changed for several workers.
func changedEach[T any](workers int, change func(*T) bool, do func(worker int, list []T) error) func(worker int, list []T) error {
	buffers := make([][]T, workers)
	return func(worker int, list []T) error {
		kept := buffers[worker][:0]
		for _, v := range list {
			if change(&v) {
				kept = append(kept, v)
			}
		}
		buffers[worker] = kept
		if len(kept) == 0 {
			return nil
		}
		return do(worker, kept)
	}
}
