package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cellUnder returns the cell of a table's one row under a heading.
func cellUnder(t *testing.T, table PageTable, heading string) string {
	t.Helper()
	for i, c := range table.Columns {
		if c == heading {
			return table.Rows[0].Cells[i]
		}
	}
	t.Fatalf("%s has no column %q", table.Title, heading)
	return ""
}

// read is the result as result.json has it.
func read(t *testing.T, r *Result) *Result {
	t.Helper()
	data, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o644); err != nil {
		t.Fatal(err)
	}
	back, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// TestFootprintIsDividedByTransfers holds that text, tables and result.json divide the
// footprint by what they say: by the transfers, and by no inquiry.
func TestFootprintIsDividedByTransfers(t *testing.T) {
	const transfers = 110_000 + 1234
	r := driven(base("valid", "It is so."))
	all := 45_600_000 / float64(123_456)
	r.FootprintPerTransfer = &all // as a run of an earlier version divided it
	r = read(t, r)
	if each := r.FootprintPerTransfer; each == nil || math.Abs(*each*transfers-45_600_000) > 1 {
		t.Errorf("footprint_bytes_per_transfer is %v", each)
	}
	if n := r.FootprintTransfers; n == nil || *n != transfers {
		t.Errorf("footprint_transfers is %v", n)
	}
	tables := studyTables(r)
	one, three := cellUnder(t, tables[0], "transfers, millions"), cellUnder(t, tables[2], "transfers, millions")
	if one != "0.1112" || three != one {
		t.Errorf("table 1 has %s million transfers, and table 3 %s", one, three)
	}
	if each := cellUnder(t, tables[2], "bytes per transfer"); each != RateText(45_600_000/float64(transfers)) {
		t.Errorf("table 3 has %s bytes per transfer", each)
	}
	var out strings.Builder
	if err := Text(&out, r, Options{}); err != nil || !strings.Contains(out.String(), "410 bytes a committed transfer (111,234 of them)") {
		t.Errorf("%v: the text says\n%s", err, out.String())
	}
}

// TestFootprintAfterAWarmUp holds that the transfers of the warm-up count where they
// are known, and that nothing is reported where they are not.
func TestFootprintAfterAWarmUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		bend  func(r *Result)
		count any
	}{
		{"told by the run", func(r *Result) { r.FootprintTransfers = number(uint64(150_000)) }, 150_000},
		{"nothing but transfers", func(r *Result) {
			r.Drive.Kinds, r.FootprintPerTransfer = map[string]uint64{"transfer": 123_456}, number(45_600_000/200_000.0)
		}, 200_000},
		{"inquiries among them", func(r *Result) { r.FootprintPerTransfer = number(45_600_000 / 200_000.0) }, nil},
		{"nothing of the drive is known", func(r *Result) { r.Drive = nil }, nil},
		{"no transfer", func(r *Result) { r.Drive.WarmupSeconds, r.Drive.Kinds = 0, map[string]uint64{"inquiry": 5} }, 0},
		{"no footprint", func(r *Result) { r.Drive.WarmupSeconds, r.FootprintBytes = 0, nil }, nil},
		{"another workload", func(r *Result) {
			r.Workload, r.Drive.WarmupSeconds, r.Drive.Kinds = "kv", 0, map[string]uint64{"read": 9, "scan": 1, "update": 3, "read-modify-write": 1}
		}, 4},
	} {
		r := driven(base("valid", "It is so."))
		r.Drive.WarmupSeconds = 5
		c.bend(r)
		for range 2 { // what was read and written again says the same
			r = read(t, r)
			var got any
			if n := r.FootprintTransfers; n != nil {
				got = int(*n)
			}
			if got != c.count {
				t.Errorf("%s: %v transfers, and %v were stored", c.name, got, c.count)
			}
			if n, known := c.count.(int); known && n > 0 && r.FootprintBytes != nil {
				if each := r.FootprintPerTransfer; each == nil || math.Abs(*each*float64(n)-45_600_000) > 1 {
					t.Errorf("%s: footprint_bytes_per_transfer is %v", c.name, each)
				}
			} else if r.FootprintPerTransfer != nil {
				t.Errorf("%s: footprint_bytes_per_transfer is %v", c.name, *r.FootprintPerTransfer)
			}
		}
	}
}

// TestMemoryIsAtLeastThatOfASample holds that what is reported as the most is no less than
// any sample.
func TestMemoryIsAtLeastThatOfASample(t *testing.T) {
	for _, c := range []struct {
		told    *int64
		sampled int64
		want    any
	}{
		{number(int64(100)), 102, 102}, {number(int64(100)), 98, 100}, {nil, 98, 98}, {nil, 0, nil}, {number(int64(100)), 0, 100},
	} {
		r := &Result{Client: &Client{MaxRSSBytes: c.told}, SampledRSS: c.sampled}
		data, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Client struct {
				Most any `json:"max_rss_bytes"`
			} `json:"client"`
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.Client.Most) != fmt.Sprint(c.want) {
			t.Errorf("%v of the system and %d of the samples make %v", c.told, c.sampled, got.Client.Most)
		}
	}
}
