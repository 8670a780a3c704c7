package pgwire

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
)

// secured starts a server with TLS whose certificate is for these hosts. It accepts only TLS, and from the role
// "member" only with a certificate.
func secured(t *testing.T, authority *drivertest.Authority, hosts ...string) *server.Server {
	t.Helper()
	certificate, key := authority.Issue("server", hosts...)
	s := start(t, nil)
	drivertest.GiveTo(t, s.Dir(), key)
	d := drivertest.Open(t, openURL, s.URL())
	sqltest.Execute(t, d, "CREATE ROLE member LOGIN", "CREATE ROLE other LOGIN", `DO $$ BEGIN
		EXECUTE 'COPY (SELECT ''hostssl all member,other 127.0.0.1/32 cert'' UNION ALL SELECT ''hostssl all all 127.0.0.1/32 trust'') TO '
			|| quote_literal(current_setting('hba_file')); END $$`)
	for name, value := range map[string]string{"ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key, "ssl_ca_file": authority.File} {
		sqltest.Execute(t, d, "ALTER SYSTEM SET "+name+" = '"+value+"'")
	}
	sqltest.Execute(t, d, "SELECT pg_reload_conf()")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := openURL(t.Context(), fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=require", server.Superuser, s.Port()))
		if err == nil {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// asked returns the answer of a database to a query in one row.
func asked(t *testing.T, url, query string) string {
	t.Helper()
	d := drivertest.Open(t, openURL, url)
	c, err := d.Connect(t.Context(), "ask")
	drivertest.Must(t, err)
	defer c.Close()
	row, err := c.Row(t.Context(), query)
	drivertest.Must(t, err)
	return strings.Join(row, " ")
}

func TestTLSParametersAreApplied(t *testing.T) {
	t.Parallel()
	authority := drivertest.NewAuthority(t)
	s := secured(t, authority, "db.test")
	const session = "SELECT version, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
	url := func(user, host, more string) string {
		return fmt.Sprintf("postgres://%s@%s:%d/postgres?sslmode=verify-full&sslrootcert=%s&connect_timeout=30%s", user, host, s.Port(), authority.File, more)
	}
	certificate, key := authority.Issue("member")
	theirs := "&hostaddr=127.0.0.1&sslcert=" + certificate + "&sslkey=" + key
	empty, revoked := authority.Revoke("empty.crl"), authority.Revoke("revoked.crl", strings.Replace(authority.File, "authority", "server", 1))
	for more, want := range map[string]string{
		"":                                  "TLSv1.3 /CN=member",
		"&ssl_max_protocol_version=TLSv1.2": "TLSv1.2 /CN=member",
		"&ssl_min_protocol_version=TLSv1.3": "TLSv1.3 /CN=member",
		"&sslcrl=" + empty:                  "TLSv1.3 /CN=member",
		"&sslcrl=" + empty + "&sslmode=verify-ca": "TLSv1.3 /CN=member",
	} {
		if got := asked(t, url("member", "db.test", theirs+more), session); got != want {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
	others, othersKey := authority.Issue("other")
	for more, says := range map[string]string{
		"&hostaddr=127.0.0.1": "the server demands a certificate of the client: connection requires a valid client certificate: name one that the server trusts, and its key, in the URL (sslcert=FILE&sslkey=FILE)",
		"&hostaddr=127.0.0.1&sslcert=" + others + "&sslkey=" + othersKey: "the client's certificate is for another user",
	} {
		_, err := openURL(t.Context(), url("member", "db.test", more))
		sqltest.WantError(t, more, err, db.Fatal, "28000")
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", more, err, says)
		}
	}
	_, err := openURL(t.Context(), url("member", "127.0.0.1", ""))
	sqltest.WantError(t, "another name", err, db.Fatal, "")
	if !strings.Contains(err.Error(), "connect to a name that the certificate has (with hostaddr=ADDRESS") {
		t.Errorf("another name: %v", err)
	}
	_, err = openURL(t.Context(), url("member", "db.test", theirs+"&sslcertmode=disable"))
	sqltest.WantError(t, "a certificate that is kept back", err, db.Fatal, "28000")
	foreign := drivertest.NewAuthority(t)
	for more, says := range map[string]string{
		theirs + "&sslcrl=" + revoked:                                 "the server's certificate is not trusted: CN=authority has revoked it on ",
		theirs + "&sslcrl=" + revoked + "&sslmode=verify-ca":          "the server's certificate is not trusted: CN=authority has revoked it on ",
		theirs + "&sslcrl=" + foreign.Revoke("empty.crl"):             "sslcrl and sslcrldir have no list of the certificates that CN=authority has revoked",
		theirs + "&sslcrl=" + authority.File:                          "it holds no list of revoked certificates in PEM form",
		theirs + "&sslcrl=" + empty + "&sslmode=require&sslrootcert=": "need sslmode=verify-ca or verify-full",
	} {
		_, err := openURL(t.Context(), url("member", "db.test", more))
		sqltest.WantError(t, more, err, db.Fatal, "")
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", more, err, says)
		}
	}
}

// TestServerOwnerIsChecked checks requirepeer on the socket of a server.
func TestServerOwnerIsChecked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who owns a socket")
	}
	s, _, _ := fresh(t)
	folder := asked(t, s.URL(), "SELECT current_setting('unix_socket_directories')")
	url := fmt.Sprintf("postgres://%s@:%d/postgres?host=%s&requirepeer=", server.Superuser, s.Port(), folder)
	_, err := openURL(t.Context(), url+"nobody-of-this-name")
	sqltest.WantError(t, "another owner", err, db.Fatal, "")
	_, owner, found := strings.Cut(err.Error(), "the server belongs to ")
	owner, _, _ = strings.Cut(owner, ":")
	if !found {
		t.Fatal(err)
	}
	if got := asked(t, url+owner, "SELECT inet_server_addr() IS NULL"); got != "t" {
		t.Errorf("the connection of %s is no socket", owner)
	}
}

func TestSessionSettingsComeFromTheURL(t *testing.T) {
	t.Parallel()
	_, _, url := fresh(t)
	sqltest.Execute(t, drivertest.Open(t, openURL, url), `CREATE SCHEMA "Team ""x"`, "CREATE SCHEMA two")
	for more, want := range map[string]string{
		"":                                "stroppy UTF8 \"$user\", public public",
		"&fallback_application_name=load": "load UTF8 \"$user\", public public",
		"&fallback_application_name=load&application_name=bank": "bank UTF8 \"$user\", public public",
		"&client_encoding=auto&search_path=two":                 "stroppy UTF8 two two",
		"&options=-csearch_path=two":                            "stroppy UTF8 two two",
		"&options=-c%20search_path%3Dtwo":                       "stroppy UTF8 two two",
		"&schema=Team%20%22x&connection_limit=5&pool_timeout=2": "stroppy UTF8 \"Team \"\"x\" Team \"x",
		"&currentSchema=two,public&pool=5":                      "stroppy UTF8 two,public two",
		"&schema_search_path=two&encoding=unicode":              "stroppy UTF8 two two",
		"&hostaddr=127.0.0.1&keepalives=0&gssencmode=prefer":    "stroppy UTF8 \"$user\", public public",
	} {
		const query = "SELECT current_setting('application_name'), current_setting('client_encoding'), current_setting('search_path'), current_schema()"
		if got := asked(t, url+more, query); got != want {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
	for more, whole := range map[string]bool{"&pgbouncer=true": true, "&pgbouncer=false": false, "&prepared_statements=false": true} {
		if d := drivertest.Open(t, openURL, url+more); (d.stateless != nil) != whole {
			t.Errorf("%s: whole statements %v, want %v", more, !whole, whole)
		}
	}
}

func TestUnsupportedParametersAreRefusedByName(t *testing.T) {
	for more, says := range map[string]string{
		"hostaddr=db.test":                          "hostaddr=db.test is no list of IP addresses",
		"hostaddr=10.0.0.1":                         "another number of addresses (1) than the URL has hosts (2)",
		"host=/run,/tmp&hostaddr=10.0.0.1,10.0.0.2": "the folder of a Unix socket",
		"load_balance_hosts=on":                     "neither disable, the default, nor random",
		"gssencmode=require":                        "gssencmode=require is not supported, because Kerberos",
		"sslcompression=1":                          "sslcompression=1 is not supported",
		"replication=database":                      "replication=database is not supported",
		"keepalives_idle=3s":                        "is no whole number",
		"ssl_min_protocol_version=SSLv3":            "is no version of TLS",
		"scram_client_key=" + secret:                "scram_client_key is not supported",
		"oauth_client_secret=" + secret:             "oauth_client_secret is not supported",
		"sslcrl=/nonexistent":                       "no such file",
		"schema=a&search_path=b":                    "schema and search_path are given",
		"timeout=5":                                 "write connect_timeout=SECONDS",
		"sslaccept=strict":                          "write sslmode=verify-full",
		"ssl_min_protocol_version=TLSv1.3&ssl_max_protocol_version=TLSv1.2": "is later than",
	} {
		_, err := openURL(t.Context(), "postgres://u:"+secret+"@h1,h2/d?sslmode=prefer&"+more)
		sqltest.WantError(t, more, err, db.Fatal, "")
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", more, err, says)
		}
	}
}

// TestHostAddressesReplaceHosts checks that a connection goes to the address, and that the name stays the name of the
// certificate.
func TestHostAddressesReplaceHosts(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u@a,b/d?hostaddr=10.0.0.1,::1":                          "10.0.0.1 a, 10.0.0.1 -, ::1 b, ::1 -",
		"postgres://u@a,a/d?hostaddr=10.0.0.1,10.0.0.2&sslmode=verify-full": "10.0.0.1 a, 10.0.0.2 a",
		"postgres:///d?hostaddr=10.0.0.1&sslmode=require":                   "10.0.0.1 ",
	} {
		d, err := parseURL(url, TestFlavor)
		drivertest.Must(t, err)
		var got []string
		for _, try := range tries(d.config) {
			name := "-"
			if try.TLSConfig != nil {
				name = try.TLSConfig.ServerName
			}
			got = append(got, try.Host+" "+name)
		}
		if strings.Join(got, ", ") != strings.TrimSuffix(want, ",") {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// TestBalancedConnectionsBeginWithDifferentServers checks load_balance_hosts with several hosts, and with several
// addresses of one host.
func TestBalancedConnectionsBeginWithDifferentServers(t *testing.T) {
	d, err := parseURL("postgres://h1,h2,h3/d?sslmode=disable&load_balance_hosts=random", TestFlavor)
	drivertest.Must(t, err)
	var got []string
	for range 4 {
		got = append(got, d.next().Host)
	}
	if want := []string{"h2", "h3", "h1", "h2"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	resolver := net.DefaultResolver
	lookup := inTurn(resolver.LookupHost)
	one, err := lookup(t.Context(), "127.0.0.1")
	if err != nil || !slices.Equal(one, []string{"127.0.0.1"}) {
		t.Errorf("%v, %v", one, err)
	}
}

// TestUnfulfilledDemandsAreExplained checks the errors of a server that is not as the URL demands.
func TestUnfulfilledDemandsAreExplained(t *testing.T) {
	t.Parallel()
	_, _, url := fresh(t)
	for more, want := range map[string]struct {
		class db.Class
		says  string
	}{
		"&require_auth=scram-sha-256":                                       {db.Fatal, "correct require_auth, or the method in the server's pg_hba.conf"},
		"&channel_binding=require":                                          {db.Fatal, "write channel_binding=prefer, or have the server use TLS"},
		"&sslmode=prefer&target_session_attrs=standby":                      {db.Unavailable, "name a standby too"},
		"&target_session_attrs=standby":                                     {db.Unavailable, "server is not in hot standby mode: name a standby too"},
		"&target_session_attrs=read-write&default_transaction_read_only=on": {db.Unavailable, "read only connection: name the primary too"},
	} {
		_, err := openURL(t.Context(), url+more)
		sqltest.WantError(t, more, err, want.class, "")
		if !strings.Contains(err.Error(), want.says) || strings.Contains(err.Error(), db.CheckServer) {
			t.Errorf("%s: %v, want %q", more, err, want.says)
		}
	}
}

func TestMissingSchemaAndStandbyAreExplained(t *testing.T) {
	t.Parallel()
	_, _, url := fresh(t)
	d := drivertest.Open(t, openURL, url+"&search_path=nowhere")
	err := d.Exec(t.Context(), "CREATE TABLE homeless (n BIGINT)")
	sqltest.WantError(t, "no schema", err, db.Fatal, "3F000")
	if !strings.Contains(err.Error(), "name it in the URL (search_path=SCHEMA)") || !strings.Contains(err.Error(), "ALTER ROLE NAME SET search_path") {
		t.Error(err)
	}
	d = drivertest.Open(t, openURL, url+"&default_transaction_read_only=on") // answers as a standby does
	err = d.Exec(t.Context(), "CREATE TABLE frozen (n BIGINT)")
	if !strings.Contains(err.Error(), "name the primary in the URL, or all servers with target_session_attrs=read-write (code 25006)") {
		t.Error(err)
	}
}

// TestPoolerThatDropsSearchPathIsRefused checks that tables never come into another schema than the URL names.
func TestPoolerThatDropsSearchPathIsRefused(t *testing.T) {
	t.Parallel()
	server, name, url := fresh(t)
	sqltest.Execute(t, drivertest.Open(t, openURL, url), "CREATE SCHEMA app")
	deaf := poolWith(t, server, map[string]string{"ignore_startup_parameters": "search_path,options"})
	for _, more := range []string{"search_path=app", "schema=app", "options=-csearch_path=app", "options=--search_path%3Dapp%20-cwork_mem%3D5MB"} {
		_, err := openURL(t.Context(), deaf.URL("anybody", name, more))
		sqltest.WantError(t, more, err, db.Fatal, "")
		if !strings.Contains(err.Error(), "the pooler drops search_path, so that tables would be in public") || !strings.Contains(err.Error(), "ALTER ROLE") {
			t.Errorf("%s: %v", more, err)
		}
	}
	if got := asked(t, deaf.URL("anybody", name, "options=-cwork_mem=5MB"), "SELECT current_schema()"); got != "public" {
		t.Errorf("the schema is %s", got)
	}
	strict := pool(t, server, "2")
	_, err := openURL(t.Context(), strict.URL("anybody", name, "search_path=app"))
	sqltest.WantError(t, "search_path", err, db.Fatal, "08P01")
	if !strings.Contains(err.Error(), "take it out of the URL and set it for the user") {
		t.Error(err)
	}
}
