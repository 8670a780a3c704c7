package check

import (
	"fmt"
	"strings"

	"stroppy/internal/history"
)

// Findings are the violations of one kind: how often it was found, and the first few.
type Findings struct {
	Count int
	Texts []string // in words
	IDs   []history.ID
}

// Add counts one violation, and keeps it while they are few: its words and the
// transactions that show it.
func (f *Findings) Add(what string, ids ...history.ID) {
	if f.Count++; len(f.Texts) < Shown {
		f.Texts = append(f.Texts, what)
		f.IDs = append(f.IDs, ids...)
	}
}

// String lists what was kept, and says how many more there are.
func (f *Findings) String() string {
	text := strings.Join(f.Texts, "; ")
	if more := f.Count - len(f.Texts); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
