package history

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Inputs is a set of the files of a recording that a check is made from.
type Inputs uint8

// The files of a recording.
const (
	Recorded   Inputs = 1 << iota // transactions.bin
	EndObjects                    // end-objects.bin
	EndLedger                     // end-ledger.bin

	// EndState is both files of the end state. They belong together: if one of them cannot
	// be trusted, neither is read.
	EndState = EndObjects | EndLedger
)

// Problem says what is wrong with a file of a recording. The zero value is no problem.
type Problem uint8

const (
	_           Problem = iota
	Missing             // the file is not there, and it must be
	Unreadable          // the operating system could not read it
	CutShort            // its last part is missing
	Appended            // bytes follow its footer
	BadChecksum         // a checksum is wrong, or a block is not where one must be
	BadRecord           // a record cannot be understood
	BadCount            // the blocks are not those that the footer counts
	Repeated            // a block is there twice
	Gap                 // transactions of a client are missing
	Replaced            // it is not the file that the manifest names
	Senseless           // its description contradicts itself
	Lacking             // it has fewer transactions than were counted while they ran
)

// Damage is an error that says why a file of a recording cannot be trusted.
type Damage struct {
	Input   Inputs // which file
	File    string // its path
	Problem Problem
	Offset  int64 // in the file, in bytes; -1: the problem has no place

	doing, what string
	err         error // errDamaged, or that of the operating system
}

// errDamaged is within every Damage but of what is Unreadable.
var errDamaged = errors.New("the file was altered or damaged")

// Error implements error: it names the file, the place, the problem and what to do.
func (d *Damage) Error() string {
	switch {
	case d.Problem == Missing:
		return fmt.Sprintf("%s: %s is missing: %s", d.doing, d.File, d.what)
	case d.Problem == Unreadable:
		return fmt.Sprintf("%s in %s at offset %d: %v: see to its disk", d.doing, d.File, d.Offset, d.err)
	case d.Offset < 0:
		return fmt.Sprintf("%s in %s: %s", d.doing, d.File, d.what)
	}
	return fmt.Sprintf("%s in %s: %v at offset %d: %s: restore it from a copy",
		d.doing, d.File, errDamaged, d.Offset, d.what)
}

// Unwrap returns the cause.
func (d *Damage) Unwrap() error { return d.err }

// input returns which file has such contents.
func (c contents) input() Inputs {
	switch c {
	case objects:
		return EndObjects
	case ledger:
		return EndLedger
	}
	return Recorded
}

// damaged returns the Damage of the file at an offset, and remembers that the file has some.
func (s *blockSource) damaged(offset int64, problem Problem, what string) error {
	return s.fail(&Damage{Problem: problem, Offset: offset, what: what, err: errDamaged})
}

// fail completes d, and remembers that the file has some damage.
func (s *blockSource) fail(d *Damage) *Damage {
	d.Input, d.File, d.doing = s.contents.input(), s.path, s.doing
	s.failure.CompareAndSwap(nil, d)
	return d
}

// failed returns the first damage that anybody met in the file, or nil.
func (s *blockSource) failed() *Damage { return s.failure.Load() }

// LacksTransactions returns the damage of the complete history in dir, a run's history folder,
// that has fewer transactions than the file counter says were made.
func LacksTransactions(dir string, records, made uint64, counter string) *Damage {
	return &Damage{
		Input: Recorded, File: filepath.Join(dir, transactionsFile), Problem: Lacking, Offset: -1,
		doing: "read the history", err: errDamaged,
		what: fmt.Sprintf("it holds %d transactions, and %s counts %d: restore it from a copy", records, counter, made),
	}
}
