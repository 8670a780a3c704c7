// Package exchange reads and writes histories in the forms that programs for checking
// them share, a folder a form. What such a history is held to is decided by the
// checkers of this project.
package exchange

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Format is one form of histories.
type Format struct {
	Name  string // as --format takes it
	About string // a line of help

	// Levels are those that a history of this form can be held to, the weakest first;
	// Default is the one that it is held to where nobody names one.
	Levels  []isolation.Level
	Default isolation.Level

	// Check reads the history in the file, and decides one result for each level up to
	// expect, by the level's name; with Unknown it decides all levels and holds the
	// history to the Default. An error of the file's content is an *InputError. Nil: this
	// form is written only.
	Check func(ctx context.Context, path string, expect isolation.Level) (*Checked, error)

	// Export writes a recorded run, and says what of it the form has no words for and
	// was left out. A run that it cannot express at all is an *InputError. Nil: this form
	// is read only.
	Export func(run *history.Reader, to io.Writer) (Written, error)

	// Registers says that Export takes only runs whose operations know the writer of what
	// they saw.
	Registers bool
}

// Checked is what a history holds, and what was found of it.
type Checked struct {
	Sessions, Transactions, Operations, Objects, Aborted int // Aborted are operations of aborted transactions

	Results []check.Result // the weakest level first

	// Strongest are the strongest levels that hold, where the levels are no line. Nil: it
	// is the last one before the first result that is not valid.
	Strongest []string

	Name func(id history.ID) string // a transaction as the file calls it
}

// Written is what an export came to.
type Written struct {
	Sessions, Transactions, Operations int
	Left                               []string // what was left out, a sentence each
}

// InputError is what is wrong with a history that was given, in a sentence.
type InputError struct {
	Line int // from 1; 0: of no line in particular
	What string
}

func (e *InputError) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

// Level returns the level that a text names; an empty one is Unknown.
func (f *Format) Level(text string) (isolation.Level, error) {
	if text == "" {
		return isolation.Unknown, nil
	}
	at := slices.IndexFunc(f.Levels, func(l isolation.Level) bool { return l.String() == text })
	if at < 0 {
		return isolation.Unknown, fmt.Errorf("a history in the form %s is held to one of %s, and not to %q", f.Name, strings.Join(check.Texts(f.Levels), ", "), text)
	}
	return f.Levels[at], nil
}

// Formats is the list of the forms that a program knows.
type Formats []Format

// Find returns the form of a name.
func (l Formats) Find(name string) (*Format, error) {
	var names []string
	for i := range l {
		if l[i].Name == name {
			return &l[i], nil
		}
		names = append(names, l[i].Name)
	}
	return nil, fmt.Errorf("no form of histories is called %q: this build knows %s", name, strings.Join(names, ", "))
}
