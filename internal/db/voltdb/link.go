package voltdb

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

const opConnect = "connect"

// link is one connection to one node, which has accepted the login.
type link struct {
	node    string
	version string // of the server, as it reports it
	conn    net.Conn
	in      []byte // received bytes; the bytes from at on are not read yet
	at      int
}

// received is the size of the receive buffer of a connection, in bytes.
const received = 16 << 10

// dial connects to a node and logs in, within the time limit of the URL.
func dial(ctx context.Context, c *config, node string) (*link, error) {
	within, cancel := context.WithTimeout(ctx, c.connect)
	defer cancel()
	conn, err := wire.Dial(within, "tcp", node)
	if err != nil {
		return nil, unreachable(ctx, c, node, err)
	}
	l := &link{node: node, conn: conn, in: make([]byte, 0, received)}
	stop := context.AfterFunc(within, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // a closed connection needs none
	err = l.login(c)
	if err == nil && !stop() {
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		stop()
		conn.Close()
		if own, ok := errors.AsType[*db.Error](err); ok {
			return nil, own
		}
		return nil, unreachable(ctx, c, node, err)
	}
	return l, nil
}

// unreachable returns the error of a node that does not accept a login yet.
func unreachable(ctx context.Context, c *config, node string, err error) *db.Error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		text := fmt.Sprintf("the VoltDB node %s: no answer within %v: %s", node, c.connect, db.CheckServer)
		return &db.Error{Class: db.Unavailable, Op: opConnect, Err: db.MessageError{Text: text, Cause: err}}
	}
	text := fmt.Sprintf("the VoltDB node %s: %s: %s", node, cmp.Or(wire.Reason(err), err.Error()), db.CheckServer)
	return &db.Error{Class: db.Unavailable, Op: opConnect, Err: db.MessageError{Text: text, Cause: err}}
}

// The codes with which a server answers a login: org.voltdb.common.Constants of VoltDB 10.0.
const (
	loginDone      = 0
	loginFull      = 1  // MAX_CONNECTIONS_LIMIT_ERROR
	loginTimeout   = 2  // WIRE_PROTOCOL_TIMEOUT_ERROR
	loginRejoining = 4  // AUTHENTICATION_FAILURE_DUE_TO_REJOIN
	loginRefused   = -1 // AUTHENTICATION_FAILURE
)

// login logs in. The server answers with its version.
func (l *link) login(c *config) error {
	if _, err := wire.RoundTrip(l.conn, appendLogin(nil, c.user, c.password)); err != nil {
		return l.noServer(err)
	}
	body, err := l.read()
	if err != nil {
		return l.noServer(err)
	}
	m := message{rest: body}
	m.take(1) // the version of the protocol
	switch code := m.number(1); code {
	case loginDone:
	case loginFull:
		return fmt.Errorf("it has as many clients as it takes")
	case loginTimeout:
		return fmt.Errorf("it took the login for too slow")
	case loginRejoining:
		return fmt.Errorf("it is on its way back into its cluster")
	case loginRefused:
		who := "without a user"
		if c.user != "" {
			who = fmt.Sprintf("as user %q", c.user)
		}
		return db.Fatalf(opConnect, "the VoltDB node %s: %s", l.node, wire.WrongUser.Text("nobody is let in "+who+" with this password", ""))
	default:
		return db.Fatalf(opConnect, "the VoltDB node %s refuses the login with the code %d", l.node, code)
	}
	m.take(4 + 8 + 8 + 4)      // its number, the connection's, the start of the cluster, the leader's address
	build := string(m.bytes()) // such as 10.0_voltdb-10.0-0-g7d1c144-local
	l.version, _, _ = strings.Cut(build, "_")
	if m.short {
		return db.Fatalf(opConnect, "the server at %s is no VoltDB server: its answer to a login is of another protocol", l.node)
	}
	return nil
}

// noServer returns the error of a login that ended with err. A server of another product sends an invalid message, or
// ends the connection. A VoltDB server that is not ready does that too.
func (l *link) noServer(err error) error {
	switch {
	case errors.Is(err, errFormat):
		return db.Fatalf(opConnect, "the server at %s is no VoltDB server: its answer to a login is of another protocol", l.node)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	}
	return fmt.Errorf("it ended the connection at the login (%w), as a server of another product does, or one that is not ready", err)
}

// read returns the next message without its length; it is valid until the next read.
func (l *link) read() ([]byte, error) {
	for {
		if got := l.in[l.at:]; len(got) >= headLength {
			length := int(binary.BigEndian.Uint32(got))
			if length < 1 || length > mostAnswer {
				return nil, errFormat
			}
			if len(got) >= headLength+length {
				l.at += headLength + length
				return got[headLength : headLength+length], nil
			}
			l.room(headLength + length)
		} else {
			l.room(headLength)
		}
		n, err := l.conn.Read(l.in[len(l.in):cap(l.in)])
		l.in = l.in[:len(l.in)+n]
		if err != nil {
			return nil, err
		}
	}
}

// room moves the unread bytes to the front. It makes room for a message of length bytes, and for a part of the next
// messages.
func (l *link) room(length int) {
	rest := l.in[l.at:]
	if l.at > 0 && cap(l.in) >= length {
		l.in = append(l.in[:0], rest...)
	} else if cap(l.in) < length {
		l.in = append(make([]byte, 0, length+received), rest...)
	}
	l.at = 0
}

func (l *link) close() { _ = l.conn.Close() }
