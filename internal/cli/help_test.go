package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestListWidth: on a terminal no line of a list is wider than it is, and nothing is left out;
// elsewhere a row is a line.
func TestListWidth(t *testing.T) {
	for _, kind := range []string{"workloads", "databases", "clusters", "faults", "checks", "scenarios", "formats"} {
		lines, err := list(kind, nil)
		if err != nil {
			t.Fatal(err)
		}
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
