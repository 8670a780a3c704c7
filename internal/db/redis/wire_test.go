package redis_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"stroppy/internal/cluster/host"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/kvtest"
	"stroppy/internal/db/redis"
)

// listen serves connections of 127.0.0.1 until the test ends, each in its own goroutine. It returns the address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	drivertest.Must(t, err)
	var mu sync.Mutex
	var open []net.Conn
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			group.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		group.Wait()
	})
	return listener.Addr().String()
}

// cut is the place at which a proxy cuts a connection.
type cut uint32

const (
	nowhere  cut = iota
	asking       // before it forwards the next request
	reported     // after it has forwarded the request, before it forwards the answer
)

// proxy stands in front of a server and cuts one connection.
type proxy struct {
	address string
	cut     atomic.Uint32
}

func startProxy(t *testing.T, server string) *proxy {
	p := &proxy{}
	p.address = listen(t, func(client net.Conn) {
		backend, err := net.Dial("tcp", server)
		if err != nil {
			t.Error(err)
			return
		}
		defer backend.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.forward(client, backend, reported)
		}()
		p.forward(backend, client, asking)
		backend.Close()
		client.Close()
		<-done
	})
	return p
}

// forward copies until the connection must be cut here.
func (p *proxy) forward(to, from net.Conn, here cut) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil || p.cut.CompareAndSwap(uint32(here), uint32(nowhere)) {
			to.Close()
			from.Close()
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// TestLostCommitAnswerIsUnknown checks that a commit is unknown if its connection is cut before or after the
// server has it. A look-up finds the outcome.
func TestLostCommitAnswerIsUnknown(t *testing.T) {
	ways(t, serverOptions{}, func(t *testing.T, c *servers, url string) {
		p := startProxy(t, c.Endpoints()[0])
		d := drivertest.Open(t, redis.Open, strings.Replace(url, c.Endpoints()[0], p.address, 1))
		kvtest.Put(t, d, "warm", "") // the server also knows the script
		for where, want := range map[cut]string{asking: "-", reported: "1"} {
			key := fmt.Sprint("key", where)
			s := newSession(t, d)
			kvtest.Begin(t, s)
			kvtest.ExpectRead(t, s, "-", key)
			s.Set([]byte(key), []byte("1"))
			p.cut.Store(uint32(where))
			expect(t, "a commit", s.Commit(t.Context()), db.Unknown, "no connection", p.address)
			expect(t, "a session in doubt", s.Begin(t.Context(), false), db.Unavailable)
			drivertest.Must(t, s.Reset(t.Context()))
			kvtest.Begin(t, s)
			kvtest.ExpectRead(t, s, want, key)

			p.cut.Store(uint32(where))
			expect(t, "a read", s.Read(t.Context(), kvtest.Keys("a"), make([]db.Entry, 1)), db.Unavailable)
			drivertest.Must(t, s.Reset(t.Context()))
			p.cut.Store(uint32(where))
			expect(t, "a scan", s.Scan(t.Context(), nil, nil, func(_, _ []byte) error { return nil }), db.Unavailable)
			drivertest.Must(t, s.Reset(t.Context()))
			kvtest.Begin(t, s)
			s.Set([]byte("other"), nil)
			kvtest.Commit(t, s)
		}
	})
}

// fake is a server that answers each command with the result of answers: one or more lines. It answers OK if the result
// is "", and closes the connection if hangUp is true.
func fake(t *testing.T, answers func(words []string) (line string, hangUp bool)) string {
	return listen(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for {
			words, err := request(r)
			if err != nil {
				return
			}
			line, hangUp := answers(words)
			if hangUp {
				return
			}
			if line == "" {
				line = "+OK"
			}
			if _, err := io.WriteString(conn, line+"\r\n"); err != nil {
				return
			}
		}
	})
}

// request reads one command and returns its words. The name is in lower case.
func request(r *bufio.Reader) ([]string, error) {
	number := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	count, err := number()
	if err != nil {
		return nil, err
	}
	words := make([]string, count)
	for i := range words {
		size, err := number()
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		words[i] = string(text[:size])
	}
	words[0] = strings.ToLower(words[0])
	return words, nil
}

// TestUnusableServersAreExplained checks the errors for servers that the test imitates, such as old versions and
// Sentinels.
func TestUnusableServersAreExplained(t *testing.T) {
	const v7, primary = "*4\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$4\r\nmode\r\n$10\r\nstandalone", "*3\r\n$6\r\nmaster\r\n:0\r\n*0"
	for _, test := range []struct {
		name    string
		answers map[string]string // by command; with a number after it, for that time only
		class   db.Class
		says    string
	}{
		{"an old one", map[string]string{"hello": "*2\r\n$7\r\nversion\r\n$5\r\n6.2.6"}, db.Fatal, "needs 7.0 or later"},
		{"a very old one", map[string]string{"hello": "-ERR unknown command `HELLO`, with args beginning with: "}, db.Fatal, "needs Redis 7.0"},
		{"a Sentinel", map[string]string{"hello": "*4\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$4\r\nmode\r\n$8\r\nsentinel"}, db.Fatal, "Sentinel"},
		{"no Redis", map[string]string{"hello": "HTTP/1.1 400 Bad Request"}, db.Unavailable, "no connection"},
		{"it loads", map[string]string{"hello": v7, "role": primary, "type": "-LOADING Redis is loading the dataset in memory"}, db.Unavailable, "LOADING"},
		{"one that may not say", map[string]string{"hello": v7, "role": "-NOPERM User x has no permissions to run the 'role' command"}, db.Fatal, "+role"},
		{"a full one", map[string]string{"hello": "-ERR max number of clients reached"}, db.Unavailable, "maxclients"},
		{"protected", map[string]string{"hello": "-DENIED Redis is running in protected mode"}, db.Fatal, "protected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			address := fake(t, func(words []string) (string, bool) { return test.answers[words[0]], false })
			_, err := redis.Open(t.Context(), "redis://"+address)
			expect(t, "open", err, test.class, test.says, address)
		})
	}
	for _, test := range []struct {
		way, name string
		answers   map[string]string
		class     db.Class
	}{
		{"script", "loading", map[string]string{"evalsha": "-LOADING Redis is loading the dataset in memory"}, db.Unavailable},
		{"script", "another number", map[string]string{"evalsha": ":2"}, db.Unknown},
		{"script", "another type", map[string]string{"evalsha": "$1\r\n1"}, db.Unknown},
		{"script", "an error that nobody knows", map[string]string{"evalsha": "-ERR well"}, db.Unknown},
		{"script", "forgotten for ever", map[string]string{"evalsha": "-NOSCRIPT No matching script. Please use EVAL.", "eval": "-NOSCRIPT No matching script."}, db.Aborted},
		{"script", "forgotten and not to be evaluated", map[string]string{"evalsha": "-NOSCRIPT No matching script.", "eval": "-NOPERM User x has no permissions"}, db.Fatal},
		{"script", "forgotten and evaluated to nothing known", map[string]string{"evalsha": "-NOSCRIPT No matching script.", "eval": "-ERR well"}, db.Unknown},
		{"watch", "no transaction", map[string]string{"multi": "-NOPERM User x has no permissions to run the 'multi' command", "exec": "-ERR EXEC without MULTI"}, db.Unknown},
		{"watch", "too few answers", map[string]string{"exec": "*1\r\n:1"}, db.Unknown},
		{"watch", "no array", map[string]string{"exec": "+OK"}, db.Unknown},
		{"watch", "a conflict", map[string]string{"exec": "*-1"}, db.Aborted},
		{"watch", "an error among the answers", map[string]string{"exec": "*3\r\n:1\r\n-OOM command not allowed\r\n:1"}, db.Unknown},
		{"watch", "discarded without a reason", map[string]string{"exec": "-EXECABORT Transaction discarded because of previous errors."}, db.Aborted},
		{"watch", "discarded by EXEC", map[string]string{"exec": "-EXECABORT Transaction discarded because of: LOADING Redis is loading"}, db.Unavailable},
		{"watch", "discarded by a command", map[string]string{"mset": "-READONLY You can't write", "exec": "-EXECABORT Transaction discarded because of previous errors."}, db.Unavailable},
		{"watch", "discarded by an error that nobody knows", map[string]string{"mset": "-ERR well", "exec": "-EXECABORT Transaction discarded because of previous errors."}, db.Unavailable},
	} {
		t.Run(test.way+" "+test.name, func(t *testing.T) {
			var committing atomic.Bool
			address := fake(t, func(words []string) (string, bool) {
				if committing.Load() {
					return test.answers[words[0]], false
				}
				return map[string]string{"hello": v7, "role": primary, "type": "+none"}[words[0]], false
			})
			s := newSession(t, drivertest.Open(t, redis.Open, "redis://"+address+"?commit="+test.way))
			kvtest.Begin(t, s)
			s.Set([]byte("a"), nil)
			committing.Store(true)
			expect(t, "a commit", s.Commit(t.Context()), test.class)
		})
	}
}

func TestTLSConnectsOrExplainsRefusal(t *testing.T) {
	cert, key := drivertest.Certificate(t)
	port, err := host.FreePort(t.Context())
	drivertest.Must(t, err)
	c := start(t, serverOptions{Password: "hunter2", Settings: map[string]string{
		"tls-port": strconv.Itoa(port), "tls-cert-file": cert, "tls-key-file": key, "tls-ca-cert-file": cert, "tls-auth-clients": "no",
	}})
	url := fmt.Sprintf("rediss://:hunter2@127.0.0.1:%d/0", port)
	s := newSession(t, drivertest.Open(t, redis.Open, url+"?ca="+cert))
	kvtest.Begin(t, s)
	kvtest.ExpectRead(t, s, "-", "a")
	s.Set([]byte("a"), []byte("1"))
	kvtest.Commit(t, s)
	if got := scan(t, s, "", ""); len(got) != 1 {
		t.Errorf("a scan over TLS finds %q", got)
	}
	for _, test := range []struct {
		url  string
		says string
	}{
		{url, "not trusted"},
		{url + "?ca=" + key, "no certificate"},
		{url + "?ca=/nowhere", "read the certificates"},
	} {
		_, err := redis.Open(t.Context(), test.url)
		expect(t, "open "+test.url, err, db.Fatal, test.says)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	_, err = redis.Open(t.Context(), strings.Replace(c.URL(), "redis://", "rediss://", 1))
	expect(t, "TLS to a port without", err, db.Fatal, "the server has no TLS", "redis:// in place of rediss://")
	_, err = redis.Open(t.Context(), strings.Replace(url, "rediss://", "redis://", 1))
	expect(t, "a port of TLS without it", err, db.Fatal, "the server demands TLS", "rediss:// in place of redis://")
}

// TestClientCertificatesAreSent checks TLS of a server that demands a certificate of the client.
func TestClientCertificatesAreSent(t *testing.T) {
	t.Parallel()
	a, foreign := drivertest.NewAuthority(t), drivertest.NewAuthority(t)
	certificate, key := a.Issue("server", "127.0.0.1")
	port, err := host.FreePort(t.Context())
	drivertest.Must(t, err)
	start(t, serverOptions{Users: []string{"user teller on >hunter2@ ~* +@all"}, Settings: map[string]string{
		"tls-port": strconv.Itoa(port), "tls-cert-file": certificate, "tls-key-file": key, "tls-ca-cert-file": a.File, "tls-auth-clients": "yes",
	}})
	mine, mineKey := a.Issue("client")
	stranger, strangersKey := foreign.Issue("client")
	own := "&cert=" + mine + "&key=" + mineKey
	url := func(host, more string) string {
		return fmt.Sprintf("rediss://teller:hunter2%%40@%s:%d/2?timeout=10s%s", host, port, more)
	}
	for _, url := range []string{url("127.0.0.1", "&ca="+a.File+own), url("localhost", "&insecure=true"+own)} {
		s := newSession(t, drivertest.Open(t, redis.Open, url))
		kvtest.Begin(t, s)
		s.Set([]byte("a"), []byte("1"))
		kvtest.Commit(t, s)
	}
	for url, says := range map[string]string{
		url("127.0.0.1", "&ca="+a.File):                                               "the server demands a certificate of the client: name one that the server trusts, and its key, in the URL (cert=FILE&key=FILE)",
		url("127.0.0.1", "&ca="+a.File+"&cert="+stranger+"&key="+strangersKey):        "the server refuses the client's certificate",
		url("127.0.0.1", own):                                                         "name the authority that signed it in the URL (ca=FILE)",
		url("localhost", "&ca="+a.File+own):                                           "connect to a name that the certificate has (or write insecure=true)",
		url("127.0.0.1", "&cert="+mine):                                               "needs its key",
		strings.Replace(url("127.0.0.1", "&ca="+a.File+own), "hunter2", "hunter3", 1): "wrong user or password",
	} {
		_, err := redis.Open(t.Context(), url)
		expect(t, "open "+url, err, db.Fatal, says)
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

// TestConnectionsUseTheSocket checks a Unix socket with a user of an access control list.
func TestConnectionsUseTheSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r d.sock")
	c := start(t, serverOptions{Users: []string{"user teller on >hunter2@ ~* +@all"}, Settings: map[string]string{"unixsocket": `"` + path + `"`}})
	escaped := strings.ReplaceAll(path, " ", "%20")
	d := drivertest.Open(t, redis.Open, "redis+unix://teller:hunter2%40@"+escaped+"?db=3")
	s := newSession(t, d)
	kvtest.Begin(t, s)
	s.Set([]byte("a"), []byte("1"))
	kvtest.Commit(t, s)
	direct := newSession(t, drivertest.Open(t, redis.Open, strings.TrimSuffix(c.URL(), "0")+"3"))
	kvtest.Begin(t, direct)
	kvtest.ExpectRead(t, direct, "1", "a")
	if _, err := d.Info(t.Context()); err != nil {
		t.Error(err)
	}
	_, err := redis.Open(t.Context(), "redis+unix://teller:hunter3@"+escaped)
	expect(t, "a wrong password", err, db.Fatal, "wrong user or password")
	_, err = redis.Open(t.Context(), "redis+unix://"+escaped+".none")
	expect(t, "no socket", err, db.Unavailable, "no such file or directory: check the address")
}
