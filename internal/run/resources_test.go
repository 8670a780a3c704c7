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
