//go:build !embedded

package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"stroppy/internal/report"
)

// lingering is the time for which the final state is shown to browsers, which poll every second.
const lingering = 2500 * time.Millisecond

// Server shows a feed over HTTP until it is closed.
type Server struct {
	Options
	feed     *Feed
	listener net.Listener
	http     http.Server
	named    string // the host that the user named; empty if every name is accepted
	started  string // distinguishes this server's data from another server's at the same address
	asked    atomic.Int64
	close    sync.Once

	mu      sync.Mutex
	version uint64 // of data
	data    []byte // the page's data as JSON
}

// Listen listens on an address returned by Address. It serves nothing before Serve.
func Listen(feed *Feed, address string, o Options) (*Server, error) {
	var metrics http.Handler
	if o.Metrics {
		metrics = metricsHandler(feed, o.Version)
	}
	listener, err := net.Listen("tcp", address)
	for code, why := range map[syscall.Errno]string{
		syscall.EADDRINUSE:    "the port is in use: name another one, or 0 for any that is free",
		syscall.EACCES:        "the system does not allow it: name a port from 1024 on",
		syscall.EADDRNOTAVAIL: "that is no address of this machine: name one of its own, or a port alone",
	} {
		if errors.Is(err, code) {
			return nil, fmt.Errorf("listen on %s: %s", address, why)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: name another address", address, err)
	}
	s := &Server{feed: feed, Options: o, listener: netutil.LimitListener(listener, 128), started: strconv.FormatInt(time.Now().UnixNano(), 36)}
	if host, _, err := net.SplitHostPort(address); err == nil && s.Loopback() {
		s.named = host
	}
	// Readers poll once a second or less often.
	s.http = http.Server{
		Handler: s.handler(metrics), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0), // what a reader does wrong is no news of the run
	}
	return s, nil
}

// Serve answers requests until the server is closed.
func (s *Server) Serve() { _ = s.http.Serve(s.listener) } // it always ends with an error: that it was closed

// Address returns the listening address with its port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Loopback reports whether only this machine can reach the server.
func (s *Server) Loopback() bool {
	address, ok := s.listener.Addr().(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

// Close stops listening. It first shows the final state, if there is one, to current readers of the page, for
// a short time.
func (s *Server) Close() {
	s.close.Do(func() {
		if now := s.feed.Snapshot(); now.Over() && time.Since(time.Unix(0, s.asked.Load())) < lingering {
			time.Sleep(lingering)
		}
		limited, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		if s.http.Shutdown(limited) != nil {
			_ = s.http.Close() // readers that are slow lose their connection
		}
		_ = s.listener.Close() // Serve may not have been called
	})
}

// handler returns the handler for all requests; metrics is nil if they are disabled.
func (s *Server) handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	if s.Page {
		mux.HandleFunc("/{$}", s.page)
		mux.HandleFunc("/"+report.LiveData, s.answerData)
		// Browsers request it automatically and would report a 404.
		mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	if metrics != nil {
		mux.Handle("/metrics", metrics)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for name, value := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Content-Security-Policy": "frame-ancestors 'none'", // the page sets its own policy
			"Cache-Control":           "no-cache",
		} {
			h.Set(name, value)
		}
		switch {
		case !s.knows(r.Host):
			http.Error(w, "This server is not known by that name.", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "Here is nothing but to read.", http.StatusMethodNotAllowed)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// knows reports whether a reader may use this host name for the server. A page of another site whose name
// resolves to this machine must not read what only this machine can reach.
func (s *Server) knows(host string) bool {
	if s.named == "" {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || strings.EqualFold(name, "localhost") || strings.EqualFold(name, s.named)
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	s.asked.Store(time.Now().UnixNano())
	now := s.feed.Snapshot()
	var page bytes.Buffer
	if err := now.data().WritePage(&page); err != nil {
		http.Error(w, "The page could not be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page.Bytes()))
}

// answerData answers with the page's current data, or states that nothing has changed.
func (s *Server) answerData(w http.ResponseWriter, r *http.Request) {
	s.asked.Store(time.Now().UnixNano())
	version, data, err := s.current(r)
	if err != nil {
		http.Error(w, "The data of the page could not be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("ETag", s.tag(version))
	w.Header().Set("Content-Type", "application/json")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func (s *Server) tag(version uint64) string {
	return `"` + s.started + "-" + strconv.FormatUint(version, 10) + `"`
}

// current returns the data of the current version, which is built once for all readers. It builds nothing for
// a reader that has the version.
func (s *Server) current(r *http.Request) (version uint64, data []byte, err error) {
	now := s.feed.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("If-None-Match") == s.tag(now.Version) {
		return now.Version, nil, nil
	}
	if s.version < now.Version {
		if s.data, err = json.Marshal(now.data()); err != nil {
			return 0, nil, err
		}
		s.version = now.Version
	}
	return s.version, s.data, nil
}
