package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/isolation"
)

func TestURLParametersAreParsedOrRefused(t *testing.T) {
	healthy := options{rate: 0.001, seed: 1, n: 5}
	for _, tc := range []struct {
		url  string
		want options
	}{
		{"memory:", healthy},
		{"memory:?", healthy},
		{"memory:?seed=18446744073709551615", options{rate: 0.001, seed: 1<<64 - 1, n: 5}},
		{"memory:?mutant=false-ack-on-crash&n=3&rate=1e-2", options{mutant: crashMutant, rate: 0.01, seed: 1, n: 3}},
		{"memory:?unknown=0.5&abort=1", options{rate: 0.001, seed: 1, n: 5, unknown: 0.5, abort: 1}},
	} {
		if got, err := parse(tc.url); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v, want %+v", tc.url, got, err, tc.want)
		}
	}
	for url, text := range map[string]string{
		"":                              "belongs to another database",
		"sqlite:x":                      "belongs to another database",
		"memory:secret":                 "only ? and parameters may follow memory:",
		"memory:me:secret@h?n=1":        "only ? and parameters may follow memory:",
		"memory:?n=%secret":             "malformed",
		"memory:?mutant=":               "is not a mutant",
		"memory:?mutant=lost-updates":   "the nearest is lost-update,",
		"memory:?mutant=rubbish":        "unknown-lies",
		"memory:?mutnat=torn":           "the nearest is mutant,",
		"memory:?rate=2":                "no number from 0 to 1",
		"memory:?rate=NaN":              "no number from 0 to 1",
		"memory:?unknown=-1":            "no number from 0 to 1",
		"memory:?abort=x":               "no number from 0 to 1",
		"memory:?seed=-1":               "whole number",
		"memory:?n=0":                   "whole number from 1",
		"memory:?n=10001":               "whole number from 1",
		"memory:?seed=1&seed=2":         "given 2 times",
		"memory:?mutant=torn;rate=0.01": "malformed",
	} {
		_, err := Open(url)
		if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "secret") || db.ClassOf(err) != db.Fatal {
			t.Errorf("%q: got %v, want a fatal error with %q", url, err, text)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add("memory:?mutant=torn&rate=0.1&seed=2&n=3&unknown=0.1&abort=0.2")
	f.Add("memory:?%zz")
	f.Fuzz(func(t *testing.T, url string) {
		d, err := Open(url)
		if err != nil {
			if db.ClassOf(err) != db.Fatal {
				t.Errorf("class %v", db.ClassOf(err))
			}
			return
		}
		if info, err := d.Info(t.Context()); err != nil || info.Name == "" {
			t.Errorf("Info: %+v, %v", info, err)
		}
	})
}

func TestInfoListsSettingsAndClaimIsStrict(t *testing.T) {
	d, err := Open("memory:?mutant=false-ack-on-crash&n=7&unknown=0.25")
	must(t, err)
	info, err := d.Info(t.Context())
	must(t, err)
	text := fmt.Sprint(info.Settings)
	for _, want := range []string{"{mutant false-ack-on-crash}", "{rate 0.001}", "{n 7}", "{unknown 0.25}", "{seed 1}"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	for _, name := range []string{"", Isolation} {
		if c, err := d.Claim(name); err != nil || c.Level != isolation.StrictSerializable || c.Isolation != Isolation || c.Source == "" {
			t.Errorf("Claim(%q) = %+v, %v", name, c, err)
		}
	}
	if _, err := d.KVSession(t.Context(), db.SessionOptions{Isolation: "snapshot"}); db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), Isolation) {
		t.Errorf("an isolation it does not have: %v", err)
	}
}

func TestEveryMutantReplacesTheHealthyStore(t *testing.T) {
	checks := map[string]bool{"serializable": true, "strict": true, "durable": true, "no-ghost": true, "exactly-once": true,
		"total": true, "ledger": true, "non-negative": true}
	for _, m := range Mutants() {
		d, err := Open("memory:?mutant=" + m.Name)
		must(t, err)
		if _, healthy := d.engine.(*store); healthy {
			t.Errorf("%s is not planted", m.Name)
		}
		if m.Bug == "" || !checks[m.Check] {
			t.Errorf("%+v is incomplete", m)
		}
	}
}

func TestMisusedSessionReturnsFatalError(t *testing.T) {
	d, err := Open("memory:")
	must(t, err)
	s, err := d.KVSession(t.Context(), db.SessionOptions{})
	must(t, err)
	class := func(what string, err error, want db.Class) {
		t.Helper()
		if err == nil || db.ClassOf(err) != want {
			t.Errorf("%s: got %v, want class %v", what, err, want)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	class("commit without begin", s.Commit(t.Context()), db.Fatal)
	class("read without begin", s.Read(t.Context(), nil, nil), db.Fatal)
	class("begin, cancelled", s.Begin(cancelled, false), db.Aborted)
	s.Rollback()

	must(t, s.Begin(t.Context(), true))
	s.Set([]byte("a"), nil)
	class("write in a read-only transaction", s.Commit(t.Context()), db.Fatal)

	must(t, s.Begin(t.Context(), false))
	for range d.Limits().Writes + 1 {
		s.Set([]byte("a"), nil)
	}
	class("too many writes", s.Commit(t.Context()), db.Fatal)

	must(t, s.Begin(t.Context(), false))
	s.Set([]byte("a"), nil)
	class("commit, cancelled", s.Commit(cancelled), db.Aborted)

	must(t, s.Begin(t.Context(), false))
	class("no room", s.Read(t.Context(), make([][]byte, 2), make([]db.Entry, 1)), db.Fatal)

	must(t, s.Begin(t.Context(), false))
	s.Set([]byte("a"), []byte("1"))
	s.Rollback()
	s.Set([]byte("a"), []byte("2"))
	must(t, s.Begin(t.Context(), false))
	must(t, s.Commit(t.Context()))
	if n := len(d.store.records); n != 0 {
		t.Errorf("%d records, but nothing was committed", n)
	}

	put(t, d, "a", "1")
	stop := errors.New("stop")
	if err := s.Scan(t.Context(), nil, []byte("z"), func(_, _ []byte) error { return stop }); err != stop {
		t.Errorf("scan: got %v", err)
	}
	class("scan, cancelled", s.Scan(cancelled, nil, []byte("z"), func(_, _ []byte) error { return nil }), db.Aborted)
	must(t, s.Close())
	class("begin on a closed session", s.Begin(t.Context(), true), db.Fatal)
	class("reset of a closed session", s.Reset(t.Context()), db.Fatal)
	must(t, d.Close())
}

func TestConcurrentAddsAreSummed(t *testing.T) {
	d, err := Open("memory:")
	must(t, err)
	kvtest.Adds(t, "adds/", func() db.AddSession { return &session{database: d} })
}

// TestUnknownCommitNeverChangesLater checks that the effect of an unanswered commit never changes, and that the
// session demands a reset.
func TestUnknownCommitNeverChangesLater(t *testing.T) {
	d, err := Open("memory:?unknown=1")
	must(t, err)
	s := &session{database: d}
	applied := 0
	for i := range 200 {
		must(t, s.Begin(t.Context(), false))
		s.Set(fmt.Appendf(nil, "k%03d", i), []byte("x"))
		if err := s.Commit(t.Context()); err == nil || db.ClassOf(err) != db.Unknown {
			t.Fatalf("got %v", err)
		}
		if err := s.Begin(t.Context(), true); db.ClassOf(err) != db.Unavailable {
			t.Fatalf("begin before reset: %v", err)
		}
		must(t, s.Reset(t.Context()))
		if s.tx.number > 0 {
			applied++
		}
	}
	found := 0
	must(t, s.Scan(t.Context(), []byte("k"), []byte("l"), func(_, _ []byte) error { found++; return nil }))
	if found != applied || applied < 60 || applied > 140 {
		t.Errorf("%d were applied, %d are there, of 200", applied, found)
	}
}

func TestAbortedTransactionIsNotApplied(t *testing.T) {
	d, err := Open("memory:?abort=1")
	must(t, err)
	s := &session{database: d}
	for range 10 {
		must(t, s.Begin(t.Context(), false))
		s.Set([]byte("a"), nil)
		if err := s.Commit(t.Context()); err == nil || db.ClassOf(err) != db.Aborted {
			t.Fatalf("got %v", err)
		}
		must(t, s.Begin(t.Context(), false))
		must(t, s.Commit(t.Context())) // nothing to refuse
	}
	if len(d.store.records) != 0 {
		t.Error("an aborted transaction was applied")
	}
}
