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
func cellUnder(t *testing.T, table DataTable, heading string) string {
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

// TestFootprintIsDividedByTransfers checks that text, tables and result.json divide the
// footprint by what they say: by the transfers, and by no inquiry.
func TestFootprintIsDividedByTransfers(t *testing.T) {
	const transfers = 110_000 + 1234
	r := driven(base("valid", "It is so."))
	r.FootprintTransfers = number(uint64(transfers))
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
	if err := Text(&out, r, Options{Detail: Full}); err != nil || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), "410 bytes a committed transaction that wrote (111,234 of them)") {
		t.Errorf("%v: the text says\n%s", err, out.String())
	}
}

// TestFootprintForEachTransfer checks that nothing is divided where the transfers or the
// footprint are not known.
func TestFootprintForEachTransfer(t *testing.T) {
	for _, c := range []struct {
		name      string
		transfers *uint64
		footprint *int64
		each      any
	}{
		{"both known", number(uint64(150_000)), number(int64(45_600_000)), 304},
		{"no transfer", number(uint64(0)), number(int64(45_600_000)), nil},
		{"transfers not known", nil, number(int64(45_600_000)), nil},
		{"no footprint", number(uint64(150_000)), nil, nil},
	} {
		r := driven(base("valid", "It is so."))
		r.FootprintTransfers, r.FootprintBytes, r.FootprintPerTransfer = c.transfers, c.footprint, number(1.0)
		for range 2 { // what was read and written again says the same
			r = read(t, r)
			var got any
			if each := r.FootprintPerTransfer; each != nil {
				got = int(*each)
			}
			if got != c.each {
				t.Errorf("%s: footprint_bytes_per_transfer is %v, want %v", c.name, got, c.each)
			}
		}
	}
}

// TestMaximumMemoryCoversEverySample checks that the reported maximum is at least every sample.
func TestMaximumMemoryCoversEverySample(t *testing.T) {
	for _, c := range []struct {
		reported *int64
		sampled  int64
		want     any
	}{
		{number(int64(100)), 102, 102}, {number(int64(100)), 98, 100}, {nil, 98, 98}, {nil, 0, nil}, {number(int64(100)), 0, 100},
	} {
		r := &Result{Client: &Client{MaxRSSBytes: c.reported}, SampledRSS: c.sampled}
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
			t.Errorf("%v of the system and %d of the samples make %v", c.reported, c.sampled, got.Client.Most)
		}
	}
}
