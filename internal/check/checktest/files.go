package checktest

import (
	"testing"

	"stroppy/internal/history"
)

// Open opens the history and the end state in a folder. It closes them when the test ends.
func Open(t *testing.T, dir string) (*history.Reader, *history.End) {
	t.Helper()
	reader, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	end, err := history.OpenEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = end.Close() })
	return reader, end
}
