package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"stroppy/internal/fault"
)

// TestCurvesOfAClosedLoop checks that transactions sent at their intended start times have one curve.
func TestCurvesOfAClosedLoop(t *testing.T) {
	d := &Drive{Histogram: distribution(1100, 40, 5000)}
	d.ServiceTimes = d.Histogram
	if h := histogram(d); h == nil || len(h.Sent) != 0 {
		t.Errorf("a closed loop has %+v", h)
	}
	if d.Rate = 100; len(histogram(d).Sent) == 0 {
		t.Error("an open loop has no curve since sent")
	}
}

// TestUnaskedCheckIsOnlyInJSON checks that a check that has nothing to check, because the run was to have none of it,
// is in result.json alone.
func TestUnaskedCheckIsOnlyInJSON(t *testing.T) {
	for share, shown := range map[string]bool{"0": false, "0.05": true} {
		r := base("valid", "It is so.")
		r.Scenario = append(r.Scenario, Setting{"scan-share", share})
		r.Checks = append(r.Checks, Check{Name: "scans", Status: notApplicable, Required: true, Detail: "No scan was made."})
		var text bytes.Buffer
		if err := Text(&text, r, Options{Detail: Full}); err != nil {
			t.Fatal(err)
		}
		checks, err := json.Marshal(RunDocument(Input{Result: r}).Section(checksID).Checks)
		if err != nil {
			t.Fatal(err)
		}
		for _, where := range []string{text.String(), string(checks)} {
			if strings.Contains(where, "No scan was made") != shown {
				t.Errorf("with the share %s it is shown: %v: %s", share, !shown, where)
			}
		}
		data, err := r.JSON()
		if err != nil || !bytes.Contains(data, []byte("No scan was made")) {
			t.Errorf("result.json does not have it: %v", err)
		}
	}
}

// TestNotKnownOnlyIfExpected checks that "not known" stands only at figures that should be known. A database without a
// footprint and a run that goes on lack the figure instead.
func TestNotKnownOnlyIfExpected(t *testing.T) {
	r := driven(base("valid", "It is so."))
	r.FootprintBytes, r.FootprintTransfers = nil, nil
	footprint := func(live bool) string { return settingOf(facts(r, live), "Footprint") }
	if got := footprint(false); got != NotKnown {
		t.Errorf("the footprint is %q", got)
	}
	if got := footprint(true); got != "" {
		t.Errorf("while it runs the footprint is %q", got)
	}
	if r.NoFootprint = true; footprint(false) != "" {
		t.Errorf("of a database that cannot report one the footprint is %q", footprint(false))
	}

	r.Drive.Rate, r.Drive.Seconds = 100, 60
	r.Drive.Interval, r.Drive.Service, r.Drive.Pacing, r.Drive.Steady = nil, nil, nil, nil
	r.Faults = []fault.Record{{Injection: fault.Injection{Number: 1, Fault: "kill leader", Target: "n0", At: fault.Round(3)}}}
	for _, measured := range []bool{true, false} {
		if !measured {
			r.Drive.Latency, r.Drive.TPS = nil, nil
		}
		d := RunDocument(Input{Result: r, Live: true})
		shown, err := json.Marshal([]any{d.Section("figures").Figures, d.Section("percentiles").Tables, d.Section("faults").Tables})
		if err != nil || bytes.Contains(shown, []byte(NotKnown)) {
			t.Errorf("while it runs it shows %s, %v", shown, err)
		}
		if measured != (len(d.Section("percentiles").Tables) > 0) || !measured && len(d.Section("figures").Figures) != 1 {
			t.Errorf("measured %v: %+v, %+v", measured, d.Section("figures").Figures, d.Section("percentiles").Tables)
		}
	}
}
