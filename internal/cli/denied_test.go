package cli_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/cluster/redis"
	"stroppy/internal/db/drivertest"
	postgresdb "stroppy/internal/db/postgres"
)

// Parts of the errors of all drivers about users, databases, rights and TLS.
const (
	wrongUser  = "wrong user or password"
	checkUser  = "check the user and the password in the URL"
	noPassword = "no password was given, and the server asks for one"
	putIn      = "write it into the URL of --db or STROPPY_DB"
	noUser     = "the server asks for a user and a password"
	noDatabase = "no such database"
	otherName  = "make it, or name another in the URL"
	noRight    = "missing right"
	giveRight  = "give this user the right, or take another user"
	needsTLS   = "the server demands TLS"
	turnOn     = "turn TLS on in the URL"
	lacksTLS   = "the server has no TLS"
	turnOff    = "turn TLS on in the server, or off in the URL"
	untrusted  = "the server's certificate is not trusted"
)

const password, mistaken = "s3cr3t-right", "s3cr3t-wrong"

// denied checks that a run at a URL is refused with these words and without a password.
func denied(t *testing.T, what, url string, says ...string) {
	t.Helper()
	code, _, stderr := call(t, "run", "bank", "--db", url, "--accounts", "20", "--clients", "1", "--count", "20", "--out", t.TempDir()+"/r")
	text := strings.TrimSuffix(stderr, "\n")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if code != 2 && code != 3 || strings.Contains(stderr, password) || strings.Contains(stderr, mistaken) {
		t.Errorf("%s: code %d: %s", what, code, stderr)
	}
	for _, say := range says {
		if !strings.Contains(last, say) {
			t.Errorf("%s: %q does not say %q", what, last, say)
		}
	}
}

// reload executes statements, reloads PostgreSQL's configuration and waits until new sessions use it.
func reload(t *testing.T, url string, statements ...string) {
	t.Helper()
	loaded := fmt.Sprintf("SELECT 1 / (pg_conf_load_time() >= '%s')::int", time.Now().Format(time.RFC3339Nano))
	execute(t, url, append(statements, "SELECT pg_reload_conf()")...)
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(10 * time.Millisecond) {
		d, err := postgresdb.Open(t.Context(), url)
		if err == nil {
			err = d.Exec(t.Context(), loaded)
			_ = d.Close()
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the configuration was not reloaded: %v", err)
		}
	}
}

func TestPostgreSQLDenialIsExplained(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	execute(t, server.URL(), "SET password_encryption = 'scram-sha-256'; CREATE ROLE teller LOGIN PASSWORD '"+password+"'", "CREATE ROLE safe LOGIN")
	hba := filepath.Join(filepath.Dir(server.Dir()), "pg_hba.conf")
	if err := os.WriteFile(hba, []byte("hostssl all safe 127.0.0.1/32 trust\nhost all teller 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\nlocal all all trust\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	reload(t, server.URL())
	as := func(user, word, database string) string { // a busy machine takes more than a cluster's second
		return strings.Replace(server.URLFor(user, word, database), "connect_timeout=1", "connect_timeout=30", 1)
	}
	with := func(url, mode string) string { return strings.Replace(url, "sslmode=disable", "sslmode="+mode, 1) }
	denied(t, "a wrong password", as("teller", mistaken, "postgres"), wrongUser, checkUser, "code 28P01")
	denied(t, "no password", as("teller", "", "postgres"), noPassword, putIn+" (or into PGPASSWORD)", "code 28P01")
	denied(t, "a missing database", as("teller", password, "nowhere"), noDatabase, otherName, `"nowhere"`)
	denied(t, "a missing right", as("teller", password, "postgres"), noRight, "permission denied for schema public", giveRight)
	denied(t, "TLS of a server without", with(as("teller", password, "postgres"), "require"), lacksTLS, turnOff+" (sslmode=disable)")
	denied(t, "an account for TLS alone", as("safe", "", "postgres"), needsTLS, turnOn+" (sslmode=require)")

	certificate, key := drivertest.Certificate(t)
	drivertest.GiveTo(t, server.Dir(), certificate, key)
	reload(t, server.URL(), "ALTER SYSTEM SET ssl_cert_file = '"+certificate+"'", "ALTER SYSTEM SET ssl_key_file = '"+key+"'",
		"ALTER SYSTEM SET ssl = on")
	denied(t, "a certificate that nobody trusts", with(as("teller", password, "postgres"), "verify-full"), untrusted, "name the authority that signed it in the URL (sslrootcert=FILE)")
	denied(t, "an account for TLS alone, which it has", with(as("safe", "", "nowhere"), "require"), noDatabase)
}

func TestMariaDBDenialIsExplained(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	plain, err := mysqlcluster.Start(t.Context(), cluster.Alone(nil))
	plain = started(t, "mariadb", plain, err)
	certificate, key := drivertest.Certificate(t)
	secure, err := mysqlcluster.Start(t.Context(), cluster.Alone(map[string]string{"ssl-cert": certificate, "ssl-key": key}))
	secure = started(t, "mariadb", secure, err)
	for _, server := range []*mysqlcluster.Server{plain, secure} {
		if _, err := server.SQL(t.Context(), "CREATE USER teller IDENTIFIED BY '"+password+"'; GRANT SELECT ON *.* TO teller"); err != nil {
			t.Fatal(err)
		}
	}
	denied(t, "a wrong password", plain.URLFor("teller", mistaken, "test"), wrongUser, checkUser, "code 1045")
	denied(t, "no password", plain.URLFor("teller", "", "test"), noPassword, putIn, "code 1045")
	denied(t, "a missing database", plain.URLFor("teller", password, "nowhere"), noDatabase, otherName, "'nowhere'")
	denied(t, "a missing right", plain.URLFor("teller", password, "test"), noRight, "command denied to user", giveRight)
	denied(t, "TLS of a server without", plain.URLFor("teller", password, "test")+"?tls=true", lacksTLS, turnOff+" (ssl-mode=DISABLED)")
	if _, err := secure.SQL(t.Context(), "CREATE USER safe IDENTIFIED BY '"+password+"' REQUIRE SSL"); err != nil {
		t.Fatal(err)
	}
	denied(t, "an account for TLS alone", secure.URLFor("safe", password, "test"), needsTLS, turnOn+" (ssl-mode=REQUIRED)")
	denied(t, "its wrong password", secure.URLFor("safe", mistaken, "test"), wrongUser, checkUser)
	denied(t, "a certificate that nobody trusts", secure.URLFor("teller", password, "test")+"?tls=true", untrusted, "name the authority that signed it in the URL (ssl-ca=FILE)")
	if _, err := secure.SQL(t.Context(), "SET GLOBAL require_secure_transport = ON"); err != nil {
		t.Fatal(err)
	}
	denied(t, "no TLS where it is demanded", secure.URLFor("teller", password, "test"), needsTLS, turnOn+" (ssl-mode=REQUIRED)")
}

func TestRedisDenialIsExplained(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	nodes, err := redis.StartCluster(t.Context(), cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Unsupervised: true})
	nodes = started(t, "redis", nodes, err)
	u, err := url.Parse(nodes.URL())
	if err != nil {
		t.Fatal(err)
	}
	inline(t, u.Host, "ACL SETUSER teller on >"+password+" ~* +@connection +@read +role", "ACL SETUSER default on >"+password)
	denied(t, "a wrong password", "redis://teller:"+mistaken+"@"+u.Host, wrongUser, checkUser)
	denied(t, "no password", "redis://"+u.Host, noUser, "write them into the URL (redis://:password@")
	denied(t, "a missing right", "redis://teller:"+password+"@"+u.Host, noRight, giveRight)
	denied(t, "a missing database", "redis://:"+password+"@"+u.Host+"/99", noDatabase, otherName)
	denied(t, "TLS of a server without", "rediss://:"+password+"@"+u.Host, lacksTLS, turnOff+" (redis:// in place of rediss://)")
}

// inline sends commands to a Redis server. Each must be answered with +OK.
func inline(t *testing.T, address string, commands ...string) {
	t.Helper()
	conn, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, command := range commands {
		answer := make([]byte, 5)
		if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(answer); err != nil || string(answer) != "+OK\r\n" {
			t.Fatalf("%s: %q, %v", command, answer, err)
		}
	}
}

func TestEtcdDenialIsExplained(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	nodes, err := etcd.Start(t.Context(), cluster.Options{Nodes: 1, InMemory: true, Loopback: true, Unsupervised: true})
	nodes = started(t, "etcd", nodes, err)
	host := nodes.Endpoints()[0]
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{host}, DialTimeout: waitLimit})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	ctx := t.Context()
	for _, step := range []func() error{
		func() error { _, err := admin.RoleAdd(ctx, "root"); return err },
		func() error { _, err := admin.UserAdd(ctx, "root", password); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := admin.UserAdd(ctx, "teller", password); return err },
		func() error { _, err := admin.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	denied(t, "a wrong password", "etcd://teller:"+mistaken+"@"+host+"?timeout=10s", wrongUser, checkUser)
	denied(t, "no password", "etcd://"+host+"?timeout=10s", noUser, "write them into the URL (etcd://user:password@")
	denied(t, "a missing right", "etcd://teller:"+password+"@"+host+"?timeout=10s", noRight, giveRight)
	denied(t, "a server of TLS alone", "etcd://"+secureEtcd(t), needsTLS, turnOn+" (tls=true)")
}

// secureEtcd starts an etcd server that accepts only TLS, and returns its address once it answers.
func secureEtcd(t *testing.T) string {
	t.Helper()
	certificate, key := drivertest.Certificate(t)
	var ports [2]int
	for i := range ports {
		port, err := host.FreePort(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = port
	}
	clients, peers := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	cmd := exec.CommandContext(t.Context(), "etcd", "--name", "n0", "--data-dir", t.TempDir(), "--cert-file", certificate, "--key-file", key,
		"--listen-client-urls", "https://"+clients, "--advertise-client-urls", "https://"+clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "n0="+peers)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context has killed it
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(50 * time.Millisecond) {
		conn, err := tls.Dial("tcp4", clients, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			conn.Close()
			return clients
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
