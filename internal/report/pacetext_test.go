package report

import (
	"bytes"
	"strings"
	"testing"
)

func TestWhoCouldNotFollow(t *testing.T) {
	d := &Drive{Rate: 1000, Backlog: 101}
	busy := []Warning{{Kind: HostBusy}}
	for want, r := range map[string]*Result{
		"The database could not":      {Warnings: []Warning{{Kind: HostShared}, {Kind: ClosedLoop}}},
		"This client could not":       {Client: &Client{Bottleneck: "it used both processors"}, Warnings: busy},
		"This starved host could not": {Warnings: busy, Client: &Client{}},
	} {
		if got := d.backlogText(r.follower()); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", want, got)
		}
	}
}

// TestBehindIsAWarning checks that the page warns of a load phase that did not follow its rate. It only notes
// a short pause.
func TestBehindIsAWarning(t *testing.T) {
	for _, c := range []struct {
		drive  Drive
		behind bool
	}{
		{Drive{Rate: 1000, Backlog: 90}, false}, {Drive{Rate: 1000, Backlog: 101}, true}, {Drive{Rate: 10, Clients: 64, Backlog: 30}, false},
		{Drive{Rate: 10_000, Clients: 4, Backlog: 900}, false}, {Drive{Rate: 1000, Backlog: 1, Shed: 5}, true}, {Drive{Rate: 100, Clients: 64, Backlog: 65}, true},
	} {
		for _, why := range []string{"", "it used both processors"} {
			client, n := &Client{Bottleneck: why}, &Notes{}
			follower := (&Result{Client: client}).follower()
			n.loadPhase(&c.drive, follower, nil)
			shown := n.others
			if c.behind {
				shown = n.warnings
			}
			var out bytes.Buffer
			if err := Text(&out, &Result{Verdict: "valid", Drive: &c.drive, Client: client}, Options{Detail: Full}); err != nil {
				t.Fatal(err)
			}
			said := c.drive.backlogText(follower)
			if len(n.All()) != 1 || len(shown) != 1 || !strings.HasPrefix(shown[0].Text, said) || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), said) {
				t.Errorf("%+v, bottleneck %q: the page notes %v, the text says\n%s", c.drive, why, n.All(), &out)
			}
			if follow := strings.Contains(said, " could not follow the rate"); follow != c.behind || follow && strings.HasPrefix(said, "This client") != (why != "") {
				t.Errorf("%+v, bottleneck %q: %s", c.drive, why, said)
			}
		}
	}
}

// TestLiveCheckThatDidNotKeepUp checks that a report names the transactions that were checked after the run alone.
func TestLiveCheckThatDidNotKeepUp(t *testing.T) {
	for _, c := range []struct {
		check *LiveCheck
		want  string
	}{
		{nil, ""}, {&LiveCheck{Checked: 10}, ""},
		{&LiveCheck{Checked: 7000, Skipped: 3000}, "did not keep up: it left out 3,000 of 10,000 transactions, which were checked after the run alone."},
	} {
		var n Notes
		n.loadPhase(&Drive{LiveCheck: c.check}, "", nil)
		if all := n.All(); (len(all) > 0) != (c.want != "") || len(all) > 0 && !strings.HasSuffix(all[0].Text, c.want) {
			t.Errorf("%+v: %v", c.check, all)
		}
	}
}

func TestTextDescribesThePace(t *testing.T) {
	for _, c := range []struct {
		drive Drive
		want  []string
		not   string
	}{
		{Drive{}, []string{"closed loop"}, "between two"},
		{Drive{ThinkSeconds: 0.5, Arrival: "poisson"}, []string{"closed loop, 500 ms between two transactions of a client in the mean"}, "open"},
		{Drive{Rate: 1000, RatePlan: "1000", Arrival: "uniform", Backlog: 90}, []string{"open loop at 1,000/s", "due, but not started when the load phase ended"}, "could not follow"},
		{Drive{Rate: 1000, Backlog: 101}, []string{"The database could not follow the rate of 1,000/s: 101 were due and not started when the load phase ended."}, "waited"},
		{Drive{Rate: 10, Clients: 64, Backlog: 30}, []string{"due, but not"}, "could not"},
		{
			Drive{Rate: 1500, RatePlan: "1000 for 30s, 2000 for 30s", Arrival: "poisson", Backlog: 1, Shed: 20_000, MaxBacklog: 1000},
			[]string{
				"open loop at 1000 for 30s, 2000 for 30s per second, Poisson arrivals",
				"the rate of 1000 for 30s, 2000 for 30s: 1 was due and not started when the load phase ended, up to 1,000 waited at once, and 20,000 were never sent because the queue was full.",
			}, "closed",
		},
		{Drive{Rate: 10, Pacing: &Latency{P50: 0.05, P99: 0.4, Max: 12}, Latency: &Latency{}, Service: &Latency{}}, []string{"pacing error 0.000 0.050 0.000 0.000 0.400 0.000 12.0"}, "longer than an hour"},
		{Drive{Clipped: 1, Latency: &Latency{}, Service: &Latency{}}, []string{"1 was longer than an hour"}, "pacing error"},
	} {
		var out bytes.Buffer
		if err := Text(&out, &Result{Verdict: "valid", Drive: &c.drive}, Options{Detail: Full}); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%+v: %q is missing in\n%s", c.drive, want, &out)
			}
		}
		if strings.Contains(text, c.not) {
			t.Errorf("%+v: %q is in\n%s", c.drive, c.not, &out)
		}
	}
}
