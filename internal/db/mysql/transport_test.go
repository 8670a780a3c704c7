package mysql

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// cipher returns "TLS" if a session of a database uses TLS, and otherwise "plain".
func cipher(t *testing.T, url string) string {
	t.Helper()
	row, err := newSession(t, drivertest.Open(t, Open, url), db.Pipelined, "").row("SHOW STATUS LIKE 'Ssl_cipher'")
	drivertest.Must(t, err)
	if row[1] == "" {
		return "plain"
	}
	return "TLS"
}

func TestTLSModesFollowTheURL(t *testing.T) {
	t.Parallel()
	authority, foreign := drivertest.NewAuthority(t), drivertest.NewAuthority(t)
	certificate, key := authority.Issue("server", "127.0.0.1")
	m := start(t, map[string]string{"ssl-cert": certificate, "ssl-key": key, "ssl-ca": authority.File})
	other, otherKey := authority.Issue("other", "db.test")
	misnamed := start(t, map[string]string{"ssl-cert": other, "ssl-key": otherKey})
	_, err := m.SQL(t.Context(), "CREATE USER member IDENTIFIED BY '"+secret+"' REQUIRE X509; GRANT ALL ON *.* TO member")
	drivertest.Must(t, err)
	member := m.URLFor("member", secret, "test")
	clients, clientsKey := authority.Issue("member")
	mine := "&ssl-cert=" + clients + "&ssl-key=" + clientsKey
	ca := "&ssl-ca=" + authority.File
	for url, want := range map[string]string{
		m.URL() + "?ssl-mode=DISABLED":                   "plain",
		m.URL() + "?ssl-mode=PREFERRED":                  "TLS",
		m.URL() + "?ssl-mode=required":                   "TLS",
		m.URL() + "?ssl-mode=VERIFY_CA" + ca:             "TLS",
		m.URL() + "?ssl-mode=VERIFY_IDENTITY" + ca:       "TLS",
		m.URL() + "?sslca=" + authority.File:             "TLS",
		misnamed.URL() + "?ssl_ca=" + authority.File:     "TLS",
		member + "?ssl-mode=VERIFY_IDENTITY" + ca + mine: "TLS",
		member + "?" + strings.TrimPrefix(mine, "&"):     "TLS",
		member + "?sslmode=preferred" + mine:             "TLS",
	} {
		if got := cipher(t, url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	stranger, strangersKey := foreign.Issue("member")
	for url, says := range map[string]string{
		m.URL() + "?ssl-mode=VERIFY_CA":                               "the server's certificate is not trusted: x509: certificate signed by unknown authority: name the authority that signed it in the URL (ssl-ca=FILE)",
		m.URL() + "?ssl-ca=" + foreign.File:                           "the server's certificate is not trusted",
		misnamed.URL() + "?ssl-mode=VERIFY_IDENTITY" + ca:             "connect to a name that the certificate has (or ssl-mode=VERIFY_CA)",
		member + "?ssl-mode=REQUIRED":                                 "if the account demands a certificate (REQUIRE X509), write ssl-cert=FILE&ssl-key=FILE",
		member + "?ssl-cert=" + stranger + "&ssl-key=" + strangersKey: "if it does not trust the client's certificate",
	} {
		_, err := Open(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
	_, plain := fresh(t)
	if got := cipher(t, plain+"?ssl-mode=PREFERRED"); got != "plain" {
		t.Errorf("a server without TLS speaks %s", got)
	}
}

func TestTransportParametersAreChecked(t *testing.T) {
	authority := drivertest.NewAuthority(t)
	certificate, key := authority.Issue("client")
	_, other := authority.Issue("other")
	for more, says := range map[string]string{
		"ssl-mode=ON": "is not known: take one of disabled, preferred",
		"ssl-mode=REQUIRED&ssl-ca=" + authority.File:    "ssl-ca is used with ssl-mode=VERIFY_CA",
		"ssl-mode=DISABLED&ssl-ca=" + authority.File:    "uses no certificates",
		"tls=true&ssl-mode=REQUIRED":                    "leave tls out",
		"ssl-ca=/nonexistent":                           "no such file",
		"ssl-ca=" + key:                                 "has no certificate in PEM form",
		"ssl-cert=" + certificate:                       "needs its key",
		"ssl-cert=" + certificate + "&ssl-key=" + other: "private key does not match",
		"socket=relative.sock":                          "no path that begins with /",
	} {
		_, err := parseURL("mysql://u:" + secret + "@h/d?" + more)
		sqltest.WantError(t, more, err, db.Fatal, "")
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", more, err, says)
		}
	}
	if _, err := parseURL("mysql://u@h1,h2/d?socket=/s"); err == nil || !strings.Contains(err.Error(), "one server") {
		t.Errorf("a socket of two servers: %v", err)
	}
}

// onSocket checks that transactions of a user with a password work on the socket of a server.
func onSocket(t *testing.T, server *Database) {
	t.Helper()
	sqltest.Execute(t, server, "CREATE DATABASE IF NOT EXISTS test", "CREATE USER clerk@localhost IDENTIFIED BY '"+secret+"'", "GRANT ALL ON *.* TO clerk@localhost")
	path, err := filepath.EvalSymlinks(ask(t, server, "SELECT IF(@@socket LIKE '/%', @@socket, CONCAT(@@datadir, @@socket))"))
	drivertest.Must(t, err)
	for _, host := range []string{"", "localhost"} {
		d := drivertest.Open(t, Open, "mysql://clerk:"+secret+"@"+host+"/test?socket="+path)
		bank.Make(t, d, 3)
		sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
			s := newSession(t, d, mode, "")
			drivertest.Must(t, sqltest.Transact(t.Context(), s, false, false, bank.Touch(0, 1), bank.See(0)))
			row, err := s.row("SELECT SUBSTRING_INDEX(USER(), '@', -1)")
			if err != nil || row[0] != "localhost" {
				t.Errorf("%v, %v", row, err)
			}
		})
		drivertest.Must(t, d.Exec(t.Context(), "DROP TABLE ledger, accounts"))
	}
}

func TestConnectionsUseTheSocket(t *testing.T) {
	t.Parallel()
	onSocket(t, drivertest.Open(t, Open, start(t, nil).URL()))
}

// TestMySQLTakesPasswordsOnAllConnections checks the first log-in with caching_sha2_password on a socket, with the
// server's key, and with TLS.
func TestMySQLTakesPasswordsOnAllConnections(t *testing.T) {
	server := startMySQL(t, nil)
	d := drivertest.Open(t, Open, server)
	onSocket(t, d)
	for i, want := range []string{"plain", "TLS"} {
		user := fmt.Sprintf("clerk%d", i)
		sqltest.Execute(t, d, "CREATE USER "+user+" IDENTIFIED BY '"+secret+"'", "GRANT ALL ON *.* TO "+user)
		u, err := url.Parse(server)
		drivertest.Must(t, err)
		u.User, u.RawQuery = url.UserPassword(user, secret), []string{"", "ssl-mode=REQUIRED"}[i]
		if got := cipher(t, u.String()); got != want {
			t.Errorf("the connection is %s, not %s", got, want)
		}
	}
}
