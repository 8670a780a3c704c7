package run

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/report"
)

// says returns a fact whose sentence is the text.
func says(text string) fact.Fact { return fact.Unreadable{Problem: text} }

func lines(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, ViolationsFile))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// TestViolationsOfInvalidChecksAlone checks that violations of an undecided check are in no file, and that an invalid
// check without a transaction has a line. Nothing else may be left in the directory.
func TestViolationsOfInvalidChecksAlone(t *testing.T) {
	dir := recording(t, 1, 10, nil)
	o := checking(t, []string{dir}, nil)
	o.Spec.Check = func(_ context.Context, _ []string, _ isolation.Level, report func(check.Violation)) (check.Checked, error) {
		report(check.Violation{Check: check.Ledger, Fact: says("found before the file was seen to be damaged")})
		for n := range uint64(10_000) {
			report(check.Violation{Check: check.Durable, Transaction: history.NewID(1, 0, n), Fact: says("lost")})
			report(check.Violation{Check: check.Serializable, Anomaly: "a <b>", Transaction: history.NewID(1, 0, n), Account: "X/1", Fact: says("w")})
		}
		return check.Checked{Results: []check.Result{
			{Name: check.Total, Status: check.Invalid, Required: true, Why: says("0.07 was made")},
			{Name: check.Ledger, Required: true},
			{Name: check.Durable, Status: check.Invalid, Required: true},
			{Name: check.Serializable, Status: check.Invalid},
		}}, nil
	}
	r, err := Check(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got := lines(t, dir)
	if r.Violations == nil || r.Violations.Lines != 9_999 || r.Violations.More != 10_002 || len(got) != 9_999 {
		t.Fatalf("%d lines, and the result says %+v", len(got), r.Violations)
	}
	if want := []report.ViolationsOf{{Check: check.Total, Found: 1, Lines: 1}, {Check: check.Durable, Found: 10_000, Lines: 4999}, {Check: check.Serializable, Found: 10_000, Lines: 4999}}; !slices.Equal(r.Violations.Checks, want) {
		t.Errorf("of the checks it says %+v", r.Violations.Checks)
	}
	for n, want := range map[int]string{
		0:     `{"check":"total","anomaly":null,"transaction":null,"account":null,"what":"0.07 was made.","file":null,"offset":null,"record":null}`,
		2:     `{"check":"durable","anomaly":null,"transaction":"1-0-1","account":null,"what":"lost","kind":"unreadable","fact":{"problem":"lost"},"file":"history/transactions.bin","offset":`,
		9_998: `{"check":"serializable","anomaly":"a <b>","transaction":"1-0-4998","account":"X/1","what":"w","kind":"unreadable","fact":{"problem":"w"},"file":null,"offset":null,"record":null}`,
	} {
		if !strings.HasPrefix(got[n], want) {
			t.Errorf("line %d is %s, not %s", n, got[n], want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s is left", e.Name())
		}
	}
	o.Spec.Check = allValid
	if r, err = Check(t.Context(), o); err != nil || r.Violations != nil {
		t.Errorf("%+v, %v", r.Violations, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ViolationsFile)); err == nil {
		t.Error("the violations of an earlier check are still there")
	}
}

// TestViolationsWithinBytes checks that long texts do not make the file larger than its bound. Each anomaly must be
// in it, omissions are counted, and a text that is too long is cut.
func TestViolationsWithinBytes(t *testing.T) {
	dir := recording(t, 1, 10, nil)
	o := checking(t, []string{dir}, nil)
	long := strings.Repeat("<\x01é", 1500)
	o.Spec.Check = func(_ context.Context, _ []string, _ isolation.Level, report func(check.Violation)) (check.Checked, error) {
		for n := range uint64(9_000) {
			report(check.Violation{Check: check.Serializable, Anomaly: "G1c", Transaction: history.NewID(1, 0, n), Fact: says(long)})
		}
		report(check.Violation{Check: check.Serializable, Anomaly: "G2", Fact: says(strings.Repeat("é", 1<<20))})
		report(check.Violation{Check: check.Durable, Transaction: history.NewID(1, 0, 1), Fact: says("lost")})
		return check.Checked{Results: []check.Result{
			{Name: check.Durable, Status: check.Invalid, Required: true, Why: says("d")},
			{Name: check.Serializable, Status: check.Invalid, Required: true, Why: says("d")},
		}}, nil
	}
	r, err := Check(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, ViolationsFile))
	if err != nil {
		t.Fatal(err)
	}
	if size := info.Size(); size > mostViolationBytes || size < mostViolationBytes/2 {
		t.Errorf("the file has %d bytes, and its bound is %d", size, mostViolationBytes)
	}
	got := lines(t, dir)
	if r.Violations.Lines != uint64(len(got)) || r.Violations.Lines+r.Violations.More != 9_002 {
		t.Errorf("%d lines, and the result says %+v", len(got), r.Violations)
	}
	if !strings.Contains(got[0], `"what":"lost"`) {
		t.Errorf("the first line is %s", got[0])
	}
	last := got[len(got)-1]
	if !strings.Contains(last, `"anomaly":"G2"`) || len(last) > mostViolationText+512 || !strings.Contains(last, "é … (2,080,768 bytes more)") {
		t.Errorf("the last line has %d bytes: …%s", len(last), last[max(0, len(last)-120):])
	}
}

// TestViolationsThatCannotBeKept checks that the verdict stands, and that they were not kept
// is reported.
func TestViolationsThatCannotBeKept(t *testing.T) {
	dir := recording(t, 1, 10, nil)
	if err := os.Mkdir(filepath.Join(dir, ViolationsFile), 0o777); err != nil {
		t.Fatal(err)
	}
	o := checking(t, []string{dir}, func(context.Context, []string, isolation.Level, func(check.Violation)) (check.Checked, error) {
		return check.Checked{Results: []check.Result{{Name: check.Total, Status: check.Invalid, Required: true, Why: says("d")}}}, nil
	})
	r, err := Check(t.Context(), o)
	if _, ok := err.(*UnsavedError); !ok || r.Verdict != "invalid" || r.Violations != nil {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestUnclaimedViolationIsReported checks that the first sentence of a valid verdict reports violations that are not
// claimed.
func TestUnclaimedViolationIsReported(t *testing.T) {
	result := func(name string, status check.Status, required bool) check.Result {
		return check.Result{Name: name, Status: status, Required: required}
	}
	for _, tc := range []struct {
		results []check.Result
		says    string
	}{
		{[]check.Result{result(check.Serializable, check.Valid, true), result(check.Strict, check.Valid, false)}, "(claim: read-committed)."},
		{[]check.Result{result(check.Strict, check.Unknown, false)}, "(claim: read-committed)."},
		{[]check.Result{result(check.Serializable, check.Invalid, false), result(check.Strict, check.Invalid, false)}, "; the history was not serializable, which the claim does not forbid."},
		{[]check.Result{result(check.Strict, check.Invalid, false), result(check.Audits, check.Invalid, false)}, "; the history was not strictly serializable and failed the check audits, which the claim does not forbid."},
	} {
		r := new(report.Result)
		c := &conductor{result: r, expect: isolation.ReadCommitted}
		c.decide(append(tc.results, result(check.Total, check.Valid, true)), 7, "")
		if r.Verdict != "valid" || !strings.HasSuffix(r.Reason, tc.says) {
			t.Errorf("%q does not end in %q", r.Reason, tc.says)
		}
	}
}

// TestRecordingOfAnotherLoadIsRefused checks that a recording is checked against its own load.
func TestRecordingOfAnotherLoadIsRefused(t *testing.T) {
	now := history.Header{LoadID: "A", Run: 5, Seed: 1, Objects: 10} // four have been
	for name, tc := range map[string]struct {
		bend func(h *history.Header)
		says string
	}{
		"its own":      {func(*history.Header) {}, ""},
		"another load": {func(h *history.Header) { h.LoadID = "B" }, "another load"},
		"older":        {func(h *history.Header) { h.LoadID = "" }, "another load"},
		"seed":         {func(h *history.Header) { h.Seed = 2 }, "seed 2"},
		"accounts":     {func(h *history.Header) { h.Objects = 12 }, "size 12"},
		"run":          {func(h *history.Header) { h.Run = 5 }, "has had 4 runs"},
	} {
		h := now
		h.Run = 4
		tc.bend(&h)
		err := sameLoad(h, now)
		if (err == nil) != (tc.says == "") || err != nil && (!strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "stroppy load")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := history.Header{Run: 5, Seed: 1, Objects: 10}
	if err := sameLoad(history.Header{Run: 4, Seed: 1, Objects: 10}, plain); err != nil {
		t.Errorf("two that have no id: %v", err)
	}
}
