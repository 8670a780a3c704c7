package elle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"stroppy/internal/check"
	sentences "stroppy/internal/check/text"
	"stroppy/internal/foreign"
	"stroppy/internal/isolation"
)

// cases holds small histories, mostly reduced from reports, with the status of each level.
var cases = map[string]struct {
	levels string
	names  string // an anomaly that is named
}{
	"crossed-reads.edn":        {"holds serializable broken causal broken strong-session-serializable broken strict-serializable", "causality violation"},
	"lost-update-realtime.edn": {"holds strong-session-serializable broken strong-snapshot-isolation broken strict-serializable", "stale read (G-single-realtime)"},
	"reg-garbage-blind.edn":    {"broken read-uncommitted", "thin-air read"},
	"reg-two-reads.edn":        {"holds monotonic-atomic-view broken read-atomic broken repeatable-read", "non-repeatable read"},
	"reg-future-min.edn":       {"holds strong-read-uncommitted broken read-committed", "future read"},
	"si-write-skew-unread.edn": {"holds strong-snapshot-isolation broken repeatable-read broken serializable", "write skew (G2-item)"},
	"f-read.edn":               {"holds strict-serializable", ""},
	"info-short-read.edn":      {"holds strict-serializable", ""},
}

func TestSmallHistoriesSatisfyExpectedLevels(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.edn")
	if err != nil || len(files) != len(cases) {
		t.Fatalf("%d files of %d: %v", len(files), len(cases), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			of := cases[filepath.Base(path)]
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, c := checked(t, data)
			compareLevels(t, c, strings.Fields(of.levels))
			named := of.names == ""
			for _, r := range c.Results {
				for _, f := range r.Findings {
					named = named || f.Anomaly == of.names
				}
			}
			if !named {
				t.Errorf("no %s is named", of.names)
			}
		})
	}
}

// TestJSONErrorsNameTheLine checks that errors in JSON, also in an array, name the line.
func TestJSONErrorsNameTheLine(t *testing.T) {
	data, err := os.ReadFile("testdata/cases/array.json")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Read(data)
	var input *foreign.InputError
	if !errors.As(err, &input) || input.Line != 5 {
		t.Errorf("the error is %v", err)
	}
}

// TestLinesWithoutTimeGiveNoDurations checks that, without :time, lines define an order but no durations, and that
// durations come from :time otherwise.
func TestLinesWithoutTimeGiveNoDurations(t *testing.T) {
	for _, operations := range []string{"[:append 1 1]|[:r 1 []]", "[:w 1 1]|[:r 1 nil]"} {
		write, read, _ := strings.Cut(operations, "|")
		for _, times := range [][4]string{{}, {":time 10", ":time 20", ":time 20", ":time 30"}, {":time 10", ":time 20", ":time 5020", ":time 9000"}} {
			lines := fmt.Sprintf("{:type :invoke, :process 0, :value [%s] %s}\n{:type :ok, :process 0, :value [%s] %s}\n{:type :invoke, :process 1, :value [%s] %s}\n{:type :ok, :process 1, :value [%s] %s}\n",
				write, times[0], write, times[1], read, times[2], read, times[3])
			_, c := checked(t, []byte(lines))
			compareLevels(t, c, []string{"holds", "serializable", "broken", "strong-snapshot-isolation"})
			edges, say := "", sentences.Speaker{Words: check.Words{One: "transaction"}}
			for _, r := range c.Results {
				for _, f := range r.Findings {
					for _, e := range f.Cycle {
						edges += say.Clause(e.Why) + "\n"
					}
				}
			}
			if lasts := times[2] == ":time 5020"; strings.Contains(edges, "5 µs before") != lasts || strings.Contains(edges, " ns before") {
				t.Errorf("of %v the edges are: %s", times, edges)
			}
		}
	}
}

// hot returns a register that 8 processes read and write in turn.
func hot(n int) []byte {
	var out strings.Builder
	previous := "nil"
	for i := range n {
		fmt.Fprintf(&out, "{:type :invoke, :f :txn, :process %d, :index %d, :value [[:r 1 nil] [:w 1 %d]]}\n", i%8, 2*i, i+1)
		fmt.Fprintf(&out, "{:type :ok, :f :txn, :process %d, :index %d, :value [[:r 1 %s] [:w 1 %d]]}\n", i%8, 2*i+1, previous, i+1)
		previous = fmt.Sprint(i + 1)
	}
	return []byte(out.String())
}

// TestMemoryGrowsLinearlyWithWrites checks that twice as many writes of one register need twice as much memory.
func TestMemoryGrowsLinearlyWithWrites(t *testing.T) {
	allocated := func(n int) float64 {
		data := hot(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h, err := Read(data)
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.check(context.Background(), isolation.StrictSerializable)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		compareLevels(t, c, []string{"holds", "strict-serializable"})
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	one, two := allocated(3000), allocated(6000)
	if two > 2.5*one || two > 6000*20_000 {
		t.Errorf("3,000 writes allocate %.0f bytes, and 6,000 %.0f", one, two)
	}
}

// TestUnknownOutcomeFollowsEarlierTransactions checks that a transaction of unknown outcome follows the earlier
// transactions of its process, and precedes none.
func TestUnknownOutcomeFollowsEarlierTransactions(t *testing.T) {
	text := `{:type :invoke, :process 0, :value [[:w 1 1]]}
{:type :ok, :process 0, :value [[:w 1 1]]}
{:type :invoke, :process 0, :value [[:w 1 2] [:w 2 2]]}
{:type :info, :process 0, :value [[:w 1 2] [:w 2 2]]}
{:type :invoke, :process 0, :value [[:r 1 nil]]}
{:type :ok, :process 0, :value [[:r 1 1]]}
{:type :invoke, :process 1, :value [[:r 2 nil] [:r 1 nil]]}
{:type :ok, :process 1, :value [[:r 2 2] [:r 1 %s]]}
`
	_, c := checked(t, fmt.Appendf(nil, text, "2"))
	compareLevels(t, c, []string{"holds", "strict-serializable"})
	// It follows the first transaction of its process: a reader of it sees that one overwritten.
	_, c = checked(t, fmt.Appendf(nil, strings.Replace(text, "[:w 1 2] [:w 2 2]", "[:w 2 2]", 2), "nil"))
	compareLevels(t, c, []string{"holds", "serializable", "broken", "causal", "broken", "strong-snapshot-isolation"})
}
