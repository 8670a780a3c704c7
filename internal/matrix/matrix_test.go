package matrix

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

var update = flag.Bool("update", false, "write the golden files again")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not as it was: look at it and run the test with -update\n%s", path, got)
	}
}

// outcomes are those in which these anomalies are seen, in the forms given, and all others
// prevented.
func outcomes(seen map[schedule.Anomaly]func(schedule.Schedule) bool) (list []schedule.Outcome) {
	for _, s := range schedule.Schedules() {
		o := schedule.Outcome{Anomaly: s.Anomaly, Variant: s.Variant, Predicate: s.Predicate, Every: s.Every, Sampled: s.Rounds > 1, State: schedule.Prevented, How: "T2 waited"}
		if in := seen[s.Anomaly]; in != nil && in(s) {
			o.State, o.How, o.Witness = schedule.Seen, "", "T1 saw it"
			o.Steps = []schedule.Line{{Transaction: 1, Step: "read row 1", Result: "1=10"}, {Transaction: 2, Step: "write 1=12", Waited: true}}
		}
		list = append(list, o)
	}
	return list
}

func always(schedule.Schedule) bool      { return true }
func predicate(s schedule.Schedule) bool { return s.Predicate }
func once(s schedule.Schedule) bool      { return s.Rounds == 0 }

func own(s schedule.Schedule) bool    { return s.Every }
func others(s schedule.Schedule) bool { return !s.Every }

// locking reports whether a schedule has a read that locks.
func locking(s schedule.Schedule) bool {
	return slices.ContainsFunc(s.Steps, func(step schedule.Step) bool {
		return step.Kind == schedule.FindUpdate || step.Kind == schedule.FindShare
	})
}

func seenAll(list ...schedule.Anomaly) map[schedule.Anomaly]func(schedule.Schedule) bool {
	seen := map[schedule.Anomaly]func(schedule.Schedule) bool{}
	for _, a := range list {
		seen[a] = always
	}
	return seen
}

// strict is a load that looked for everything and saw nothing.
func strict() Load {
	l := Load{Command: "stroppy run append", Verdict: validVerdict, Run: "valid", Transactions: 1000, Found: []Found{}}
	for _, a := range schedule.Anomalies() {
		l.LookedFor = append(l.LookedFor, a.String())
	}
	return l
}

// strictLong is strict with enough transactions.
func strictLong() Load {
	l := strict()
	l.Transactions = 123_456
	return l
}

func TestUpperBoundFollowsFromFoundAnomalies(t *testing.T) {
	weak := seenAll(schedule.PMP, schedule.P4, schedule.GSingle, schedule.G2Item, schedule.G2)
	lost := strict()
	lost.Found = append(lost.Found, Found{Anomaly: "P4", Count: 3, Witness: "gone", Forbidden: isolation.SnapshotIsolation})
	other := strict()
	other.Found = append(other.Found, Found{Anomaly: "a fractured read", Count: 1, Forbidden: isolation.ReadAtomic})
	unknown := strict()
	unknown.Verdict = unknownVerdict
	for _, c := range []struct {
		name     string
		outcomes []schedule.Outcome
		loads    []Load
		claims   isolation.Level
		want     string
		verdict  string
	}{
		{"nothing seen", outcomes(nil), nil, isolation.Serializable, "serializable", "valid"},
		{"nor under load", outcomes(nil), []Load{strict()}, isolation.StrictSerializable, "strict-serializable", "valid"},
		{"a stale read", outcomes(seenAll(schedule.StaleRead)), []Load{strict()}, isolation.StrictSerializable, "serializable", "invalid"},
		{"write skew", outcomes(seenAll(schedule.G2Item, schedule.G2)), nil, isolation.SnapshotIsolation, "snapshot-isolation", "valid"},
		{"write skew, and serializable claimed", outcomes(seenAll(schedule.G2Item)), nil, isolation.Serializable, "snapshot-isolation", "invalid"},
		{"predicates", outcomes(map[schedule.Anomaly]func(schedule.Schedule) bool{schedule.PMP: predicate, schedule.G2: predicate}), nil, isolation.RepeatableRead, "read-atomic and repeatable-read", "valid"},
		{"predicates of one snapshot", outcomes(map[schedule.Anomaly]func(schedule.Schedule) bool{schedule.G2: predicate}), nil, isolation.ReadCommitted, "repeatable-read and snapshot-isolation", "valid"},
		{"reads of each statement", outcomes(weak), nil, isolation.ReadCommitted, "monotonic-atomic-view", "valid"},
		{"lost updates alone", outcomes(seenAll(schedule.P4, schedule.G2Item, schedule.G2)), nil, isolation.ReadCommitted, "read-atomic", "valid"},
		{"dirty reads", outcomes(seenAll(schedule.G1a, schedule.OTV)), nil, isolation.ReadCommitted, "read-uncommitted", "invalid"},
		{"a reader that writes", outcomes(map[schedule.Anomaly]func(schedule.Schedule) bool{schedule.OTV: locking}), nil, isolation.SnapshotIsolation, "read-committed", "invalid"},
		{"a changed row is read again", outcomes(map[schedule.Anomaly]func(schedule.Schedule) bool{schedule.Internal: others}), nil, isolation.ReadCommitted, "monotonic-atomic-view", "valid"},
		{"a wait under a predicate", outcomes(map[schedule.Anomaly]func(schedule.Schedule) bool{schedule.GSingle: locking}), nil, isolation.SnapshotIsolation, "monotonic-atomic-view", "invalid"},
		{"an own write is missed", outcomes(map[schedule.Anomaly]func(schedule.Schedule) bool{schedule.Internal: own}), nil, isolation.ReadUncommitted, "no level", "invalid"},
		{"dirty writes", outcomes(seenAll(schedule.G0)), nil, isolation.ReadUncommitted, "no level", "invalid"},
		{"a lost update under load", outcomes(nil), []Load{lost}, isolation.Serializable, "read-atomic", "invalid"},
		{"what has no column", outcomes(nil), []Load{other}, isolation.ReadCommitted, "repeatable-read", "valid"},
		{"a run that is not decided", outcomes(nil), []Load{unknown}, isolation.Serializable, "strict-serializable", "unknown"},
		{"nothing tried", nil, nil, isolation.Serializable, "not known", "unknown"},
		{"nothing claimed", outcomes(weak), nil, isolation.Unknown, "monotonic-atomic-view", "valid"},
	} {
		l := NewLevel("l", true, c.claims, "", c.outcomes, c.loads)
		if l.AmountsTo != c.want || l.Verdict != c.verdict {
			t.Errorf("%s: amounts to %s, %s; want %s, %s", c.name, l.AmountsTo, l.Verdict, c.want, c.verdict)
		}
	}
}

// TestUndecidedScheduleIsUnknown checks that an undecided schedule counts neither as prevented nor as seen.
func TestUndecidedScheduleIsUnknown(t *testing.T) {
	list := outcomes(nil)
	list[0].State, list[0].How = schedule.Undecided, "the session was lost"
	l := NewLevel("l", false, isolation.Serializable, "", list, nil)
	if c := l.Anomalies["G0"]; c.Mark() != "?" || l.Verdict != unknownVerdict || l.AmountsTo != "no level" {
		t.Errorf("%s, %s, amounts to %s", c.Mark(), l.Verdict, l.AmountsTo)
	}
}

// TestSummaryCountsTriesAndNamesBound checks that the summary counts what could have shown a violation, and calls
// the level an upper bound.
func TestSummaryCountsTriesAndNamesBound(t *testing.T) {
	skew := map[schedule.Anomaly]func(schedule.Schedule) bool{schedule.G2Item: always, schedule.G2: always}
	lost := strictLong()
	lost.Found, lost.LookedFor = []Found{{Anomaly: "P4", Forbidden: isolation.SnapshotIsolation}}, []string{"P4"}
	weak := seenAll(schedule.Internal, schedule.PMP, schedule.P4, schedule.GSingle, schedule.G2Item, schedule.G2)
	weak[schedule.Internal] = others
	count := func(a ...schedule.Anomaly) (n int) {
		for _, s := range schedule.Schedules() {
			if slices.Contains(a, s.Anomaly) || slices.Contains(a, schedule.OTV) && s.Every {
				n++
			}
		}
		return n
	}
	skews := count(schedule.G2Item, schedule.G2, schedule.StaleRead)
	for _, c := range []struct {
		name     string
		outcomes []schedule.Outcome
		loads    []Load
		want     string
	}{
		{"schedules alone", outcomes(skew), nil, fmt.Sprintf("No violation of snapshot isolation in 0 transactions and %d schedules. "+
			"This is an upper bound: the level may give less, not more.", len(schedule.Schedules())-skews)},
		{"with load", outcomes(skew), []Load{strictLong(), strict()}, fmt.Sprintf("No violation of snapshot isolation in 124,456 transactions and %d schedules. "+
			"This is an upper bound: the level may give less, not more.", len(schedule.Schedules())-skews)},
		{"a load that looked for nothing that the bound forbids", outcomes(weak), []Load{lost, strict()},
			fmt.Sprintf("No violation of monotonic atomic view in 1,000 transactions and %d schedules. This is an upper bound: the level may give less, not more.",
				count(schedule.G0, schedule.G1a, schedule.G1b, schedule.G1c, schedule.OTV))},
		{"real time was not tried", outcomes(nil), nil, fmt.Sprintf("No violation of PL-3 (the literature's serializability) in 0 transactions and %d schedules. "+
			"This is an upper bound of what was tested: the level may give less. Not decided: strict serializability.", len(schedule.Schedules())-1)},
		{"dirty writes", outcomes(seenAll(schedule.G0)), nil, "A violation of PL-1 (the literature's read uncommitted) was seen, and so of every level."},
		{"nothing", nil, nil, "Nothing was tried."},
	} {
		if l := NewLevel("l", true, isolation.ReadCommitted, "", c.outcomes, c.loads); l.Summary != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, l.Summary, c.want)
		}
	}
}

// TestForbiddenLevelsMatchLiterature checks that the weakest levels that forbid each anomaly agree with the
// literature.
func TestForbiddenLevelsMatchLiterature(t *testing.T) {
	for a, want := range map[schedule.Anomaly][]isolation.Level{
		schedule.G0: {isolation.ReadUncommitted}, schedule.G1b: {isolation.ReadCommitted}, schedule.OTV: {isolation.MonotonicAtomicView},
		schedule.Internal: {isolation.ReadAtomic, isolation.RepeatableRead}, schedule.PMP: {isolation.SnapshotIsolation},
		schedule.P4: {isolation.RepeatableRead, isolation.SnapshotIsolation}, schedule.GSingle: {isolation.SnapshotIsolation},
		schedule.G2Item: {isolation.RepeatableRead}, schedule.G2: {isolation.Serializable}, schedule.StaleRead: {isolation.StrongSnapshotIsolation},
	} {
		if got := Forbidden(a); !slices.Equal(got, want) {
			t.Errorf("%s is forbidden by %v; want %v", a, got, want)
		}
	}
}

// TestCellWithFewTransactionsIsMarked checks that a cell is marked if its load had too few transactions, unless
// the anomaly was seen.
func TestCellWithFewTransactionsIsMarked(t *testing.T) {
	seen := outcomes(seenAll(schedule.P4))
	for _, c := range []struct {
		loads []Load
		g0    string
	}{{nil, "(✓)"}, {[]Load{strict()}, "(✓)"}, {[]Load{strict(), strictLong()}, "✓"}} {
		l := NewLevel("l", true, isolation.ReadCommitted, "", seen, c.loads)
		if got := l.Anomalies["G0"].Label(); got != c.g0 || l.Anomalies["P4"].Label() != "seen" {
			t.Errorf("%d loads: %s and %s", len(c.loads), got, l.Anomalies["P4"].Label())
		}
	}
}

// TestEarlierFormatIsRead checks that a matrix without schedules of internal consistency is read, has an upper
// bound, and counts as earlier.
func TestEarlierFormatIsRead(t *testing.T) {
	m := example()
	if m.Earlier() {
		t.Error("the example is not of today")
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		delete(l.Anomalies, schedule.Internal.String())
		l.UpperBound, l.Summary = nil, ""
	}
	var out bytes.Buffer
	if err := m.JSON(&out); err != nil {
		t.Fatal(err)
	}
	old, err := Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	l := &old.Levels[0]
	if !old.Earlier() || l.Anomalies["internal"].Label() != "n/a" || !slices.Equal(l.UpperBound, []isolation.Level{isolation.MonotonicAtomicView}) || l.Summary == "" {
		t.Errorf("%v, %s, %v, %q", old.Earlier(), l.Anomalies["internal"].Label(), l.UpperBound, l.Summary)
	}
}

// example is a matrix with one of everything.
func example() *Matrix {
	weak := map[schedule.Anomaly]func(schedule.Schedule) bool{
		schedule.PMP: predicate, schedule.P4: always, schedule.GSingle: always, schedule.LongFork: once, schedule.G2Item: always, schedule.G2: always,
	}
	strong := outcomes(nil)
	strong[len(strong)-1].State, strong[len(strong)-1].How = schedule.NotApplicable, "there are no followers"
	lost := strict()
	lost.Found = []Found{{Anomaly: "P4", Count: 98, Witness: "T1 and T2 both read version 0 | of row 647", Forbidden: isolation.SnapshotIsolation}}
	m := &Matrix{
		Database: "Example", Version: "1.2.3", Stroppy: "v0", Started: "2026-11-25T18:00:00Z", Command: "stroppy isolation --db example:",
		Levels: []Level{
			NewLevel("read committed", true, isolation.ReadCommitted, "https://example.org/levels", outcomes(weak), []Load{lost}),
			NewLevel("serializable", false, isolation.Serializable, "https://example.org/levels", strong, []Load{strictLong()}),
		},
	}
	m.Judge()
	return m
}

func TestTextMarkdownAndJSONMatchGolden(t *testing.T) {
	for name, write := range map[string]func(*Matrix, *bytes.Buffer) error{
		"example.txt":  func(m *Matrix, w *bytes.Buffer) error { return m.Text(w) },
		"example.md":   func(m *Matrix, w *bytes.Buffer) error { return m.Markdown(w) },
		"example.json": func(m *Matrix, w *bytes.Buffer) error { return m.JSON(w) },
		"example-page.json": func(m *Matrix, w *bytes.Buffer) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", " ")
			return encoder.Encode(m.Document())
		},
	} {
		var out bytes.Buffer
		if err := write(example(), &out); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.Bytes())
	}
}

// TestJSONRoundTrip checks that a matrix is equal after it is written and read.
func TestJSONRoundTrip(t *testing.T) {
	var out bytes.Buffer
	if err := example().JSON(&out); err != nil {
		t.Fatal(err)
	}
	back, err := Parse(out.Bytes())
	if err != nil || !reflect.DeepEqual(back, example()) {
		t.Errorf("read back: %v\n%+v\n%+v", err, back, example())
	}
}

func FuzzParse(f *testing.F) {
	var out bytes.Buffer
	if err := example().JSON(&out); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Add([]byte(`{"levels":[{"anomalies":{"G0":null}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if err != nil {
			return
		}
		var text bytes.Buffer
		if err := m.Text(&text); err != nil {
			t.Fatal(err)
		}
		if err := m.Markdown(&text); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPageContainsDataAndScript checks that the page has its data, its script and the text for a browser without
// scripts.
func TestPageContainsDataAndScript(t *testing.T) {
	var out bytes.Buffer
	if err := example().Page(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>Valid: isolation levels of Example</title>", `"mark":"some"`, "(matrix.Chart)", "No level showed"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("the page has no %q", want)
		}
	}
}

func TestLoadListsFoundAnomalies(t *testing.T) {
	finds := map[string][]string{"order": {"G0", "P4", "G2-item"}, "clock": {"stale read"}}
	for _, c := range []struct {
		name    string
		kept    isolation.Level
		checks  []report.Check
		verdict string
		looked  []string
		found   []string
	}{
		{"nothing seen", isolation.Unknown, []report.Check{{Name: "order", Status: "valid"}, {Name: "clock", Status: "valid"}}, "valid", []string{"G0", "P4", "G2-item", "stale read"}, nil},
		{"one seen, and no other looked for", isolation.Unknown, []report.Check{
			{Name: "order", Status: "invalid", Anomalies: []report.Anomaly{{Name: "lost update (P4)", Forbidden: "snapshot-isolation", Count: 2}}},
			{Name: "clock", Status: "invalid"}}, "valid", []string{"P4"}, []string{"P4"}},
		{"named otherwise", isolation.Unknown, []report.Check{{Name: "order", Status: "invalid", Anomalies: []report.Anomaly{
			{Name: "long fork (G-nonadjacent)"}, {Name: "stale read (G-single-realtime)"}, {Name: "dirty write in real time (G0-realtime)"}}}},
			"valid", []string{"long fork", "stale read", "dirty write in real time (G0-realtime)"}, []string{"long fork", "stale read", "dirty write in real time (G0-realtime)"}},
		{"a read from before and after", isolation.Unknown, []report.Check{{Name: "order", Status: "invalid", Anomalies: []report.Anomaly{
			{Name: "stale read (G-single-realtime)", Edges: []report.Edge{{Kind: "wr"}, {Kind: "rw"}, {Kind: "real time"}}}}}},
			"valid", []string{skewInTime}, []string{skewInTime}},
		{"a read from before alone", isolation.Unknown, []report.Check{{Name: "order", Status: "invalid", Anomalies: []report.Anomaly{
			{Name: "stale read (G-single-realtime)", Edges: []report.Edge{{Kind: "rw"}, {Kind: "wr"}, {Kind: "real time"}}}}}},
			"valid", []string{"stale read"}, []string{"stale read"}},
		{"one that the claim allows, by a check that decides the claim", isolation.ReadCommitted, []report.Check{{Name: "order", Status: "invalid", Anomalies: []report.Anomaly{
			{Name: "lost update (P4)"}}}}, "valid", []string{"G0", "P4"}, []string{"P4"}},
		{"one that the claim forbids", isolation.SnapshotIsolation, []report.Check{{Name: "order", Status: "invalid", Required: true, Anomalies: []report.Anomaly{
			{Name: "lost update (P4)"}}}}, "valid", []string{"P4"}, []string{"P4"}},
		{"not decided", isolation.Unknown, []report.Check{{Name: "order", Status: "unknown"}}, "unknown", []string{}, nil},
		{"of other things", isolation.Unknown, []report.Check{{Name: "total", Status: "unknown"}}, "valid", []string{}, nil},
	} {
		l := NewLoad(&report.Result{Checks: c.checks, Drive: &report.Drive{Committed: 7}}, "dir", finds, c.kept)
		var found []string
		for _, f := range l.Found {
			found = append(found, f.Anomaly)
		}
		if l.Verdict != c.verdict || l.Transactions != 7 || !slices.Equal(l.LookedFor, c.looked) || !slices.Equal(found, c.found) {
			t.Errorf("%s: %s, looked for %q, found %q", c.name, l.Verdict, l.LookedFor, found)
		}
	}
}
