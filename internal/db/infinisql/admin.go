package infinisql

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"stroppy/internal/db"
)

// admin is a connection to the administration port. Only this port can create users, tables and procedures. A request
// has these parts: the length of the rest in eight bytes, big-endian; the length of the operation's name in one byte;
// the name; the arguments. The arguments are a msgpack array of texts. An answer has these parts: its length, with
// these eight bytes included; a status of eight bytes; a msgpack array of texts. The status 0 is a success.
// (scripts/infinisql.plib and TransactionAgent::sendResponse of InfiniSQL 0.1.2.)
type admin struct {
	op    string // what the operations are for, in errors
	conn  net.Conn
	limit time.Duration // the time limit of an answer
}

// errRefused is the error of an operation that the server refuses.
var errRefused = errors.New("the server refuses it without a reason")

// errNoAdmin is the error if the server ends the connection.
var errNoAdmin = errors.New("it ended the connection: check that admin_port in the URL is the administration port of InfiniSQL")

// administer opens a connection without a login.
func (c *config) administer(ctx context.Context, op string) (*admin, error) {
	ctx, cancel := context.WithTimeout(ctx, c.connect)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", c.admin)
	if err != nil {
		return nil, &db.Error{Class: db.Unavailable, Op: "connect to the administration port of InfiniSQL at " + c.admin, Err: db.MessageError{Text: reason(err) + ": " + db.CheckServer, Cause: err}}
	}
	return &admin{op: op, conn: conn, limit: c.answer}, nil
}

// login opens a connection for a user of a domain. It returns errRefused if the user or the password is wrong.
func (c *config) login(ctx context.Context, op, domain, user string) (*admin, error) {
	a, err := c.administer(ctx, op)
	if err != nil {
		return nil, err
	}
	if _, err := a.call(context.WithoutCancel(ctx), "login", domain, user, c.password); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *admin) close() { _ = a.conn.Close() } // nothing is on its way any more

// call carries out an operation and returns the server's answer.
func (a *admin) call(ctx context.Context, operation string, args ...string) ([]string, error) {
	if ctx.Err() != nil {
		return nil, &db.Error{Class: db.Unavailable, Op: operation, Err: context.Cause(ctx)}
	}
	said, err := a.exchange(operation, args)
	switch {
	case errors.Is(err, errRefused):
		return nil, db.Fatalf(a.op, "%s: %w", operation, err)
	case err != nil:
		return nil, &db.Error{Class: db.Unavailable, Op: operation + " by the administration port of InfiniSQL", Err: err}
	}
	return said, nil
}

// exchange ends only at the time limit: see the package.
func (a *admin) exchange(operation string, args []string) ([]string, error) {
	if err := a.conn.SetDeadline(time.Now().Add(a.limit)); err != nil {
		return nil, err
	}
	request, err := appendRequest(nil, operation, args)
	if err == nil {
		_, err = a.conn.Write(request)
	}
	if err != nil {
		return nil, err
	}
	said, err := readAnswer(a.conn)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errNoAdmin
	}
	return said, err
}

func appendRequest(dst []byte, operation string, args []string) ([]byte, error) {
	if args == nil {
		args = []string{} // any value but a list ends the server
	}
	packed, err := msgpack.Marshal(args)
	if err != nil {
		return nil, err
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(operation)+1+len(packed)))
	dst = append(append(dst, byte(len(operation))), operation...)
	return append(dst, packed...), nil
}

const (
	answerHeader = 16
	// mostAnswer bounds an answer, whose texts are a name or a number.
	mostAnswer = 1 << 16
)

// readAnswer reads one answer. It returns errRefused if the status is not a success.
func readAnswer(r io.Reader) ([]string, error) {
	var header [answerHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	length, status := binary.BigEndian.Uint64(header[:]), binary.BigEndian.Uint64(header[8:])
	if length < answerHeader || length > mostAnswer {
		return nil, errNoAdmin
	}
	packed := make([]byte, length-answerHeader)
	if _, err := io.ReadFull(r, packed); err != nil {
		return nil, err
	}
	if status != 0 {
		return nil, errRefused
	}
	var said []string
	if err := msgpack.Unmarshal(packed, &said); err != nil {
		return nil, fmt.Errorf("its answer is no list of texts: %w", err)
	}
	return said, nil
}

// reason returns the end of a network error, without the addresses in it.
func reason(err error) string {
	text := err.Error()
	return strings.TrimSpace(text[strings.LastIndexByte(text, ':')+1:])
}
