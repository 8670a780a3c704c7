package session

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"stroppy/internal/exit"
	"stroppy/internal/fault"
	"stroppy/internal/live"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
)

// liveServers serves the live page and the metrics. There may be no server.
type liveServers struct {
	Feed    *live.Feed
	servers []*live.Server
	serving sync.WaitGroup
}

// OpenLive listens at the configured addresses. Call it before anything is started, because it fails if an address is
// in use.
func (a *App) OpenLive(c *Config) (*liveServers, error) {
	wanted, err := wantedServers(c)
	if err != nil {
		return nil, err
	}
	l := &liveServers{Feed: live.NewFeed()}
	for _, w := range wanted {
		server, err := live.Listen(l.Feed, w.address, w.options)
		if err != nil {
			l.Close()
			return nil, exit.Usagef("--%s: %w", w.flag, err)
		}
		l.servers = append(l.servers, server)
	}
	return l, nil
}

type wantedServer struct {
	flag, address string
	options       live.Options
}

// wantedServers returns the configured servers: for the page, for the metrics, or one for both.
func wantedServers(c *Config) (list []wantedServer, err error) {
	for _, w := range []wantedServer{
		{"serve", c.Serve, live.Options{Page: true, Version: registry.Version()}},
		{"metrics", c.Metrics, live.Options{Metrics: true, Version: registry.Version()}},
	} {
		if w.address == "" {
			continue
		}
		if w.address, err = live.Address(w.address); err != nil {
			return nil, exit.Usagef("--%s: %w", w.flag, err)
		}
		if len(list) > 0 && list[0].address == w.address {
			list[0].options.Metrics = true
		} else {
			list = append(list, w)
		}
	}
	return list, nil
}

// Open starts to serve and notes the addresses.
func (l *liveServers) Open(note func(format string, args ...any)) {
	for _, s := range l.servers {
		l.serving.Go(s.Serve)
		if s.Page {
			note("live report on http://%s/", s.Address())
		}
		if s.Metrics {
			note("metrics on http://%s/metrics", s.Address())
		}
		if !s.Loopback() {
			note("anyone who reaches %s can read them: there is no password", s.Address())
		}
	}
}

// End shows the report of the run in dir and stops serving.
func (l *liveServers) End(dir string, notes ...string) {
	if len(l.servers) == 0 {
		return
	}
	if in, err := run.PageInput(dir); err != nil {
		l.Feed.Break(err.Error())
	} else {
		where := "`stroppy report " + scenario.Quote(dir) + "` makes a file of it."
		page := filepath.Join(dir, report.PageName)
		if _, err := os.Stat(page); err == nil {
			where = "The same report is in " + page + "."
		}
		l.Feed.End(in, append(notes, "The run is over: this page is updated no longer, and Stroppy serves it no longer. "+where)...)
	}
	l.Close()
}

// Fail shows the reason for a missing report and stops serving.
func (l *liveServers) Fail(why string) {
	l.Feed.Break(why)
	l.Close()
}

func (l *liveServers) Close() {
	for _, s := range l.servers {
		s.Close()
	}
	l.serving.Wait()
}

// part is a part of the progress line in its full and its brief form.
type part struct {
	full, brief string
	weight      int // the part with the least weight is shortened first
}

// fit returns a line of the parts with at most width characters. It shortens parts, and then omits parts, in the order
// of their weights.
func fit(lead string, parts []part, width int) string {
	texts := make([]string, len(parts))
	lightest := make([]int, len(parts)) // first
	for i, p := range parts {
		texts[i], lightest[i] = p.full, i
	}
	slices.SortStableFunc(lightest, func(a, b int) int { return parts[a].weight - parts[b].weight })
	line := func() string {
		there := slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == "" })
		return strings.TrimRight(lead+" "+strings.Join(there, " · "), " ")
	}
	for _, shorten := range []func(part) string{func(p part) string { return p.brief }, func(part) string { return "" }} {
		for _, i := range lightest {
			if utf8.RuneCountInString(line()) > width {
				texts[i] = shorten(parts[i])
			}
		}
	}
	runes := []rune(line())
	return string(runes[:min(len(runes), max(width, 0))])
}

// driveParts returns the parts of the progress line during the load phase. rate is the number of transactions committed
// in the last second.
func driveParts(s run.State, rate float64, faults []fault.Record, elapsed time.Duration) []part {
	var parts []part
	add := func(weight int, full, brief string) { parts = append(parts, part{full, brief, weight}) }
	count := func(n uint64, weight int, full, brief string) {
		if n > 0 {
			add(weight, si(float64(n))+" "+full, si(float64(n))+" "+brief)
		}
	}
	if left, known := left(s, elapsed); known {
		text := left.Round(time.Second).String()
		add(90, text+" left", text)
	}
	add(80, si(rate)+"/s", si(rate)+"/s")
	if s.Second != nil && s.Second.Committed > 0 {
		p50, p99, most := ms(s.Second.P50), ms(s.Second.P99), ms(s.Second.Max)
		add(60, "p50 "+p50+" p99 "+p99+" max "+most+" ms", p50+"/"+p99+"/"+most+" ms")
	}
	if text := faultText(faults); text != "" {
		add(85, text, text)
	}
	c := s.Counters
	if c.Reconnecting > 0 {
		add(70, fmt.Sprintf("%d of %d clients reconnecting", c.Reconnecting, s.Clients), fmt.Sprintf("%d/%d lost", c.Reconnecting, s.Clients))
	}
	count(c.Backlog, 50, "waiting", "late")
	count(c.Shed, 55, "shed", "shed")
	add(30, si(float64(c.Committed))+" committed", si(float64(c.Committed))+" ok")
	count(c.Rejected, 10, "rejected", "rej")
	count(c.Aborted, 20, "aborted", "abr")
	count(c.Unknown, 40, "unknown", "unk")
	return parts
}

// faultText names the latest active fault and counts the others.
func faultText(faults []fault.Record) string {
	active := slices.DeleteFunc(slices.Clone(faults), func(f fault.Record) bool { return !f.Active() })
	if len(active) == 0 {
		return ""
	}
	last := active[len(active)-1]
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, "! "+last.Fault)
	if more := len(active) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// si writes a number with three digits and its power of a thousand.
func si(x float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if x >= unit.size*0.9995 {
			return digits(x/unit.size, 3) + unit.name
		}
	}
	return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
}

// ms writes a time in milliseconds with two digits, and whole ones from ten on.
func ms(d time.Duration) string { return digits(float64(d)/float64(time.Millisecond), 2) }

// digits writes a number with n digits and all of its whole ones, at most two of them decimals.
func digits(x float64, n int) string {
	decimals := 2
	for decimals > 0 && x >= math.Pow10(n-decimals)-math.Pow10(-decimals)/2 {
		decimals--
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}
