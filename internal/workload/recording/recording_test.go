package recording

import (
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// kept is the recording with this header.
func kept(h history.Header, early []uint64, rows uint64) *recording {
	return &recording{Verified: &history.Verified{Header: h}, early: early, rows: rows}
}

// TestLaterOfTwoEndStatesIsFound checks which of two end states was downloaded later: the second of each pair.
func TestLaterOfTwoEndStatesIsFound(t *testing.T) {
	bare := func(load string, run uint64, started int64, ended string) history.Header {
		return history.Header{LoadID: load, Run: run, Started: started, Keys: map[string]string{check.KeyDrive: check.DriveNone, check.KeyEnded: ended}}
	}
	driven := func(run uint64) history.Header { return history.Header{LoadID: "L", Run: run, Started: 100} }
	for _, test := range []struct {
		name          string
		sooner, later *recording
	}{
		{"a run began between two checks, and the clock of the second one's machine is behind",
			kept(bare("L", 2, 900, ""), nil, 9), kept(bare("L", 3, 500, ""), nil, 9)},
		{"two checks without a run between them",
			kept(bare("L", 2, 500, ""), nil, 9), kept(bare("L", 2, 900, ""), nil, 3)},
		{"of data without an id of its load, whose runs' numbers begin anew",
			kept(bare("", 3, 500, ""), nil, 9), kept(bare("", 2, 900, ""), nil, 9)},
		{"a check after a run, of a database that has lost rows",
			kept(driven(1), nil, 9), kept(bare("L", 2, 50, "1"), nil, 3)},
		{"one that is later than all runs",
			kept(driven(1), []uint64{2}, 9), kept(driven(2), nil, 3)},
		{"two that say nothing of each other",
			kept(driven(1), []uint64{2}, 3), kept(driven(2), []uint64{1}, 9)},
	} {
		if !test.later.after(test.sooner) || test.sooner.after(test.later) {
			t.Errorf("%s: the later one is not known", test.name)
		}
	}
}

// TestHeaderWithTooManyAccountsIsRefused checks that a header with many more accounts than the end state has rows
// is refused at once. A database that lost rows is not refused.
func TestHeaderWithTooManyAccountsIsRefused(t *testing.T) {
	for _, test := range []struct {
		accounts uint64
		refused  bool
	}{{1 << 40, true}, {1000, false}} {
		dir := t.TempDir()
		recorded := filepath.Join(dir, folder)
		w, err := history.Create(recorded, history.Header{Workload: "bank", Run: 1, Objects: test.accounts}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		end, err := history.CreateEnd(recorded)
		if err != nil {
			t.Fatal(err)
		}
		if err := end.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := open(t.Context(), []string{dir}, "bank")
		r.close()
		if refused := err != nil && strings.Contains(err.Error(), "one of the two is damaged"); refused != test.refused || refused != (err != nil) {
			t.Errorf("%d accounts and an empty end state: %v", test.accounts, err)
		}
	}
}
