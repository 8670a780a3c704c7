package mongodb

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"golang.org/x/net/dns/dnsmessage"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// nameServer makes this process ask a name server that knows one server, node.example.test, at a port of this machine.
// The name cluster.example.test has its SRV records, and a TXT record that names the replica set rs.
func nameServer(t *testing.T, port uint16) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	drivertest.Must(t, err)
	usual := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = usual
		conn.Close()
	})
	records := map[string]dnsmessage.ResourceBody{
		"SRV _mongodb._tcp.cluster.example.test.": &dnsmessage.SRVResource{Port: port, Target: dnsmessage.MustNewName("node.example.test.")},
		"TXT cluster.example.test.":               &dnsmessage.TXTResource{TXT: []string{"replicaSet=rs&authSource=other"}},
		"A node.example.test.":                    &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
	}
	go func() {
		for b := make([]byte, 1500); ; {
			n, client, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			body, known := records[strings.TrimPrefix(q.Type.String(), "Type")+" "+q.Name.String()]
			if known {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: body}}
			} else if !strings.HasSuffix(q.Name.String(), "example.test.") || strings.Contains(q.Name.String(), "none") {
				m.RCode = dnsmessage.RCodeNameError
			}
			answer, err := m.Pack()
			if err == nil {
				_, _ = conn.WriteTo(answer, client)
			}
		}
	}()
}

// TestServersComeFromDNS checks a URL whose servers are in SRV records, with a server that only claims to be MongoDB.
func TestServersComeFromDNS(t *testing.T) {
	at := standIn(t, 21, bson.D{{Key: "version", Value: "8.0.0"}})
	_, port, err := net.SplitHostPort(at)
	drivertest.Must(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	drivertest.Must(t, err)
	nameServer(t, uint16(number))
	c, o, err := readURL("mongodb+srv://cluster.example.test/bank?tls=false", true)
	drivertest.Must(t, err)
	if len(o.Hosts) != 1 || o.Hosts[0] != "node.example.test:"+port || *o.ReplicaSet != "rs" || c.database != "bank" {
		t.Errorf("the options are %+v", o)
	}
	client, err := mongo.Connect(o)
	drivertest.Must(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	var built struct{ Version string }
	if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "buildInfo", Value: 1}}).Decode(&built); err != nil || built.Version != "8.0.0" {
		t.Errorf("it answers %+v, %v", built, err)
	}
	_, o, err = readURL("mongodb+srv://u:s3cr%2F3t@cluster.example.test/bank", true)
	drivertest.Must(t, err)
	if o.TLSConfig == nil || o.Auth == nil || o.Auth.Username != "u" || o.Auth.Password != "s3cr/3t" || o.Auth.AuthSource != "other" {
		t.Errorf("TLS %v, log-in %+v", o.TLSConfig, o.Auth)
	}
	_, err = Open(t.Context(), "mongodb+srv://u:s3cr%2F3t@none.example.test/bank")
	if db.ClassOf(err) != db.Unavailable || !strings.Contains(err.Error(), "look up the servers of none.example.test (SRV records of _mongodb._tcp.none.example.test): no such host: check the name") ||
		strings.Contains(err.Error(), "s3cr") {
		t.Error(err)
	}
}

// TestCertificateIsTheLogIn checks that the certificate of the client is sent, and that the log-in names X.509. No
// real server with TLS was had: a proxy reads what the library sends to a server that only claims to be MongoDB.
func TestCertificateIsTheLogIn(t *testing.T) {
	t.Parallel()
	a := drivertest.NewAuthority(t)
	certificate, key := a.Issue("server", "127.0.0.1")
	pair, err := tls.LoadX509KeyPair(certificate, key)
	drivertest.Must(t, err)
	trusted, err := os.ReadFile(a.File)
	drivertest.Must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted)
	seen := make(chan string, 1)
	plain := standIn(t, 21, bson.D{{Key: "version", Value: "8.0.0"}})
	at := drivertest.Serve(t, func(conn net.Conn) {
		server := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
		backend, err := net.Dial("tcp4", plain)
		if err != nil {
			return
		}
		defer backend.Close()
		go io.Copy(server, backend)
		for message := make([]byte, 64<<10); ; {
			n, err := server.Read(message)
			if err != nil {
				return
			}
			if bytes.Contains(message[:n], []byte("MONGODB-X509")) && bytes.Contains(message[:n], []byte("$external")) {
				select {
				case seen <- server.ConnectionState().PeerCertificates[0].Subject.CommonName:
				default:
				}
			}
			if _, err := backend.Write(message[:n]); err != nil {
				return
			}
		}
	})
	mine, mineKey := a.Issue("clerk")
	both := filepath.Join(t.TempDir(), "both.pem")
	text, err := os.ReadFile(mine)
	drivertest.Must(t, err)
	more, err := os.ReadFile(mineKey)
	drivertest.Must(t, err)
	drivertest.Must(t, os.WriteFile(both, append(text, more...), 0o600))
	url := "mongodb://" + at + "/bank?directConnection=true&timeout=2s&authMechanism=MONGODB-X509&tls=true&tlsCAFile=" + a.File + "&tlsCertificateKeyFile=" + both
	if _, err := Open(t.Context(), url); err == nil {
		t.Error("a server that cannot check the log-in was opened")
	}
	select {
	case got := <-seen:
		if got != "clerk" {
			t.Errorf("the log-in is of %s", got)
		}
	default:
		t.Error("no log-in by the certificate was seen")
	}
}
