package session

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"stroppy/internal/exit"
	"stroppy/internal/fault"
	"stroppy/internal/live"
	"stroppy/internal/load"
	"stroppy/internal/run"
	"stroppy/internal/stats"
)

// hurtState is a drive in which everything that a line can report has happened.
func hurtState() run.State {
	return run.State{
		Done: 1_234_567, Elapsed: 12 * time.Second, Of: time.Minute, Clients: 16,
		Counters: load.Counters{Done: 1_234_567, Committed: 1_230_000, Rejected: 4321, Aborted: 17, Unknown: 2, Reconnecting: 3, Backlog: 1200, Shed: 40},
		Second:   &stats.Second{Second: 11, Committed: 12_345, P50: 812 * time.Microsecond, P99: 2400 * time.Microsecond, Max: 14 * time.Millisecond},
		Drive:    load.New(load.Options{}),
	}
}

// hurtNow is a snapshot of hurtState.
func hurtNow() live.Snapshot { return live.Snapshot{Phase: "drive", Latest: hurtState()} }

func TestProgressLineShowsTheRun(t *testing.T) {
	one := fault.Record{Injection: fault.Injection{Number: 1, Fault: "kill leader", Target: "n0", At: fault.Round(4)}}
	calm := hurtState()
	calm.Counters = load.Counters{Done: 1_234_567, Committed: 1_230_000, Rejected: 4321}
	for _, c := range []struct {
		name   string
		width  int
		state  run.State
		faults []fault.Record
		want   string
	}{
		{"calm", 79, calm, nil, "drive 48s left · 12.3k/s · p50 0.81 p99 2.4 max 14 ms · 1.23M ok · 4.32k rej"},
		{"calm, wide", 120, calm, nil, "drive     48s left · 12.3k/s · p50 0.81 p99 2.4 max 14 ms · 1.23M committed · 4.32k rejected"},
		{"calm, narrow", 39, calm, nil, "drive 48s · 12.3k/s · 0.81/2.4/14 ms"},
		{"hurt", 79, hurtState(), []fault.Record{one}, "drive 48s · 12.3k/s · 0.81/2.4/14 ms · ! kill leader · 3/16 lost · 40 shed"},
		{"hurt, narrow", 39, hurtState(), []fault.Record{one}, "drive 48s · 12.3k/s · ! kill leader"},
		{"two faults", 39, hurtState(), []fault.Record{one, one}, "drive 48s · ! kill leader and 1 more"},
		{"tiny", 5, hurtState(), nil, "drive"},
		{"nothing", 0, hurtState(), nil, ""},
	} {
		p := &progress{terminal: true}
		got := p.line(&live.Snapshot{Phase: "drive", Latest: c.state, Faults: c.faults}, time.Now(), c.width)
		if n := utf8.RuneCountInString(got); n > c.width {
			t.Errorf("%s: %q has %d characters, and there is room for %d", c.name, got, n, c.width)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestProgressLineFitsTheTerminal checks that no line is longer than its room. A line loses the least important
// parts first.
func TestProgressLineFitsTheTerminal(t *testing.T) {
	one := fault.Record{Injection: fault.Injection{Fault: strings.Repeat("very long fault ", 10)}}
	for width := range 200 {
		for _, faults := range [][]fault.Record{nil, {one}, {{Injection: fault.Injection{Fault: "kill n0\x1b[2J"}}, {Injection: fault.Injection{Fault: "pause\nn1"}}}} {
			for _, s := range []run.State{hurtState(), {}, {Done: 5, Total: 10}, {Drive: load.New(load.Options{})}} {
				p := &progress{terminal: true}
				line := p.line(&live.Snapshot{Phase: "drive", Latest: s, Faults: faults}, time.Now(), width)
				if n := utf8.RuneCountInString(line); n > width {
					t.Fatalf("%d characters: %q", width, line)
				}
				if strings.ContainsAny(line, "\x1b\n\r") {
					t.Fatalf("%q would move the cursor", line)
				}
				if width >= 30 && s.Of > 0 && !strings.Contains(line, "48s") {
					t.Fatalf("%d characters, and no time left: %q", width, line)
				}
			}
		}
	}
}

// TestProgressIsRedrawnAtOnce checks that all changed lines are written at once, over the old ones. A line that has not
// changed is not written.
func TestProgressIsRedrawnAtOnce(t *testing.T) {
	w := &writes{}
	p := &progress{out: w, terminal: true, width: func() int { return 40 }, now: hurtNow}
	now := time.Now()
	p.draw(now)
	p.draw(now)
	if len(*w) != 1 || !strings.HasPrefix((*w)[0], "\rdrive") || !strings.HasSuffix((*w)[0], "\x1b[K") {
		t.Errorf("drawn twice it wrote %q", *w)
	}
	p.Note("hello")
	if len(*w) != 2 || !strings.HasPrefix((*w)[1], "\r\x1b[Khello\ndrive") {
		t.Errorf("a note wrote %q", (*w)[1:])
	}
	p.erase()
	p.erase()
	if len(*w) != 3 || (*w)[2] != "\r\x1b[K" {
		t.Errorf("at the end it wrote %q", (*w)[2:])
	}
}

// writes are the texts of each write.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// TestProgressWithoutTerminalIsComplete checks that lines lose nothing if there is no terminal.
func TestProgressWithoutTerminalIsComplete(t *testing.T) {
	var out bytes.Buffer
	feed := live.NewFeed()
	p := &progress{out: &out, now: func() live.Snapshot {
		now := hurtNow()
		now.Faults = feed.Snapshot().Faults
		return now
	}}
	p.last = sample{at: time.Now().Add(-10 * time.Second), done: 1_130_000}
	s := &Session{Feed: feed, progress: p}
	s.Fault(fault.Record{Injection: fault.Injection{Number: 1, Fault: "kill leader", Target: "n0"}})
	p.draw(time.Now())
	text := out.String()
	for _, want := range []string{"48s left", "/s", "p50 0.81 p99 2.4 max 14 ms", "! kill leader", "3 of 16 clients reconnecting", "1.20k waiting", "40 shed", "1.23M committed", "4.32k rejected", "17 aborted", "2 unknown"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	if strings.ContainsAny(text, "\r\x1b") {
		t.Errorf("%q is not plain", text)
	}
	s.Fault(fault.Record{Injection: fault.Injection{Number: 1, Fault: "kill leader", Target: "n0", Healed: new(fault.Round(5))}})
	out.Reset()
	p.draw(time.Now())
	if text := out.String(); strings.Contains(text, "kill") {
		t.Errorf("a healed fault is in effect: %q", text)
	}
}

func TestSIPrefixesKeepThreeDigits(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 7: "7", 999.4: "999", 999.6: "1.00k", 1234: "1.23k", 12345: "12.3k", 99960: "100k", 123456: "123k", 999600: "1.00M", 1e6: "1.00M", 6.2e9: "6.20G"} {
		if got := si(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0.00", 512: "0.00", 12_345: "0.01", 999_000: "1.0", 9_960_000: "10", time.Second: "1000", 812_000: "0.81"} {
		if got := ms(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// TestOneAddressIsOneServer checks that one address is one server, which shows both.
func TestOneAddressIsOneServer(t *testing.T) {
	for _, c := range []struct {
		serve, metrics string
		servers        int
		fails          string
	}{
		{"", "", 0, ""}, {"8080", "", 1, ""}, {"", "8080", 1, ""}, {"8080", ":8080", 1, ""}, {"127.0.0.1:8080", "8080", 1, ""},
		{"8080", "8081", 2, ""}, {"0.0.0.0:8080", "8080", 2, ""}, {"x", "", 0, "--serve: "}, {"8080", "y", 0, "--metrics: "},
	} {
		var config Config
		config.Serve, config.Metrics = c.serve, c.metrics
		list, err := wantedServers(&config)
		if len(list) != c.servers || (err == nil) != (c.fails == "") || err != nil && !strings.HasPrefix(err.Error(), c.fails) {
			t.Errorf("--serve %q --metrics %q: %v, %v", c.serve, c.metrics, list, err)
		}
	}
	if _, err := (&App{}).OpenLive(&Config{}); err != nil {
		t.Error(err)
	}
	none := &liveServers{Feed: live.NewFeed()}
	none.End("nowhere")
	none.Fail("nothing")
	none.Close()
	var code *exit.Error
	bad := &Config{}
	bad.Serve = "nonsense"
	if _, err := (&App{}).OpenLive(bad); !errors.As(err, &code) || code.Code != exit.Usage {
		t.Errorf("a wrong address is %v", err)
	}
}
