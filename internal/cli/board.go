package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"stroppy/internal/live"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/scenario"
)

// board shows runs while they go on to those who look from outside, if anybody
// was asked to. The nil board shows nothing.
type board struct {
	feed    *live.Feed
	servers []*live.Server
	serving sync.WaitGroup
}

// openBoard listens where the configuration says. It is called before anything
// is started, so that an address that cannot be had costs nothing.
func (a *app) openBoard(c *config) (*board, error) {
	if c.Serve == "" && c.Metrics == "" {
		return nil, nil
	}
	b := &board{feed: live.NewFeed()}
	wanted, err := wantedServers(c)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	for _, w := range wanted {
		w.options.Version = version()
		server, err := live.Listen(b.feed, w.address, w.options)
		if err != nil {
			b.close()
			return nil, &exitError{exitUsage, fmt.Errorf("%s: %w", w.flag, err)}
		}
		b.servers = append(b.servers, server)
	}
	return b, nil
}

// wantedServer is one that the configuration asks for.
type wantedServer struct {
	flag, address string
	options       live.Options
}

// wantedServers are one for the page and one for the metrics, or one for both
// where both have one address.
func wantedServers(c *config) ([]wantedServer, error) {
	var list []wantedServer
	if c.Serve != "" {
		address, err := live.Address(c.Serve)
		if err != nil {
			return nil, fmt.Errorf("--serve: %w", err)
		}
		list = append(list, wantedServer{"--serve", address, live.Options{Page: true}})
	}
	if c.Metrics != "" {
		address, err := live.Address(c.Metrics)
		if err != nil {
			return nil, fmt.Errorf("--metrics: %w", err)
		}
		if len(list) > 0 && list[0].address == address {
			list[0].options.Metrics = true
			return list, nil
		}
		list = append(list, wantedServer{"--metrics", address, live.Options{Metrics: true}})
	}
	return list, nil
}

// open begins to serve and tells where.
func (b *board) open(note func(format string, args ...any)) {
	if b == nil {
		return
	}
	for _, s := range b.servers {
		b.serving.Go(s.Serve)
		if o := s.Options(); o.Page {
			note("live report on http://%s/", s.Address())
		}
		if o := s.Options(); o.Metrics {
			note("metrics on http://%s/metrics", s.Address())
		}
		if !s.Loopback() {
			note("whoever reaches %s can read them: there is no password", s.Address())
		}
	}
}

// end shows the report that the run in dir has left, to those who look, and
// stops serving.
func (b *board) end(dir string, notes ...string) {
	if b == nil {
		return
	}
	if in, err := run.PageInput(dir); err != nil {
		b.feed.Break(err.Error())
	} else {
		where := "`stroppy report " + scenario.Quote(dir) + "` makes a file of it."
		if page := filepath.Join(dir, report.PageName); exists(page) {
			where = "The same report is in " + page + "."
		}
		b.feed.End(in, append(notes, "The run is over: this page is updated no longer, and Stroppy serves it no longer. "+where)...)
	}
	b.close()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fail tells those who look why there is no report, and stops serving.
func (b *board) fail(why string) {
	if b == nil {
		return
	}
	b.feed.Break(why)
	b.close()
}

// close stops serving.
func (b *board) close() {
	if b == nil {
		return
	}
	for _, s := range b.servers {
		s.Close()
	}
	b.serving.Wait()
}
