package report

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	checktext "stroppy/internal/check/text"
	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

var update = flag.Bool("update", false, "write the golden files anew")

func number[N any](n N) *N { return &n }

func base(verdict, reason string) *Result {
	return &Result{
		Schema: Schema, Verdict: verdict, Reason: reason, Workload: "bank", Study: true,
		Database: "PostgreSQL", DatabaseVersion: "15.13", Seed: 42, StartedAt: "2025-03-01T12:00:00Z",
		Load:   &Load{Accounts: 10000, Seconds: number(0.081), RowsPerSecond: number(123456.7), Total: "1234567.89"},
		Checks: []Check{}, Faults: []fault.Record{}, Settings: []Setting{{"fsync", "on"}, {"synchronous_commit", "on"}},
		DatabaseURL: "postgres://me:xxxxx@h1:5432,h2:5433/bank",
		Claim:       &Claim{Isolation: "read committed", Level: "read-committed", Source: "PostgreSQL 15 manual, 13.2.1", Expect: "read-committed"},
		Scenario:    []Setting{{"workload", "bank"}},
		Phases:      []Phase{{"load", 0.081}, {"drive", 10.01}, {"download", 0.5}, {"check", 1.25}},
		Command:     "stroppy run bank --db postgres://me@h1:5432,h2:5433/bank --seed 42",
		Stroppy:     "v1.0.0", Machine: "linux/amd64, 2 processors", Finished: true,
	}
}

func driven(r *Result) *Result {
	r.Drive = &Drive{
		Clients: 16, Seconds: 10, Committed: 123456, Rejected: Rejected{InsufficientFunds: 1200, NoSuchAccount: 3}, Aborted: 7, Unknown: 2, Retries: 345, Conflicts: 352,
		TPS:     &Throughput{number(12345.6), number(12400.0), number(13001.0)},
		Latency: &Latency{1.234, 1.1, 2.25, 3.5, 9.75, 45.6, 1234.5}, Service: &Latency{0.834, 0.7, 1.25, 2.5, 8.75, 44.6, 234.5},
		Style: map[string]string{"update": "rmw", "mode": "pipelined", "audits": "1"}, Reconnects: 16, Kinds: map[string]uint64{"transfer": 110000, "payroll": 1234, "inquiry": 12222}, Writes: number(uint64(111234)),
		Outage: &Outage{4.2, 2.5},
		Errors: []ErrorCount{
			{"aborted", "40P01", "commit", 340, "commit: deadlock detected (code 40P01)"},
			{"unavailable", "", "connect", 16, "connect to h1:5432: connection refused"},
		},
	}
	r.FootprintBytes = number(int64(45_600_000))
	r.Client = &Client{CPUSeconds: number(2.468), MaxRSSBytes: number(int64(81_200_000)), Threads: number(1.0)}
	return r
}

// nineChecks are the names of nine checks, and what each holds.
var nineChecks = [][2]string{
	{check.Total, "the end balances, downloaded and summed, equal the canonical total"},
	{check.NonNegative, "no balance is below zero"},
	{check.Ledger, "opening balance + ledger legs = end balance, and version = number of legs, for every account"},
	{check.Durable, "every committed transfer is in the ledger"},
	{check.NoGhost, "nothing rejected or aborted is in the ledger, and nothing there was never sent"},
	{check.ExactlyOnce, "no transfer was applied twice"},
	{check.Serializable, "the dependency graph has no cycle"},
	{check.Strict, "the dependency graph with real-time order added has no cycle"},
	{check.Audits, "every audit saw exactly the total, and a consistent cut"},
}

func nine(status check.Status) []check.Result {
	var list []check.Result
	for _, about := range nineChecks {
		list = append(list, check.Result{Name: about[0], Status: status, Required: about[0] != check.Serializable && about[0] != check.Strict, Why: fact.Unreadable{Problem: "it is so: " + about[1]}})
	}
	return list
}

// cases are results as runs leave them.
func cases() map[string]*Result {
	valid := driven(base("valid", "All 7 required checks hold over 123456 committed transactions: the database kept what read-committed promises."))
	valid.Checks = Checks(nine(check.Valid), speaker)

	invalid := driven(base("invalid", "The checks durable and serializable found violations."))
	results := nine(check.Valid)
	first, second := history.NewID(1, 7, 312), history.NewID(1, 3, 9)
	results[3] = check.Result{
		Name: check.Durable, Status: check.Invalid, Required: true,
		Findings: []check.Finding{{
			Check: check.Durable, Count: 2, Instances: []fact.Fact{fact.Lost{By: first}, fact.Lost{By: second}},
			Transactions: []history.ID{first, second},
		}},
		Witness: []history.ID{first, second},
		Where:   []history.Ref{{File: "history/transactions.bin", Offset: 65536, Record: 17}},
	}
	results[6] = check.Result{
		Name: check.Serializable, Status: check.Invalid, Required: true, Witness: make([]history.ID, 30),
		Findings: []check.Finding{lostUpdateFinding(), {
			Check: check.Serializable, Anomaly: "read skew (G-single)", Forbidden: isolation.SnapshotIsolation, Count: 1234, AtLeast: true,
			Instances: []fact.Fact{fact.Component{By: first, All: 3}}, Transactions: []history.ID{first},
		}},
	}
	results[8].Status, results[8].Why = check.NotApplicable, fact.Unreadable{Problem: "no audits were asked for"}
	results[7] = check.Result{Name: check.Strict, Status: check.Invalid, Why: fact.Unreadable{Problem: "not serializable, and so not strictly: see serializable"}}
	invalid.Checks = Checks(results, speaker)
	invalid.Reason = "2 acknowledged transfers lost: n1 acknowledged them between 14.1 s and 16.8 s; n2 became the leader at 15.9 s."
	invalid.Cause = &Cause{
		Kind: "lost-writes", Check: check.Durable, Finding: "lost", Count: 2, FromSeconds: number(14.1), ToSeconds: number(16.8), Culprit: "configuration",
		Text: invalid.Reason, CulpritText: "This configuration does not promise it: wait=0: \"it may be lost\" (its manual).", Cure: "Set wait=1.",
		Explains: []Consequence{{Check: check.Serializable, Kind: "lost-update", Anomaly: "lost update (P4)", Count: 1, Explained: true, Text: "serializable: 1 lost update, explained by the above"}},
	}
	invalid.Violations = &Violations{File: "violations.jsonl", Lines: 4002, More: 70000, Checks: []ViolationsOf{{check.Durable, 2, 2}, {check.Serializable, 74000, 4000}}}

	unknown := driven(base("unknown", "The run was cut off, so not all that it sent is recorded. The check no-ghost could not be decided."))
	results = nine(check.Valid)
	results[6].Required = true
	results[4].Status, results[4].Why = check.Unknown, fact.CutOff{}
	unknown.Checks, unknown.Finished = Checks(results, speaker), false
	unknown.Claim.Expect = "serializable"
	unknown.Load.Seconds, unknown.Load.RowsPerSecond = nil, nil
	unknown.Drive.Interrupted, unknown.Drive.Rate, unknown.Drive.WarmupSeconds, unknown.Drive.Backlog = true, 5000, 2, 77

	hurt := driven(base("unknown", "The check faults could not be decided."))
	hurt.Checks = Checks(append(nine(check.Valid), check.Result{Name: "faults", Required: true, Why: fact.FaultTrouble{Fault: "pause random", AtSeconds: 40, State: fact.NotHealed, Error: "n2 did not answer within 2m0s"}}), speaker)
	hurt.Faults = []fault.Record{
		{Injection: fault.Injection{Number: 1, Fault: "kill leader", Target: "n1 (leader)", Scheduled: fault.Round(20), At: fault.Round(20.012), Healed: new(fault.Round(25.4)), Verified: "its 3 processes are gone; it answers again"}, Outage: new(fault.Round(0.843)), OutageCluster: new(fault.Round(0.5)), OutageClient: new(fault.Round(0.343)), OutageLeader: "n0", Recovered: new(fault.Round(1.72)), TPSBefore: number(12345.6), TPSDuring: number(10101.0), TPSAfter: number(12300.0), P99Before: number(9.75), P99During: number(845.0), P99After: number(10.2), Unknown: 16, FoundCommitted: 11, FoundAborted: 4},
		{Injection: fault.Injection{Number: 2, Fault: "partition halves one-way and then some more words", Target: "n0, n1 | n2", Scheduled: fault.Round(29.4), At: fault.Round(30), Late: "it waited until a node led", Healed: new(fault.Round(35.0)), Verified: "packets do not arrive"}, Outage: new(fault.Round(12.5)), TPSBefore: number(12300.0), TPSDuring: number(0.0)},
		{Injection: fault.Injection{Number: 3, Fault: "pause random", Target: "n2 (follower)", At: fault.Round(40), HealError: "n2 did not answer within 2m0s"}, Outage: new(fault.Round(0.01)), Recovered: new(fault.Round(0.0)), TPSBefore: number(1.0), TPSDuring: number(1.0)},
		{Injection: fault.Injection{Number: 4, Fault: "disk-full random", At: fault.Round(50), Error: "the node has no file system of ours under its data"}},
		{Injection: fault.Injection{Number: 5, Fault: "kill random", At: fault.Round(60), Skipped: "it would take away the majority"}},
		{Injection: fault.Injection{Number: 6, Fault: "pause n0", Target: "n0", Scheduled: fault.Round(70), At: fault.Round(70.09), Healed: new(fault.Round(71.0)), Verified: "3 processes stopped"}, Outage: new(fault.Round(0.0)), LongestGap: new(fault.Round(0.06)), Noise: new(fault.Round(0.12)), Uncompared: "there was no second without a fault and its effect before it"},
	}
	hurt.Degradation = &Degradation{FirstTPS: 12345.6, LastTPS: 12000}
	hurt.ClusterEvents = []Event{{AtSeconds: 48.25, Text: "n2 does not stream from n1: Patroni does not heal that, so n2 was reinitialized", Repair: true}}

	split := driven(base("invalid", "The check durable found a violation."))
	split.Checks = Checks(results, speaker)
	split.ClusterEvents = []Event{{AtSeconds: 12.1, Text: "n1 leads", Leader: "n1"}}
	split.Acknowledgements = &Acknowledgements{
		OnePrimary: true,
		Intervals: []Acknowledged{
			{"n0", 0.1, 16.3, 50_000, number(uint64(10_684)), number(12.2)},
			{"n1", 12.125, 29.9, 40_000, number(uint64(0)), nil},
		},
		Overlaps: []Overlap{{12.125, 16.3, []Acknowledged{{"n0", 12.1, 16.3, 10_684, number(uint64(10_684)), number(12.2)}, {"n1", 12.125, 16.4, 8_000, number(uint64(0)), nil}}}},
	}

	overload := driven(base("valid", "All 7 required checks hold over 123456 committed transactions: the database kept what read-committed promises."))
	overload.Checks = Checks(nine(check.Valid), speaker)
	d := overload.Drive
	d.Rate, d.RatePlan, d.Arrival, d.Backlog, d.Shed, d.MaxBacklog, d.DueAtLeast = 20000, "20000", "uniform", 1234, 567, 4321, []string{"mean", "p99", "p999", "max"}
	d.Outcomes = map[string]*Latency{
		"committed": d.Latency, "aborted": {5, 4, 6, 7, 8, 9, 10}, "unknown": {15000, 15000, 15000, 15000, 15000, 15000, 15000},
		"all": {3.21, 1.1, 2.25, 3.51, 1500, 2500, 15000},
	}

	nothing := base("unknown", "Nothing was committed, and a run in which nothing happened proves nothing.")
	nothing.Drive = &Drive{Clients: 1, TPS: &Throughput{}, Writes: number(uint64(0))}
	slow := driven(base("valid", "All 7 required checks hold over 123456 committed transactions: the database kept what read-committed promises."))
	slow.Checks = Checks(nine(check.Valid), speaker)
	slow.Objectives = []Objective{{"max-outage", ObjectiveMet, "The longest outage of 2 faults is 0.8 s."}, {"p99<50ms", ObjectiveMissed, "It is 61.2 ms."}, {"drive.service_ms.p99<50ms", ObjectiveUnknown, "Not decided: the run has no such measurement."}}
	return map[string]*Result{"slow": slow, "valid": valid, "invalid": invalid, "unknown": unknown, "nothing": nothing, "hurt": hurt, "split": split, "overload": overload, "empty": {Schema: Schema, Verdict: "unknown"}}
}

func TestTextEqualsGoldenFiles(t *testing.T) {
	for name, r := range cases() {
		for suffix, o := range map[string]Options{"": {}, ".color": {Color: true, Detail: Full}, ".full": {Detail: Full}} {
			color := o.Color
			file := filepath.Join("testdata", name+suffix+".txt")
			var out bytes.Buffer
			o.Dir = "stroppy-runs/x"
			if err := Text(&out, r, o); err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out.Bytes(), want) {
				t.Errorf("%s is not as %s: run go test ./internal/report -update and look at the difference\n%s", name, file, &out)
			}
			if !color && strings.Contains(out.String(), "\x1b") {
				t.Errorf("%s: an escape sequence without colours", name)
			}
		}
	}
}

func TestTextFitsItsWidth(t *testing.T) {
	for name, r := range cases() {
		var out bytes.Buffer
		if err := errors.Join(Text(&out, r, Options{Dir: "stroppy-runs/x"}), Text(&out, r, Options{Dir: "stroppy-runs/x", Detail: Full})); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > usualWidth || strings.HasSuffix(line, " ") {
				t.Errorf("%s: %q is too wide or ends in a space", name, line)
			}
		}
	}
}

// TestOverlapNeedsWritesOnBothNodes checks that a node to which no client wrote is not said to have taken writes.
func TestOverlapNeedsWritesOnBothNodes(t *testing.T) {
	o := Overlap{1, 2.63, []Acknowledged{{Server: "n0", Acknowledged: 1527}, {Server: "n2", Acknowledged: 9}}}
	if text := o.text(); !strings.HasPrefix(text, "Two nodes took writes for 1.63 s, from ") {
		t.Error(text)
	}
	o.Servers[1].Acknowledged = 0
	if text := o.text(); !strings.HasPrefix(text, "Two nodes were ready to take writes for 1.63 s, from ") ||
		!strings.HasSuffix(text, ": n0 acknowledged 1,527 then; n2 had become the leader, and no client wrote to it.") {
		t.Error(text)
	}
}

// TestShortRunHasNoMedian checks that a run that was measured for less than two whole seconds has no median and
// no best second.
func TestShortRunHasNoMedian(t *testing.T) {
	r := driven(base("valid", ""))
	for _, known := range []bool{true, false} {
		if !known {
			r.Drive.TPS.Median, r.Drive.TPS.Max = nil, nil
		}
		below := strings.Join(figures(r, false)[0].Below, " · ")
		if strings.Contains(below, "median ") != known || strings.Contains(below, "best second ") != known {
			t.Errorf("known %v: %s", known, below)
		}
	}
}

// TestJSONRoundTrip checks that report is a function of the directory: the text of
// what was read again is the same as what was written.
func TestJSONRoundTrip(t *testing.T) {
	for name, r := range cases() {
		dir := t.TempDir()
		data, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := Read(dir)
		if err != nil {
			t.Fatal(name, err)
		}
		var first, second bytes.Buffer
		if err := errors.Join(Text(&first, r, Options{Detail: Full}), Text(&second, again, Options{Detail: Full})); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() {
			t.Errorf("%s: got\n%s\nwant\n%s", name, &second, &first)
		}
	}
}

func TestUnknownNumbersAreNull(t *testing.T) {
	data, err := cases()["nothing"].JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"mean": null`, `"latency_ms": null`, `"footprint_bytes": null`, `"faults": []`, `"total": "1234567.89"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in\n%s", want, data)
		}
	}
}

func TestParseRefusesDamagedResults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"schema":2,"verdict":{"new":1}}`, "it has schema 2 and this stroppy reads schema 1"},
		{`{}`, "names no schema"},
		{`{"schema":-1}`, "names no schema"},
		{``, "no result of stroppy"},
		{`[1]`, "no result of stroppy: it holds one JSON array, and no object with names"},
		{`[]`, "no result of stroppy: it holds one JSON array, and no object with names"},
		{`"x"`, "no result of stroppy: it holds one JSON string"},
		{`{"schema":"1"}`, "no result of stroppy: its schema is a JSON string"},
		{`{"schema":1}`, `the verdict is ""`},
		{`{"schema":1,"verdict":"fine"}`, `the verdict is "fine", which is none of valid, invalid and unknown`},
		{`{"schema":1,"verdict":"valid","checks":[{"name":"total","status":""}]}`, "status of the check total"},
		{`{"schema":1,"verdict":"valid","seed":-1}`, "does not fit schema 1: its seed is a JSON number -1, which does not belong there"},
		{`{"schema":1,"verdict":"valid"`, "no result of stroppy: it is not whole, or no JSON, from byte 29 on"},
	} {
		if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "json:") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Read(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no result: %v", err)
	}
}

// FuzzParse checks that no file makes the reader or the text panic, and that no
// file can move a terminal's cursor.
func FuzzParse(f *testing.F) {
	for _, r := range cases() {
		data, err := r.JSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"schema":1,"verdict":"invalid","reason":"\u001b[2J\r\n\n  x","checks":[{"status":"invalid","anomalies":[{"count":-3}]}],"drive":{"seconds":1e300,"clients":-1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Text(&out, r, Options{Detail: Full}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\r\t\x00\b") {
			t.Fatalf("control characters in %q", out.String())
		}
	})
}

func TestGroupSeparatesThousands(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Group(n); got != want {
			t.Errorf("Group(%d) = %s", n, got)
		}
	}
}

// lostUpdateFinding is an anomaly as a checker explains it.
func lostUpdateFinding() check.Finding {
	first, second := fact.Member{ID: history.NewID(1, 7, 312)}, fact.Member{ID: history.NewID(1, 3, 9)}
	const account = "account DEUTDEFF 77"
	edge := func(from, to fact.Member) check.Edge {
		return check.Edge{
			From: from.ID, To: to.ID, Kind: check.ReadWrite, Object: account, FromVersion: "version 4", ToVersion: "version 5",
			Why: fact.Dependency{From: from, To: to, Kind: check.ReadWrite.String(), Object: account, Version: 4},
		}
	}
	span := func(of fact.Member, begin, end int64) check.Span {
		return check.Span{
			ID: of.ID, Kind: "transfer", Outcome: history.Committed, Begin: begin, End: end,
			Did: []fact.Fact{fact.Operation{Read: true, Wrote: true, Version: 4, Balance: 1000, Made: 5, Amount: -100}},
		}
	}
	return check.Finding{
		Check: check.Serializable, Anomaly: "lost update (P4)", Forbidden: isolation.SnapshotIsolation, Count: 1,
		Transactions: []history.ID{first.ID, second.ID},
		Instances:    []fact.Fact{fact.LostUpdate{First: first, Second: second, Object: account, Version: 5}},
		Cycle:        []check.Edge{edge(first, second), edge(second, first)},
		Spans: []check.Span{
			span(second, 4_200_000_000, 4_203_000_000), span(first, 4_201_000_000, 4_209_000_000),
		},
	}
}

// TestTextFitsEightyColumns checks that heads and tables fit a terminal of 80 columns with every word.
func TestTextFitsEightyColumns(t *testing.T) {
	wide := []string{"90.48 %", "15,415", "1,803.45", "0.044", "2,690", "8,940", "27,600", "43,900"}
	kinds := NewTable("", "", []int{0}, "kind", "committed", "share", "per second", "mean", "50 %", "95 %", "99 %", "99.9 %")
	kinds.Add(append([]string{"balance read"}, wide...)...)
	reported := NewTable("", "", []int{0, 1, 2, 4}, "class", "code", "doing", "times", "example")
	reported.Add("unavailable", "POSTGRES_57P01", "begin the transaction of client 14 with the first of its statements", "1,234", "terminating connection due to administrator command, and it did not say whether the transaction was committed")
	for name, table := range map[string]DataTable{"kinds": kinds, "errors": reported} {
		for width, least := range map[int]int{80: 60, 400: 0} {
			var out strings.Builder
			table.write(&out, width, nil)
			longest, text := 0, out.String()
			for line := range strings.Lines(text) {
				longest = max(longest, utf8.RuneCountInString(strings.TrimRight(line, "\n")))
			}
			if longest > width || longest < least || width == 400 && strings.Count(text, "\n") != 2 {
				t.Errorf("%s at %d columns:\n%s", name, width, text)
			}
			for _, cell := range slices.Concat(table.Columns, table.Rows[0].Cells) {
				for word := range strings.FieldsSeq(cell) {
					if !strings.Contains(text, word) {
						t.Errorf("%s at %d columns lacks %s:\n%s", name, width, word, text)
					}
				}
			}
		}
	}
	for _, missed := range []string{"", ObjectiveMissed} {
		r := &Result{Verdict: "valid", Workload: "bank", Database: "PostgreSQL", DatabaseVersion: "15.18 (Debian 15.18-0+deb12u1)",
			Settings: []Setting{{FailoverSetting, "by Patroni 3.0.2 with 1 etcd, and more"}}}
		if missed != "" {
			r.Objectives = []Objective{{Name: "tps", Status: missed}}
		}
		var out strings.Builder
		if err := Text(&out, r, Options{Detail: Verdict, Width: 80}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(line) > 81 {
				t.Errorf("at 80 columns:\n%s", &out)
			}
		}
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), "(Debian 15.18-0+deb12u1), fail-over by Patroni 3.0.2 with 1 etcd") {
			t.Errorf("the head is\n%s", &out)
		}
		if d := RunDocument(Input{Result: r}); d.Database != "PostgreSQL 15.18 (Debian 15.18-0+deb12u1), fail-over by Patroni 3.0.2 with 1 etcd" || !strings.Contains(d.Title, "by Patroni") {
			t.Errorf("the page is of %q and its title %q", d.Database, d.Title)
		}
	}
}

// TestCauseBesideWhatFails checks that a lost update stands below the sums that fail by it, with its witness
// and drawing. This holds although no level claims that no update is lost. Without a failed check it is not
// shown.
func TestCauseBesideWhatFails(t *testing.T) {
	results := nine(check.Valid)
	results[6].Status, results[6].Findings = check.Invalid, []check.Finding{lostUpdateFinding()}
	results[7].Status, results[7].Why = check.Invalid, fact.Unreadable{Problem: "not serializable, and so not strictly"}
	for _, wrong := range []bool{true, false} {
		r, want := driven(base("valid", "It is so.")), []string{}
		if wrong {
			results[0].Status, results[0].Why = check.Invalid, fact.Unreadable{Problem: "5.00 was made"}
			r, want = driven(base("invalid", "5.00 was made.")), []string{results[0].Name, check.Serializable}
			r.Cause = &Cause{Kind: "lost-updates", Check: check.Serializable, Finding: "lost-update", Anomaly: "lost update (P4)", Count: 1, Explains: []Consequence{}}
		} else {
			results[0].Status = check.Valid
		}
		r.Checks = Checks(results, speaker)
		failed := []string{}
		for _, c := range RunDocument(Input{Result: r}).Section(failedID).Checks {
			failed = append(failed, c.Name)
		}
		if !slices.Equal(failed, want) {
			t.Errorf("the checks %q stand below the verdict %s, not %q", failed, r.Verdict, want)
		}
		var b bytes.Buffer
		if err := Text(&b, r, Options{}); err != nil {
			t.Fatal(err)
		}
		drawing, figures := strings.Index(b.String(), "Drawing: violations/lost-update.svg"), strings.Index(b.String(), "Throughput")
		if wrong != (drawing >= 0 && drawing < figures) {
			t.Errorf("the drawing stands at %d and the figures at %d:\n%s", drawing, figures, b.String())
		}
	}
}

// speaker makes sentences without the nouns of a workload.
var speaker = checktext.Speaker{Words: check.Words{
	One: "transfer", Book: "ledger", Part: "leg",
	Amount: func(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) },
}}

// TestAllowedViolationsAreNotCalledWrong checks the heading above violations of which no required check speaks.
func TestAllowedViolationsAreNotCalledWrong(t *testing.T) {
	for status, want := range map[check.Status]string{check.Valid: "Violations that the claim allows", check.Invalid: "What is wrong"} {
		results := nine(check.Valid)
		results[0].Status, results[0].Why = status, fact.Unreadable{Problem: "5.00 was made"}
		r := base("", "")
		r.Checks, r.Violations = Checks(results, speaker), &Violations{File: "violations.jsonl", Lines: 9}
		if got := RunDocument(Input{Result: r}).Section(failedID).Title; got != want {
			t.Errorf("%v: the heading is %q, not %q", status, got, want)
		}
	}
}
