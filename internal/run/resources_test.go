package run

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"stroppy/internal/report"
)

// TestMaximumMemoryCoversEachRow checks that the maximum in result.json is at least each row of resources.csv,
// even if the operating system reports less.
func TestMaximumMemoryCoversEachRow(t *testing.T) { synctest.Test(t, memoryAtMost) }

func memoryAtMost(t *testing.T) {
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
	file, err := os.Open(filepath.Join(dir, report.ResourcesFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := report.ReadRows[report.Resource](file, report.ResourcesFile)
	if err != nil || len(rows) == 0 || rows[0].ClientRSS == nil {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		if *r.Client.MaxRSSBytes < *row.ClientRSS {
			t.Errorf("at most %d bytes, and %d in second %d", *r.Client.MaxRSSBytes, *row.ClientRSS, row.Second)
		}
	}
}
