package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

func TestURLIsParsedWithoutRevealingPassword(t *testing.T) {
	for _, url := range []string{
		"mysql://u:" + secret + "@h/d",
		"postgres://u:s3cr3t/w0rd@h/d",
		"postgres://u:1/w0rd@h/d",
		"postgres://u:s3cr3t#w0rd@h/d",
		"postgres://u:" + secret + "%zz@h/d",
		"postgres://u:" + secret + "@h:port/d",
		"postgres://u:" + secret + "@h/d?sslmode=perhaps",
		"postgres://u:" + secret + "@h/d?target_session_attrs=nice",
		"postgres://u:" + secret + "@h/d?connect_timeout=soon",
		"postgres://u:" + secret + "@h/d?answer_timeout=soon",
		"postgres://u:" + secret + "@h/d?answer_timeout=0s",
		"postgres://u:" + secret + "@h/d?prepare=never",
		"postgres://u:" + secret + "@[::1/d",
	} {
		_, err := openURL(t.Context(), url)
		sqltest.WantError(t, url, err, db.Fatal, "")
	}
	for parameter, want := range map[string]time.Duration{"": 10 * time.Second, "&answer_timeout=300ms": 300 * time.Millisecond} {
		d, err := parseURL("postgres://u@h1:1,h2:2/d?sslmode=disable"+parameter, TestFlavor)
		if err != nil {
			t.Fatal(err)
		}
		if c := d.config; c.ConnectTimeout != 5*time.Second || d.timeout != want || d.where != "h1:1,h2:2" || len(c.RuntimeParams) != 1 || d.stateless != nil {
			t.Errorf("%q: %v %v %v %v %v", parameter, d.where, c.ConnectTimeout, d.timeout, c.RuntimeParams, d.stateless)
		}
	}
}

func TestErrorsContainNoPartOfThePassword(t *testing.T) {
	ends := []string{"", "/d", "/d?sslmode=disable", "?sslmode=disable"}
	drivertest.Passwords(t, "postgres", "h:1", ends, "/?#@", func(url string) (drivertest.Account, error) {
		d, err := parseURL(url, TestFlavor)
		if err != nil {
			return drivertest.Account{}, err
		}
		return drivertest.Account{Servers: d.where, User: d.config.User, Password: d.config.Password}, nil
	})
}

// TestErrorsNameTheHostsOfTheURL checks that the reported hosts are the hosts of the URL, whatever precedes the @, and
// that no host contains an @.
func TestErrorsNameTheHostsOfTheURL(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u:p%40w@h1:1,h2:2/d":                  "h1:1,h2:2",
		"postgres://u:p%40w@[::1]:1,[fe80::2]:2,10.0.0.3": "[::1]:1,[fe80::2]:2,10.0.0.3:5432",
		"postgresql://u:a,b:1@h1,h2/d?sslmode=disable":    "h1:5432,h2:5432",
		"postgres://h1,[::1]/d":                           "h1:5432,[::1]:5432",
		"postgres://u:p@/d?host=/run/pg&port=7":           "/run/pg:7",
		"postgres://u:p@/d?host=a,b&port=7,8":             "a:7,b:8",
	} {
		if d, err := parseURL(url, TestFlavor); err != nil || d.where != want {
			t.Errorf("%s: %+v, %v; want %s", url, d, err, want)
		}
	}
	for _, url := range []string{
		"postgres://admin:super@" + secret + "@127.0.0.1:54399/bank",
		"postgres://u:p@" + secret + "@h1:1,h2:2/d",
		"postgres://u:p@" + secret + "@[::1]:1/d",
		"postgres://u:p@h1,v:" + secret + "@h2/d",
		"postgres://u:p@" + secret + "%40h/d",
		"postgres://u:p@/d?host=" + secret + "%40h",
		"postgres://u:p@/d?host=" + secret + "@h",
	} {
		_, err := openURL(t.Context(), url)
		sqltest.WantError(t, url, err, db.Fatal, "")
		if !strings.Contains(err.Error(), "@ % in USER or PASSWORD as %2F %3F %23 %40 %25") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestConnectionsRotateOverServers checks that a product has its own port, and that each connection starts with
// the next server, with and without TLS.
func TestConnectionsRotateOverServers(t *testing.T) {
	f := *TestFlavor
	f.Port, f.Equal = "26257", true
	for url, want := range map[string][]string{
		"postgres://u:p@h1/d":                           {"h1:26257 h1:26257"},
		"postgres://u:p@h1,[::1],h2:7/d?sslmode=prefer": {"::1:26257 ::1:26257 h2:7 h2:7 h1:26257 h1:26257", "h2:7 h2:7 h1:26257 h1:26257 ::1:26257 ::1:26257"},
		"postgres://h1:1,h2?sslmode=disable":            {"h2:26257 h1:1", "h1:1 h2:26257", "h2:26257 h1:1"},
		"postgres:///d?host=h3&port=9&sslmode=disable":  {"h3:9", "h3:9"},
	} {
		d, err := parseURL(url, &f)
		drivertest.Must(t, err)
		for _, want := range want {
			config := d.next()
			got := fmt.Sprintf("%s:%d", config.Host, config.Port)
			for _, more := range config.Fallbacks {
				got += fmt.Sprintf(" %s:%d", more.Host, more.Port)
			}
			if got != want {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
		}
	}
}

func TestConnectionErrorsAreClassified(t *testing.T) {
	pg := start(t, map[string]string{"max_connections": "20", "superuser_reserved_connections": "0", "max_wal_senders": "0"})
	d := drivertest.Open(t, openURL, pg.URL())
	sqltest.Execute(t, d, "SET password_encryption = 'scram-sha-256'; CREATE ROLE reader LOGIN PASSWORD '"+secret+"'",
		"CREATE TABLE closed (n BIGINT)", "REVOKE CONNECT ON DATABASE template1 FROM PUBLIC")
	sqltest.Execute(t, d, `DO $$ BEGIN
		EXECUTE 'COPY (SELECT ''host all reader 127.0.0.1/32 scram-sha-256'' UNION ALL SELECT ''host all all 127.0.0.1/32 trust'') TO '
			|| quote_literal(current_setting('hba_file')); END $$`, "SELECT pg_reload_conf()")
	ctx := t.Context()
	wrong := "wrong-" + secret
	for !errors.Is(ctx.Err(), context.Canceled) { // the reload is not at once
		if _, err := openURL(ctx, pg.URLFor("reader", wrong, "postgres")); err != nil {
			sqltest.WantError(t, "wrong password", err, db.Fatal, "28P01")
			break
		}
	}
	_, err := openURL(ctx, pg.URLFor("reader", secret, "nowhere"))
	sqltest.WantError(t, "missing database", err, db.Fatal, "3D000")
	_, err = openURL(ctx, pg.URLFor("reader", secret, "template1"))
	sqltest.WantError(t, "no right to connect", err, db.Fatal, "42501")

	reader := drivertest.Open(t, openURL, pg.URLFor("reader", secret, "postgres"))
	sqltest.WantError(t, "no right to a table", reader.Exec(ctx, "DELETE FROM closed"), db.Fatal, "42501")
	for _, mode := range []db.Mode{db.Pipelined, db.Interactive} {
		s := newSession(t, reader, mode, "")
		if err := s.Begin(ctx, false); err != nil {
			t.Fatal(err)
		}
		_, err = s.Do(ctx, &db.Statement{SQL: "DELETE FROM closed"}, nil)
		if err == nil {
			err = s.Commit(ctx)
		}
		sqltest.WantError(t, "no right in a transaction", err, db.Fatal, "42501")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	var sessions []db.SQLSession
	for err = nil; err == nil; {
		var s db.SQLSession
		if s, err = d.Session(ctx, db.SessionOptions{Mode: db.Pipelined}); err == nil {
			sessions = append(sessions, s)
		}
	}
	sqltest.WantError(t, "too many connections", err, db.Unavailable, "53300")
	for _, s := range sessions {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}

	_, err = d.Session(ctx, db.SessionOptions{Mode: db.Pipelined, Isolation: "snapshot"})
	sqltest.WantError(t, "an isolation that PostgreSQL lacks", err, db.Fatal, "")
	_, err = d.Session(ctx, db.SessionOptions{})
	sqltest.WantError(t, "no mode", err, db.Fatal, "")
}

func TestRefusedAndTimedOutConnectionsAreExplained(t *testing.T) {
	port, err := host.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = openURL(t.Context(), fmt.Sprintf("postgres://u:%s@127.0.0.1:%d/d", secret, port))
	sqltest.WantError(t, "refused", err, db.Unavailable, "")

	// A listener that never answers is ended by the connection time-out.
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = openURL(t.Context(), fmt.Sprintf("postgres://u:%s@%s/d?connect_timeout=1&sslmode=disable", secret, l.Addr()))
	sqltest.WantError(t, "no answer", err, db.Unavailable, "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = openURL(ctx, fmt.Sprintf("postgres://u:%s@%s/d?sslmode=disable", secret, l.Addr()))
	sqltest.WantError(t, "no answer until the context ends", err, db.Unavailable, "")
}

// refuser starts a server that refuses TLS and then resets connections without TLS, like a server that is
// stopping.
func refuser(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			request := make([]byte, 8)
			if _, err := io.ReadFull(conn, request); err == nil && binary.BigEndian.Uint32(request[4:]) == 80877103 {
				_, _ = conn.Write([]byte("N"))
			} else {
				_ = conn.(*net.TCPConn).SetLinger(0) // a reset, and not an end
			}
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestRefusedTLSIsExplained(t *testing.T) {
	host := refuser(t)
	for mode, want := range map[string]struct {
		class db.Class
		says  string
	}{
		"":            {db.Unavailable, db.CheckServer},
		"prefer":      {db.Unavailable, db.CheckServer},
		"allow":       {db.Unavailable, db.CheckServer},
		"disable":     {db.Unavailable, db.CheckServer},
		"require":     {db.Fatal, "the server has no TLS: turn TLS on in the server, or off in the URL (sslmode=disable)"},
		"verify-full": {db.Fatal, "the server has no TLS: turn TLS on in the server, or off in the URL (sslmode=disable)"},
	} {
		url := "postgres://u:" + secret + "@" + host + "/d"
		if mode != "" {
			url += "?sslmode=" + mode
		}
		_, err := openURL(t.Context(), url)
		sqltest.WantError(t, "sslmode="+mode, err, want.class, "")
		if !strings.Contains(err.Error(), want.says) || want.class == db.Unavailable && strings.Contains(err.Error(), "TLS") {
			t.Errorf("sslmode=%s: %v", mode, err)
		}
	}
}

// TestSessionPreferringTLSSurvivesRestart checks that a session that prefers TLS is unavailable during a restart,
// and that it connects afterwards.
func TestSessionPreferringTLSSurvivesRestart(t *testing.T) {
	pg := start(t, nil)
	d := drivertest.Open(t, openURL, strings.Replace(pg.URL(), "sslmode=disable", "sslmode=prefer", 1))
	s := newSession(t, d, db.Pipelined, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	restarted := make(chan error, 1)
	go func() { restarted <- pg.Restart(ctx) }()
	failed, up := 0, false
	for !up {
		err := s.Reset(ctx)
		select {
		case restart := <-restarted:
			if restart != nil {
				t.Fatal(restart)
			}
			up = true
		default:
		}
		if err != nil {
			failed++
			var e *db.Error
			if !errors.As(err, &e) || e.Class != db.Unavailable {
				t.Fatalf("during the restart Reset gives %v: %v", db.ClassOf(err), err)
			}
		}
	}
	if failed == 0 {
		t.Error("no Reset met the restart")
	}
	if err := s.Reset(ctx); err != nil {
		t.Fatalf("after the restart: %v", err)
	}
	if err := s.Begin(ctx, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}
