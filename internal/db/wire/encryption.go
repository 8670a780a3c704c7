package wire

import (
	"crypto/tls"
	"net"
	"strings"

	"stroppy/internal/db"
)

// Encryption describes the protection of a connection.
type Encryption struct {
	Protocol string // with its cipher; empty: there is none
	Verified bool   // the client has checked the certificate of the server
}

// EncryptionOf returns the protection of a connection. verified is set if the driver checks certificates itself.
func EncryptionOf(conn net.Conn, verified bool) Encryption {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return Encryption{}
	}
	state := secure.ConnectionState()
	return Encryption{tls.VersionName(state.Version) + ", " + tls.CipherSuiteName(state.CipherSuite), verified || len(state.VerifiedChains) > 0}
}

// Elsewhere reports whether one of the servers, each HOST:PORT or the path of a socket, is on another machine, as far as
// its name shows.
func Elsewhere(servers ...string) bool {
	for _, server := range servers {
		host, _, err := net.SplitHostPort(server)
		if ip := net.ParseIP(host); err == nil && host != "localhost" && !strings.HasPrefix(host, "/") && (ip == nil || !ip.IsLoopback()) {
			return true
		}
	}
	return false
}

// Judge adds the protection of a connection to a survey. remote is set if the server is elsewhere. how is the parameter
// of the URL that verifies the server.
func (e Encryption) Judge(s *db.Survey, remote bool, how string) {
	const name = "TLS"
	switch {
	case e.Protocol == "" && !remote:
		s.Add(name, "none; the server is on this machine")
	case e.Protocol == "":
		s.Judge(name, "none", true, db.Warning, "others on the way can read the password and the data; add "+how)
	case !e.Verified:
		s.Judge(name, e.Protocol+", the server's certificate is not checked", remote, db.Note, "another server can pose as this one; add "+how)
	default:
		s.Judge(name, e.Protocol+", certificate checked", false, "", "")
	}
}
