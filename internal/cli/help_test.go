package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"stroppy/internal/session"
)

// TestListFitsTheTerminal checks that no line of a list is wider than the terminal, and that a row is one line
// without a terminal.
func TestListFitsTheTerminal(t *testing.T) {
	for _, l := range lists() {
		kind, lines := l.kind, l.lines()
		var wide, narrow strings.Builder
		if err := errors.Join(writeList(&wide, lines, 0), writeList(&narrow, lines, 80)); err != nil {
			t.Fatal(err)
		}
		if strings.Count(wide.String(), "\n") != len(lines) {
			t.Errorf("%s: %d rows are %d lines", kind, len(lines), strings.Count(wide.String(), "\n"))
		}
		if !slices.Equal(strings.Fields(wide.String()), strings.Fields(narrow.String())) {
			t.Errorf("%s: the narrow list has other words:\n%s", kind, &narrow)
		}
		for line := range strings.Lines(narrow.String()) {
			if utf8.RuneCountInString(line) > 81 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: %q is too wide", kind, line)
			}
		}
	}
}

// TestHelpFitsTheTerminal checks that no line of help is wider than the terminal, except examples and usage. Without a
// terminal each flag is one line.
func TestHelpFitsTheTerminal(t *testing.T) {
	var page strings.Builder
	a := &app{&session.App{Stdout: &page}}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			visit(below)
		}
		page.Reset()
		c.SetOut(&page)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		wide, narrow := page.String(), fitted(page.String(), 80)
		if fitted(wide, 0) != wide {
			t.Errorf("%s: without a terminal the page is another one", c.CommandPath())
		}
		if !slices.Equal(strings.Fields(wide), strings.Fields(narrow)) {
			t.Errorf("%s: the narrow page has other words:\n%s", c.CommandPath(), narrow)
		}
		for line := range strings.Lines(narrow) {
			if utf8.RuneCountInString(line) > 81 && !strings.HasPrefix(line, "  stroppy ") {
				t.Errorf("%s: %q is too wide", c.CommandPath(), line)
			}
		}
	}
	visit(a.root())
}

// TestOutlineFitsTheTerminal checks that no line of a plan is wider than the terminal, except for the command.
func TestOutlineFitsTheTerminal(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("abc, ", 40))
	rows := [][2]string{{"checks", long}, {"command", long}}
	for _, width := range []int{0, 80, 120} {
		var b strings.Builder
		if err := writeOutline(&b, "Plan", rows, width); err != nil {
			t.Fatal(err)
		}
		text, pasted := b.String(), fmt.Sprintf("\n  %-18s%s\n", "command", long)
		if !strings.HasSuffix(text, pasted) {
			t.Errorf("at %d columns the command is not one line:\n%s", width, text)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(text, pasted), "\n") {
			if width > 0 && len(line) > width {
				t.Errorf("at %d columns a line has %d: %s", width, len(line), line)
			}
		}
		if got := strings.Join(strings.Fields(text), " "); got != "Plan checks "+long+" command "+long {
			t.Errorf("at %d columns the plan says %q", width, got)
		}
	}
}
