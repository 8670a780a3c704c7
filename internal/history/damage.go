package history

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Inputs is a set of a recording's files that a check uses.
type Inputs uint8

// These are the files of a recording.
const (
	Recorded   Inputs = 1 << iota // transactions.bin
	EndObjects                    // end-objects.bin
	EndLedger                     // end-ledger.bin

	// EndState is both files of the end state. If one of them cannot be trusted, neither is read.
	EndState = EndObjects | EndLedger
)

// Problem is the kind of damage of a recording's file. The zero value is no problem.
type Problem uint8

const (
	_           Problem = iota
	Missing             // a required file does not exist
	Unreadable          // the operating system could not read it
	CutShort            // its last part is missing
	Appended            // bytes follow the footer
	BadChecksum         // a checksum is wrong, or a block is misplaced
	BadRecord           // a record cannot be understood
	BadCount            // the blocks do not match the footer
	Repeated            // a block occurs twice
	Gap                 // transactions of a client are missing
	Replaced            // the manifest names another file
	Senseless           // the file's description contradicts itself
	Lacking             // the file has fewer transactions than were counted during the run
)

// Damage is an error that states why a file of a recording cannot be trusted.
type Damage struct {
	Input   Inputs // which file
	File    string // its path
	Problem Problem
	Offset  int64 // in the file, in bytes; -1: no position

	doing, what string
	err         error // errDamaged, or an error of the operating system
}

// errDamaged is wrapped by every Damage except Unreadable.
var errDamaged = errors.New("the file was altered or damaged")

// Error names the file, the position, the problem and the remedy.
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

// input returns the file with the given contents.
func (c contents) input() Inputs {
	switch c {
	case objects:
		return EndObjects
	case ledger:
		return EndLedger
	}
	return Recorded
}

// damaged returns a Damage of the file at an offset, and records that the file is damaged.
func (s *blockSource) damaged(offset int64, problem Problem, what string) error {
	return s.fail(&Damage{Problem: problem, Offset: offset, what: what, err: errDamaged})
}

// fail completes d, and records that the file is damaged.
func (s *blockSource) fail(d *Damage) *Damage {
	d.Input, d.File, d.doing = s.contents.input(), s.path, s.doing
	s.failure.CompareAndSwap(nil, d)
	return d
}

// failed returns the first damage that was found in the file, or nil.
func (s *blockSource) failed() *Damage { return s.failure.Load() }

// LacksTransactions returns the damage of a complete history in dir that has fewer transactions than the
// named counter file.
func LacksTransactions(dir string, records, made uint64, counter string) *Damage {
	return &Damage{
		Input: Recorded, File: filepath.Join(dir, transactionsFile), Problem: Lacking, Offset: -1,
		doing: "read the history", err: errDamaged,
		what: fmt.Sprintf("it holds %d transactions, and %s counts %d: restore it from a copy", records, counter, made),
	}
}
