package etcd_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/wire"
)

// secured starts a member that serves clients with TLS, and returns its address. It accepts only clients with a
// certificate if demanding is set.
func secured(t *testing.T, a *drivertest.Authority, demanding bool, names ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	program, err := host.Find("etcd", "etcd-server")
	if missing := (host.MissingError{}); errors.As(err, &missing) {
		t.Skip("skipped engine: etcd: install the Debian package etcd-server")
	}
	drivertest.Must(t, err)
	certificate, key := a.Issue(fmt.Sprintf("server%v", demanding), names...)
	var ports [2]int
	for i := range ports {
		ports[i], err = host.FreePort(t.Context())
		drivertest.Must(t, err)
	}
	clients, peers := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	cmd := exec.CommandContext(t.Context(), program, "--name", "n0", "--data-dir", t.TempDir(), "--cert-file", certificate, "--key-file", key,
		"--listen-client-urls", "https://"+clients, "--advertise-client-urls", "https://"+clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "n0="+peers)
	if demanding {
		cmd.Args = append(cmd.Args, "--trusted-ca-file", a.File, "--client-cert-auth")
	}
	drivertest.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context has killed it
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
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

// opened opens a database, and tries again while the server starts.
func opened(t *testing.T, url string) *etcd.Database {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		d, err := etcd.Open(t.Context(), url)
		if err == nil {
			drivertest.Close(t, d)
			return d
		}
		if db.ClassOf(err) != db.Unavailable || time.Now().After(deadline) {
			t.Fatalf("%s: %v", url, err)
		}
	}
}

func TestTLSConnectsOrExplainsRefusal(t *testing.T) {
	t.Parallel()
	a, foreign := drivertest.NewAuthority(t), drivertest.NewAuthority(t)
	demanding, misnamed := secured(t, a, true, "127.0.0.1"), secured(t, a, false, "db.test")
	certificate, key := a.Issue("client")
	stranger, strangersKey := foreign.Issue("client")
	ca := "?timeout=10s&tls=true&ca=" + a.File
	mine := "&cert=" + certificate + "&key=" + key
	admin, err := wire.TLSFiles{CA: a.File, Certificate: certificate, Key: key}.Config()
	drivertest.Must(t, err)
	d := opened(t, "etcd://"+demanding+ca+mine)
	sample, err := d.Monitor().Sample(t.Context())
	if err != nil || len(sample.Values) == 0 {
		t.Errorf("the metrics are %+v, %v", sample, err)
	}
	own, err := clientv3.New(clientv3.Config{Endpoints: []string{demanding}, TLS: admin, DialTimeout: time.Minute, Logger: zap.NewNop()})
	drivertest.Must(t, err)
	t.Cleanup(func() { own.Close() })
	enableAuthentication(t, own)
	s := newSession(t, opened(t, "etcd://teller:hunter2%40@"+demanding+ca+mine), "")
	kvtest.Begin(t, s)
	s.Set([]byte("b/1"), []byte("1"))
	kvtest.Commit(t, s)
	opened(t, "etcd://"+misnamed+"?timeout=10s&tls=true&insecure=true")
	plain := startCluster(t, 1, nil).Endpoints()[0]
	for url, says := range map[string]string{
		"etcd://" + demanding:                                                     "the server demands TLS: turn TLS on in the URL (tls=true)",
		"etcd://" + demanding + "?tls=true&timeout=10s":                           "name the authority that signed it in the URL (ca=FILE)",
		"etcd://" + demanding + ca:                                                "the server demands a certificate of the client: name one that the server trusts, and its key, in the URL (cert=FILE&key=FILE)",
		"etcd://" + demanding + ca + "&cert=" + stranger + "&key=" + strangersKey: "the server refuses the client's certificate",
		"etcd://teller:hunter3@" + demanding + ca + mine:                          "wrong user or password",
		"etcd://" + misnamed + ca:                                                 "connect to a name that the certificate has (or write insecure=true)",
		"etcd://" + plain + "?tls=true&timeout=10s":                               "the server has no TLS: turn TLS on in the server, or off in the URL (tls=false)",
		"etcd://" + demanding + "?tls=true&ca=/nonexistent":                       "no such file",
		"etcd://" + demanding + "?ca=" + a.File:                                   "write tls=true too",
		"etcd://" + demanding + ca + "&cert=" + certificate:                       "needs its key",
	} {
		var err error
		for deadline := time.Now().Add(time.Minute); ; {
			if _, err = etcd.Open(t.Context(), url); db.ClassOf(err) != db.Unavailable || time.Now().After(deadline) {
				break // a busy server may answer late
			}
		}
		if db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
}
