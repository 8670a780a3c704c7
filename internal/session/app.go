// Package session opens what a run needs: a database or a cluster, workers and the nemesis. It
// carries out one run, shows its progress, and reacts to signals.
package session

import (
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// Reasons returns the lines of an error without repetitions, the cause first. It omits a line that is part of another.
func (a *App) Reasons(err error) (lines []string) {
	for line := range strings.FieldsFuncSeq(a.Scrub(err.Error()), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return []string{"it failed without a message"}
	}
	said := func(line string) bool {
		return slices.ContainsFunc(lines, func(other string) bool { return other != line && strings.Contains(other, line) })
	}
	return append(lines[:1:1], slices.DeleteFunc(slices.Clone(lines[1:]), said)...)
}

// App holds the environment and the streams of one call of the program.
type App struct {
	Environ        []string
	Stdin          io.Reader // for answers to questions; nil: there is none
	Stdout, Stderr io.Writer
	Scrub          func(string) string // takes the secrets of this call out of a text
	Quiet, Verbose bool                // how much is shown; at most one of them
	done           map[string]bool     // questions that the user has agreed to, and secrets that are hidden already
}

// Getenv returns a variable of the environment of this call; empty if there is none.
func (a *App) Getenv(name string) (value string) {
	for _, entry := range a.Environ {
		if text, ok := strings.CutPrefix(entry, name+"="); ok {
			value = text // the last one counts
		}
	}
	return value
}

// Terminal reports whether w is a terminal that understands control sequences.
func (a *App) Terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && a.Getenv("TERM") != "dumb"
}

// Colors reports whether w takes colours. NO_COLOR forbids them (https://no-color.org).
func (a *App) Colors(w io.Writer) bool { return a.Terminal(w) && a.Getenv("NO_COLOR") == "" }
