// Package foreign reads and writes histories in the formats of other checkers, with one folder for each
// format. The checkers of this project decide about such histories.
package foreign

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/sessions"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// Format is one format of histories.
type Format struct {
	Name  string // as --format takes it
	About string // a line of help

	// Levels lists the levels that a history of this format can be checked against, the weakest first.
	// Default is used if none is named.
	Levels  []isolation.Level
	Default isolation.Level

	// Check reads the history in a file and returns one result for each level up to expect, named after the
	// level. With Unknown, it decides all levels and judges the history by Default. An error in the content
	// is an *InputError. If Check is nil, the format is only written.
	Check func(ctx context.Context, path string, expect isolation.Level) (*Checked, error)

	// Export writes a recorded run, and reports what the format cannot express. If it cannot express the run
	// at all, the error is an *InputError. If Export is nil, the format is only read.
	Export func(run *history.Reader, to io.Writer) (Written, error)

	// Registers means that Export accepts only runs whose operations record the writer of what they saw.
	Registers bool
}

// Checked is the content of a history with the results of its checks.
type Checked struct {
	Sessions, Transactions, Operations, Objects, Aborted int // Aborted are operations of aborted transactions

	Results []check.Result // the weakest level first

	// Strongest lists the strongest levels that hold, if the levels are only partially ordered. If it is nil,
	// it is the last level before the first result that is not valid.
	Strongest []string

	Name func(id history.ID) string // a transaction as the file calls it
}

// Written is the result of an export.
type Written struct {
	Sessions, Transactions, Operations int
	Left                               []string // what was left out, a sentence each
}

// InputError describes an error in a given history in one sentence.
type InputError = sessions.InputError

// Level parses the name of a level. An empty name is Unknown.
func (f *Format) Level(text string) (isolation.Level, error) {
	if text == "" {
		return isolation.Unknown, nil
	}
	at := slices.IndexFunc(f.Levels, func(l isolation.Level) bool { return l.String() == text })
	if at < 0 {
		return isolation.Unknown, fmt.Errorf("the form %s has no level %q: use one of %s", f.Name, text,
			strings.Join(check.Texts(f.Levels), ", "))
	}
	return f.Levels[at], nil
}

// Formats is the list of known formats.
type Formats []Format

// Find returns the format with a name.
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
