package run

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"stroppy/internal/report"
	"stroppy/internal/resource"
)

// TestClientIsTheBottleneckOnlyIfItWas checks that a late client is blamed only if neither it shared
// its processors with the database nor somebody else took them.
func TestClientIsTheBottleneckOnlyIfItWas(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	late := &report.Latency{P99: 12}
	busy := []report.Warning{{Kind: report.HostBusy}}
	shared := []report.Warning{{Kind: report.HostShared}}
	for name, c := range map[string]struct {
		host []report.Warning
		use  clientUse
		want []report.Warning
	}{
		"busy":           {nil, clientUse{cpu: 20, known: true}, []report.Warning{{Kind: report.ClientBusy, Processors: 2, Of: 2}}},
		"busy, embedded": {nil, clientUse{cpu: 20, embedded: true, known: true}, nil},
		"busy on a busy machine": {busy, clientUse{cpu: 20, known: true},
			[]report.Warning{{Kind: report.HostBusy}, {Kind: report.ClientBusy, Processors: 2, Of: 2}}},
		"one busy thread of two":         {nil, clientUse{cpu: 9, threads: 1, known: true}, []report.Warning{{Kind: report.ClientThreads, Processors: 0.9, Of: 1}}},
		"one idle thread of two":         {nil, clientUse{cpu: 5, threads: 1, known: true}, nil},
		"late":                           {nil, clientUse{pacing: late, known: true}, []report.Warning{{Kind: report.ClientLate, LateMS: 12}}},
		"late on a starved machine":      {busy, clientUse{pacing: late, known: true}, []report.Warning{{Kind: report.HostBusy, LateMS: 12}}},
		"late beside the servers":        {shared, clientUse{pacing: late, known: true}, []report.Warning{{Kind: report.HostShared, LateMS: 12}}},
		"late beside an embedded":        {nil, clientUse{pacing: late, embedded: true, known: true}, nil},
		"late on a machine not known":    {nil, clientUse{pacing: late}, nil},
		"on time":                        {nil, clientUse{pacing: &report.Latency{P99: 1}, known: true}, nil},
		"on time and without processors": {nil, clientUse{cpu: 1, known: true}, nil},
	} {
		c.use.seconds = 10
		got := clientWarnings(append([]report.Warning(nil), c.host...), c.use)
		if len(got) != len(c.want) || len(got) > 0 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		for i := range got {
			blamed := got[i].Kind == report.ClientBusy || got[i].Kind == report.ClientThreads || got[i].Kind == report.ClientLate
			if (got[i].Bottleneck() != "") != blamed {
				t.Errorf("%s: %q is said of %s", name, got[i].Bottleneck(), got[i].Kind)
			}
		}
	}
}

// second is an interval of a machine with two processors.
func second(n int, change func(*hostSecond)) hostSecond {
	s := hostSecond{resource.HostSample{
		From: time.Duration(n) * time.Second, To: time.Duration(n+1) * time.Second, Processors: 2,
		Busy: new(1.0), Steal: new(0.0), Pressure: new(0.01), RunQueue: new(1.0), Load: new(0.5),
		Waited: new(time.Millisecond), Ran: new(500 * time.Millisecond),
	}, new(0.05)}
	if change != nil {
		change(&s)
	}
	return s
}

func TestStarvedHostIsReported(t *testing.T) {
	busy := func(s *hostSecond) {
		s.Busy, s.outside, s.Pressure, s.Load = new(2.0), new(1.2), new(0.8), new(6.0)
		s.Waited = new(300 * time.Millisecond)
	}
	used := func(s *hostSecond) { busy(s); s.outside = new(0.05) }
	for name, c := range map[string]struct {
		change   func(*hostSecond)
		starved  int // seconds of ten
		unknown  bool
		together bool
		want     report.WarningKind
	}{
		"idle":                          {nil, 10, false, true, ""},
		"others":                        {busy, 10, false, false, report.HostBusy},
		"others for two seconds of ten": {busy, 2, false, false, report.HostBusy},
		"others who are nice":           {func(s *hostSecond) { busy(s); s.Waited = new(time.Millisecond) }, 10, false, false, ""},
		"others on free processors":     {func(s *hostSecond) { busy(s); s.Busy = new(1.5) }, 10, false, false, ""},
		"nobody waits":                  {func(s *hostSecond) { busy(s); s.Pressure = new(0.02) }, 10, false, false, ""},
		"no pressure file":              {func(s *hostSecond) { busy(s); s.Pressure, s.Waited, s.Ran = nil, nil, nil }, 10, false, false, report.HostBusy},
		"no file at all":                {func(s *hostSecond) { *s = hostSecond{resource.HostSample{From: s.From, To: s.To}, nil} }, 10, false, true, ""},
		"client and servers":            {used, 10, false, true, report.HostShared},
		"client alone":                  {used, 10, false, false, ""},
		"servers that are not measured": {busy, 10, true, true, report.HostFull},
		"steal":                         {func(s *hostSecond) { s.Steal = new(0.2) }, 10, false, false, report.HostSteal},
		"limit of the container":        {func(s *hostSecond) { s.Throttled, s.Stopped = new(0.5), new(time.Second) }, 10, false, false, report.HostThrottled},
		"a limit that is not met":       {func(s *hostSecond) { s.Throttled, s.Stopped = new(0.0), new(time.Duration) }, 10, false, false, ""},
	} {
		h := new(hostWatch)
		for n := range 10 {
			change := c.change
			if n >= c.starved {
				change = nil
			}
			h.samples = append(h.samples, second(n, change))
		}
		got := h.warnings(!c.unknown, c.together)
		switch {
		case c.want == "" && len(got) > 0, c.want != "" && (len(got) != 1 || got[0].Kind != c.want):
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		case c.want != "" && (got[0].Seconds != float64(c.starved) || got[0].OfSeconds != 10 || got[0].Text() == ""):
			t.Errorf("%s: %+v", name, got)
		}
		host := h.host(!c.unknown)
		if starved := c.want == report.HostBusy || c.want == report.HostSteal || c.want == report.HostThrottled; (host.StarvedSeconds > 0) != starved {
			t.Errorf("%s: starved for %v s", name, host.StarvedSeconds)
		}
		if name == "no file at all" && (host.BusyProcessors != nil || host.Steal != nil || host.LoadAverage != nil || h.runDelay() != nil) {
			t.Errorf("what is not known is %+v", host)
		}
	}
}

// TestHostOfOneSecond checks that a busy second of a minute is no starved host.
func TestHostOfOneSecond(t *testing.T) {
	h := new(hostWatch)
	for n := range 60 {
		h.samples = append(h.samples, second(n, func(s *hostSecond) {
			if n == 7 {
				s.Steal = new(0.5)
			}
		}))
	}
	if got := h.warnings(true, true); got != nil {
		t.Errorf("%+v", got)
	}
	if host := h.host(true); host.StarvedSeconds != 1 || host.Seconds != 60 || *host.Steal < 0.008 || *host.Steal > 0.009 {
		t.Errorf("%+v", host)
	}
}
