package cli

import (
	"os"
	"path/filepath"
	"sync"

	"stroppy/internal/live"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
)

// liveServers show the runs of a feed to those who watch from outside. There may be none.
type liveServers struct {
	feed    *live.Feed
	servers []*live.Server
	serving sync.WaitGroup
}

// openLive listens where the configuration says. It is called before anything
// is started, so that an address that cannot be had costs nothing.
func (a *app) openLive(c *config) (*liveServers, error) {
	wanted, err := wantedServers(c)
	if err != nil {
		return nil, err
	}
	l := &liveServers{feed: live.NewFeed()}
	for _, w := range wanted {
		server, err := live.Listen(l.feed, w.address, w.options)
		if err != nil {
			l.close()
			return nil, usagef("--%s: %w", w.flag, err)
		}
		l.servers = append(l.servers, server)
	}
	return l, nil
}

type wantedServer struct {
	flag, address string
	options       live.Options
}

// wantedServers are one for the page and one for the metrics, or one for both.
func wantedServers(c *config) (list []wantedServer, err error) {
	for _, w := range []wantedServer{
		{"serve", c.Serve, live.Options{Page: true, Version: version()}},
		{"metrics", c.Metrics, live.Options{Metrics: true, Version: version()}},
	} {
		if w.address == "" {
			continue
		}
		if w.address, err = live.Address(w.address); err != nil {
			return nil, usagef("--%s: %w", w.flag, err)
		}
		if len(list) > 0 && list[0].address == w.address {
			list[0].options.Metrics = true
		} else {
			list = append(list, w)
		}
	}
	return list, nil
}

// open begins to serve and reports where.
func (l *liveServers) open(note func(format string, args ...any)) {
	for _, s := range l.servers {
		l.serving.Go(s.Serve)
		if s.Page {
			note("live report on http://%s/", s.Address())
		}
		if s.Metrics {
			note("metrics on http://%s/metrics", s.Address())
		}
		if !s.Loopback() {
			note("whoever reaches %s can read them: there is no password", s.Address())
		}
	}
}

// end shows the report that the run in dir has left, and stops serving.
func (l *liveServers) end(dir string, notes ...string) {
	if len(l.servers) == 0 {
		return
	}
	if in, err := run.PageInput(dir); err != nil {
		l.feed.Break(err.Error())
	} else {
		where := "`stroppy report " + scenario.Quote(dir) + "` makes a file of it."
		page := filepath.Join(dir, report.PageName)
		if _, err := os.Stat(page); err == nil {
			where = "The same report is in " + page + "."
		}
		l.feed.End(in, append(notes, "The run is over: this page is updated no longer, and Stroppy serves it no longer. "+where)...)
	}
	l.close()
}

// fail shows why there is no report, and stops serving.
func (l *liveServers) fail(why string) {
	l.feed.Break(why)
	l.close()
}

func (l *liveServers) close() {
	for _, s := range l.servers {
		s.Close()
	}
	l.serving.Wait()
}
