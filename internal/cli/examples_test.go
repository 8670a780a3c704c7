package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"stroppy/internal/exit"
	"stroppy/internal/nemesis"
	"stroppy/internal/session"
)

// commandsOf returns a command and its sub-commands that help shows.
func commandsOf(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, below := range c.Commands() {
		if !below.Hidden {
			list = append(list, commandsOf(below)...)
		}
	}
	return list
}

// words splits an example as a shell does that knows only single quotes.
func words(line string) (list []string) {
	for _, word := range regexp.MustCompile(`(?:'[^']*'|[^\s'])+`).FindAllString(line, -1) {
		list = append(list, strings.ReplaceAll(word, "'", ""))
	}
	return list
}

// TestEveryCommandHasAValidExample checks that each example is accepted by its command.
func TestEveryCommandHasAValidExample(t *testing.T) {
	t.Parallel()
	all := examples()
	for _, c := range commandsOf((&app{&session.App{}}).root()) {
		if c.Example == "" {
			t.Errorf("`%s` has no example in its help", c.CommandPath())
		}
		delete(all, c.CommandPath())
		for line := range strings.Lines(c.Example) {
			example(t, c, strings.TrimSpace(line))
		}
	}
	for path := range all {
		t.Errorf("there are examples of %q, which is no command", path)
	}
}

// example checks that a line is a valid command, and prints its place.
func example(t *testing.T, at *cobra.Command, line string) {
	t.Helper()
	line = strings.TrimSuffix(strings.TrimPrefix(line, "source <("), ")")
	given := words(line)
	if given[0] != "stroppy" {
		t.Errorf("`%s`: the example %q is no command of stroppy", at.CommandPath(), line)
		return
	}
	root := (&app{&session.App{}}).root()
	c, rest, err := root.Find(given[1:])
	if err == nil {
		err = longFlags(root, given[1:])
	}
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil && c.Name() != "help" {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Errorf("`%s`: the example %q is refused: %v", at.CommandPath(), line, err)
		return
	}
	if planned := c.Flags().Lookup("dry-run") != nil && !strings.Contains(line, ".yaml"); planned {
		var out bytes.Buffer
		if code := Main(append(given[1:], "--dry-run"), nil, nil, &out, &out); code != exit.Valid {
			t.Errorf("`%s`: the plan of the example %q ends with %d: %s", at.CommandPath(), line, code, &out)
		}
	}
	if !strings.HasPrefix(c.CommandPath()+" ", at.CommandPath()+" ") {
		t.Errorf("`%s`: the example %q shows `%s`", at.CommandPath(), line, c.CommandPath())
	}
}

// TestCompletedFaultsAreValid checks that every completion of a fault can be parsed.
func TestCompletedFaultsAreValid(t *testing.T) {
	t.Parallel()
	kinds := nemesis.Continuations("")
	if !slices.Contains(kinds, "kill") || !slices.Contains(kinds, "rolling-restart") {
		t.Errorf("a fault begins with %q", kinds)
	}
	for _, text := range nemesis.Continuations("kill l") {
		if _, err := nemesis.Parse(text); err != nil {
			t.Errorf("%q is offered and refused: %v", text, err)
		}
	}
	if list := nemesis.Continuations("kill leader e"); !slices.Contains(list, "kill leader every") {
		t.Errorf("behind a target come %q", list)
	}
}
