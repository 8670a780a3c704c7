package drivertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// Servers holds the servers of a driver's tests. All tests that do not harm a server share one; the other tests start
// their own.
type Servers[S interface{ Stop() error }] struct {
	Launch func(ctx context.Context, settings map[string]string) (S, error)
	// Missing returns why the tests are skipped after this error of Launch. If it returns "", the tests fail.
	Missing func(error) string

	once   sync.Once
	shared *S
	err    error
	names  atomic.Int64
}

// Main runs the tests of a package and stops the shared server. The function TestMain calls it.
func (s *Servers[S]) Main(m *testing.M) {
	code := m.Run()
	if s.shared != nil {
		if err := (*s.shared).Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Start starts a server for one test.
func (s *Servers[S]) Start(t testing.TB, settings map[string]string) S {
	t.Helper()
	server, err := s.Launch(t.Context(), settings)
	s.check(t, err)
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Shared returns the server that tests share. The first test that needs it starts it.
func (s *Servers[S]) Shared(t testing.TB) S {
	t.Helper()
	s.once.Do(func() {
		server, err := s.Launch(context.Background(), nil)
		if s.err = err; err == nil {
			s.shared = &server
		}
	})
	s.check(t, s.err)
	return *s.shared
}

func (s *Servers[S]) check(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if why := s.Missing(err); why != "" {
		t.Skip(why)
	}
	t.Fatal(err)
}

// Name returns a name for a database on the shared server that no other test has.
func (s *Servers[S]) Name() string { return fmt.Sprintf("test%d", s.names.Add(1)) }
