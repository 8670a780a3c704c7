package mongodb

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	"stroppy/internal/cluster/host"
	server "stroppy/internal/cluster/mongodb"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// refusal checks that a URL is refused with one sentence within ten seconds.
func refusal(t *testing.T, url string, class db.Class, says ...string) {
	t.Helper()
	began := time.Now()
	d, err := Open(t.Context(), url)
	if err == nil {
		drivertest.Must(t, d.Close())
		t.Errorf("%s is opened", url)
		return
	}
	text := err.Error()
	t.Log(text)
	if took := time.Since(began); took > 10*time.Second || db.ClassOf(err) != class || strings.ContainsAny(text, "\n{") || strings.Contains(text, "s3cr3t") || len(text) > 400 {
		t.Errorf("%q after %v, of class %v, want one sentence of class %v", text, took, db.ClassOf(err), class)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("%q does not say %q", text, s)
		}
	}
}

// mongod starts a server outside of any cluster and returns its address.
func mongod(t *testing.T, args ...string) string {
	t.Helper()
	binary, err := host.Find("mongod", "")
	clustertest.Need(t, "mongodb", err)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	drivertest.Must(t, err)
	address := l.Addr().String()
	drivertest.Must(t, l.Close())
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.CommandContext(t.Context(), binary, append(args, "--dbpath", t.TempDir(), "--nounixsocket", "--quiet",
		"--bind_ip", "127.0.0.1", "--port", port, "--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "16")...)
	drivertest.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context has killed it
	drivertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error {
		conn, err := net.Dial("tcp4", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	}))
	return address
}

// admin runs commands at one server, as a user unless it is empty.
func admin(t *testing.T, address, user, password string, commands ...bson.D) {
	t.Helper()
	o := options.Client().SetHosts([]string{address}).SetDirect(true)
	if user != "" {
		o.SetAuth(options.Credential{Username: user, Password: password})
	}
	client, err := mongo.Connect(o)
	drivertest.Must(t, err)
	defer func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) }()
	for _, c := range commands {
		drivertest.Must(t, wait.Retry(clustertest.Within(t, clustertest.WaitLimit), func() error {
			return client.Database("admin").RunCommand(t.Context(), c).Err()
		}))
	}
}

func TestServerOutsideReplicaSetIsRefused(t *testing.T) {
	t.Parallel()
	address := mongod(t)
	refusal(t, "mongodb://"+address, db.Fatal, address+" is a server alone", "--replSet")
	refusal(t, "mongodb://"+address+"?directConnection=true", db.Fatal, address+" is a server alone")
	refusal(t, "mongodb://"+address+"?replicaSet=rs", db.Unavailable, "no member of the replica set rs")
	refusal(t, "mongodb://"+mongod(t, "--replSet", "rs"), db.Unavailable, "was not initiated")
}

// TestWrongLoginDiffersFromMissingRight checks that the error for a wrong login differs from the error for a
// missing right.
func TestWrongLoginDiffersFromMissingRight(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	drivertest.Must(t, os.WriteFile(key, []byte("c3Ryb3BweQ=="), 0o600))
	address := mongod(t, "--replSet", "rs", "--auth", "--keyFile", key)
	user := func(name, role, database string) bson.D {
		return bson.D{{Key: "createUser", Value: name}, {Key: "pwd", Value: name + "@s3cr3t"},
			{Key: "roles", Value: bson.A{bson.D{{Key: "role", Value: role}, {Key: "db", Value: database}}}}}
	}
	admin(t, address, "", "", bson.D{{Key: "replSetInitiate", Value: bson.D{{Key: "_id", Value: "rs"},
		{Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: 0}, {Key: "host", Value: address}}}}}}}, user("root", "root", "admin"))
	admin(t, address, "root", "root@s3cr3t", user("teller", "readWrite", "bank"), user("auditor", "read", "bank"), user("guest", "read", "lobby"))

	d := open(t, "mongodb://teller:teller%40s3cr3t@"+address+"/bank")
	want(t, "as the user", find(t, session1(t, d, ""), "a"), "a 1000 0 null")
	refusal(t, "mongodb://teller:wr0ng-s3cr3t@"+address+"/bank", db.Fatal, "wrong user or password", "check the user and the password in the URL (authSource")
	refusal(t, "mongodb://nobody:s3cr3t@"+address+"/bank", db.Fatal, "wrong user or password", "check the user and the password in the URL (authSource")
	refusal(t, "mongodb://teller:teller%40s3cr3t@"+address+"/bank?authSource=bank", db.Fatal, "authSource")
	refusal(t, "mongodb://"+address+"/bank", db.Fatal, "USER:PASSWORD")
	refusal(t, "mongodb://guest:guest%40s3cr3t@"+address+"/bank", db.Fatal, "missing right", "the role readWrite")

	d = drivertest.Open(t, Open, "mongodb://auditor:auditor%40s3cr3t@"+address+"/bank")
	wantError(t, "create without the right", d.Create(t.Context(), &db.Collection{Name: "other", ID: db.Text}), db.Fatal, "13")
	s := session1(t, d, "")
	want(t, "as one who may read", find(t, s, "a"), "a 1000 0 null")
	wantError(t, "write without the right", transact(t.Context(), s, func() error {
		_, err := s.Update(t.Context(), move, ids("a"), []db.Value{num(1), num(1)})
		return err
	}), db.Fatal, "13")
}

// TestReplicaSetWithoutMajorityIsReported checks the error of a replica set without a majority.
func TestReplicaSetWithoutMajorityIsReported(t *testing.T) {
	t.Parallel()
	c, err := server.Start(clustertest.Within(t, clustertest.WaitLimit), cluster.Options{Nodes: 3, Loopback: true, InMemory: true})
	clustertest.Need(t, "mongodb", err)
	t.Cleanup(func() { drivertest.Must(t, c.Stop()) })
	refusal(t, at(t, c.URL(), "bank", "w=5"), db.Fatal, "w=5", "3 members")
	leader, others := clustertest.Leader(t, c)
	drivertest.Must(t, leader.Kill(t.Context()))
	drivertest.Must(t, others[0].Kill(t.Context()))
	refusal(t, c.URL(), db.Unavailable, "no primary within 5s (members that answer: 1)", "majority")
}

// TestServersOfOtherProductsAreReported checks the errors for servers of other products.
func TestServersOfOtherProductsAreReported(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	drivertest.Must(t, err)
	t.Cleanup(func() { silent.Close() })
	closing := drivertest.Serve(t, func(net.Conn) {})
	talking := drivertest.Serve(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "220 mail.example.org ESMTP\r\n") })
	for says, address := range map[string]string{
		"it says nothing": silent.Addr().String(), "it ends the connection": closing, "it does not speak MongoDB's protocol": talking, "(": web.Listener.Addr().String(),
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			refusal(t, "mongodb://u:s3cr3t@"+address, db.Unavailable, "no server answers within 5s ("+strings.TrimPrefix(says, "("), db.CheckServer)
		})
	}
	for name, tc := range map[string]struct {
		wire  int
		build bson.D
		class db.Class
		says  string
	}{
		"FerretDB 1":  {21, bson.D{{Key: "version", Value: "7.0.42"}, {Key: "ferretdbVersion", Value: "v1.24.0"}}, db.Fatal, "is FerretDB v1.24.0, which has no transactions"},
		"FerretDB 2":  {21, bson.D{{Key: "version", Value: "7.0.77"}, {Key: "ferretdb", Value: bson.D{{Key: "version", Value: "v2.0.0"}}}}, db.Fatal, "is FerretDB v2.0.0, which has no transactions"},
		"MongoDB 4.0": {7, bson.D{{Key: "version", Value: "4.0.28"}}, db.Unavailable, "requires at least 8 (MongoDB 4.2)"},
	} {
		t.Run("a stand-in for "+name, func(t *testing.T) {
			t.Parallel()
			refusal(t, "mongodb://"+standIn(t, tc.wire, tc.build), tc.class, tc.says)
		})
	}
}

// TestTLSErrorsAreExplained checks the errors of TLS, with servers of any product, because TLS comes before
// MongoDB's protocol.
func TestTLSErrorsAreExplained(t *testing.T) {
	t.Parallel()
	secure, plain := httptest.NewTLSServer(http.NotFoundHandler()), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	at := func(s *httptest.Server) string { return "mongodb://u:s3cr3t@" + s.Listener.Addr().String() }
	for says, url := range map[string]string{
		"the server's certificate is not trusted: ": at(secure) + "?tls=true",
		"the server demands TLS: turn TLS on":       at(secure),
		"the server has no TLS: turn TLS on":        at(plain) + "?tls=true",
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), url)
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%v does not say %q", err, says)
			}
		})
	}
}

// standIn is a server that only claims to be the primary of a replica set. It names itself by its address, or by a
// name (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/).
func standIn(t *testing.T, wire int, build bson.D, name ...string) string {
	t.Helper()
	built, err := bson.Marshal(append(build, bson.E{Key: "ok", Value: 1.0}))
	drivertest.Must(t, err)
	return drivertest.Serve(t, func(conn net.Conn) {
		hosts := bson.A{conn.LocalAddr().String()}
		if len(name) > 0 {
			hosts = bson.A{name[0]}
		}
		hello, err := bson.Marshal(bson.D{
			{Key: "ismaster", Value: true}, {Key: "setName", Value: "rs"}, {Key: "hosts", Value: hosts},
			{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: wire}, {Key: "logicalSessionTimeoutMinutes", Value: 30},
			{Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48 << 20}, {Key: "ok", Value: 1.0},
		})
		if err != nil {
			return
		}
		for {
			var size [4]byte
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				return
			}
			request := append(size[:], make([]byte, binary.LittleEndian.Uint32(size[:])-4)...)
			if _, err := io.ReadFull(conn, request[4:]); err != nil {
				return
			}
			_, id, _, code, rest, _ := wiremessage.ReadHeader(request)
			answer := hello
			if bytes.Contains(rest, []byte("buildInfo\x00")) || bytes.Contains(rest, []byte("serverStatus\x00")) {
				answer = built
			}
			var at int32
			var out []byte
			if code == wiremessage.OpMsg {
				at, out = wiremessage.AppendHeaderStart(nil, 1, id, wiremessage.OpMsg)
				out = wiremessage.AppendMsgSectionType(wiremessage.AppendMsgFlags(out, 0), wiremessage.SingleDocument)
			} else {
				at, out = wiremessage.AppendHeaderStart(nil, 1, id, wiremessage.OpReply)
				out = wiremessage.AppendReplyFlags(out, 0)
				out = wiremessage.AppendReplyNumberReturned(wiremessage.AppendReplyStartingFrom(wiremessage.AppendReplyCursorID(out, 0), 0), 1)
			}
			out = append(out, answer...)
			if _, err := conn.Write(bsoncore.UpdateLength(out, at, int32(len(out)))); err != nil {
				return
			}
		}
	})
}
