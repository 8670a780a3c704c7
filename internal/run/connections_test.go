package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/report"
)

// splitRun makes the directory of a run with two clients. Client 0 writes to n0 and then to n1; client 1 writes to n0
// for two more seconds, and nothing of this is kept.
func splitRun(t *testing.T, onePrimary bool) (string, *conductor) {
	t.Helper()
	dir := t.TempDir()
	h := history.Header{Workload: "bank", Run: 3, Clients: 2, Database: "none", Keys: map[string]string{}}
	w, err := history.Create(filepath.Join(dir, HistoryDir), h, 2)
	if err != nil {
		t.Fatal(err)
	}
	end, err := history.CreateEnd(filepath.Join(dir, HistoryDir))
	if err != nil {
		t.Fatal(err)
	}
	last := map[uint64]int64{0: 6000, 1: 4000}
	for client, until := range last {
		for ms := int64(100); ms <= until; ms += 100 {
			at := ms * int64(time.Millisecond)
			tx := history.Transaction{
				ID: history.NewID(3, client, uint64(ms)), Kind: kindTransfer, Outcome: history.Committed, Attempts: 1,
				Due: at - 1e6, Sent: at - 1e6, Try: at - 1e6, End: at, Ops: []history.Op{{Object: client, Write: true}},
			}
			err := w.Client(int(client)).Append(&tx)
			if client == 0 || ms < 2000 {
				err = errors.Join(err, end.Row(history.Row{Transaction: tx.ID}))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Client(0).Flush(), w.Client(1).Flush(), w.Close(), end.Close()); err != nil {
		t.Fatal(err)
	}
	c := newConductor(Options{Dir: &Directory{Path: dir}, Progress: silent{}, OnePrimary: onePrimary, Names: func(server string) string {
		return map[string]string{"h0:1": "n0", "h1:1": "n1"}[server]
	}})
	if err := c.identify(); err != nil {
		t.Fatal(err)
	}
	log := &connectionLog{conductor: c, servers: []string{"h0:1", "h0:1"}}
	var o load.Options
	log.log(&o)
	stop := log.start()
	o.Connected(1, int64(time.Second), "h0:1") // the same again is no line
	o.Connected(0, int64(2050*time.Millisecond), "h1:1")
	o.Connected(0, int64(7*time.Second), "somewhere:1")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return dir, c
}

// TestResultNamesAcknowledgingNodes checks that the result has the acknowledgements of each node. Overlaps are
// reported only if one node alone should take writes.
func TestResultNamesAcknowledgingNodes(t *testing.T) {
	for _, onePrimary := range []bool{true, false} {
		_, c := splitRun(t, onePrimary)
		c.acknowledgements()
		a := c.result.Acknowledgements
		if a == nil || len(a.Intervals) != 2 || a.OnePrimary != onePrimary {
			t.Fatalf("%+v", a)
		}
		n0, n1 := a.Intervals[0], a.Intervals[1]
		if n0.Server != "n0" || n0.FromSeconds != 0.1 || n0.ToSeconds != 4 || n0.Acknowledged != 60 || *n0.Lost != 21 || *n0.LostFromSeconds != 2 {
			t.Errorf("%+v", n0)
		}
		if n1.Server != "n1" || n1.FromSeconds != 2.1 || n1.ToSeconds != 6 || n1.Acknowledged != 40 || *n1.Lost != 0 || n1.LostFromSeconds != nil {
			t.Errorf("%+v", n1)
		}
		switch {
		case !onePrimary && len(a.Overlaps) > 0:
			t.Errorf("nodes that are equal are accused: %+v", a.Overlaps)
		case onePrimary && (len(a.Overlaps) != 1 || a.Overlaps[0].FromSeconds != 2.1 || a.Overlaps[0].ToSeconds != 3.999):
			t.Errorf("%+v", a.Overlaps)
		}
	}
}

// TestAcknowledgementsUnknown checks that unknown parts are left out for a run without the file or without an end
// state.
func TestAcknowledgementsUnknown(t *testing.T) {
	dir, c := splitRun(t, true)
	for _, name := range []string{"end-objects.bin", "end-ledger.bin"} {
		if err := os.Remove(filepath.Join(dir, HistoryDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c.acknowledgements()
	if a := c.result.Acknowledgements; a == nil || a.Intervals[0].Lost != nil {
		t.Errorf("%+v", a)
	}
	path := filepath.Join(dir, ConnectionsFile)
	replaceFile(t, path, func(text string) string { return text[:len(text)-5] }) // cut off
	if read, err := readConnections(dir); err != nil || len(read.moves) != 3 {
		t.Errorf("%+v, %v", read, err)
	}
	replaceFile(t, path, func(text string) string { return strings.Replace(text, `"client":1`, `"client":-1`, 1) })
	if _, err := readConnections(dir); err == nil || !strings.Contains(err.Error(), "line 3 of "+path) {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c.acknowledgements()
	if c.result.Acknowledgements != nil {
		t.Error("something is known of nothing")
	}
}

// TestConnectionsOfAnotherRun checks that the file names its run.
func TestConnectionsOfAnotherRun(t *testing.T) {
	dir, _ := splitRun(t, true)
	replaceFile(t, filepath.Join(dir, ConnectionsFile), func(text string) string { return strings.Replace(text, `"run":3`, `"run":4`, 1) })
	if err := SameRun(dir, &report.Result{}); err == nil || !strings.Contains(err.Error(), ConnectionsFile+" belongs to") {
		t.Error(err)
	}
}
