package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"stroppy/internal/report"
)

// TestMemoryAtMost holds that what result.json reports as the client's most is no less
// than any row of resources.csv, whatever the system says.
func TestMemoryAtMost(t *testing.T) {
	dir := t.TempDir()
	c := newConductor(Options{Dir: &Directory{Path: dir}})
	end := c.resourceUsage(time.Now())
	time.Sleep(meterEvery*6/10 + 50*time.Millisecond) // long enough for a row
	if err := end(); err != nil {
		t.Fatal(err)
	}
	c.result.Client = &report.Client{MaxRSSBytes: known(int64(4096))}
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(dir, ResourcesFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := report.ReadResources(file)
	if err != nil || len(rows) == 0 || rows[0].ClientRSS == nil {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		if *r.Client.MaxRSSBytes < *row.ClientRSS {
			t.Errorf("at most %d bytes, and %d in second %d", *r.Client.MaxRSSBytes, *row.ClientRSS, row.Second)
		}
	}
}

// TestEverySince holds that calls come at whole intervals since the start of the run, not
// since when they were asked for.
func TestEverySince(t *testing.T) {
	const interval = 200 * time.Millisecond
	start := time.Now().Add(-130 * time.Millisecond)
	calls := make(chan time.Duration, 100)
	end := everySince(start, interval, func() { calls <- time.Since(start) })
	time.Sleep(5 * interval)
	end()
	close(calls)
	early, n := 0, 0
	for at := range calls {
		n++
		if at%interval > interval/2 { // a busy machine is late, never early
			early++
		}
	}
	if n < 2 || n > 6 || early > n/2 {
		t.Errorf("%d calls, %d of them far from a whole interval", n, early)
	}
}
