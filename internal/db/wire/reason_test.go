package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestFailedConnectionsAreExplained(t *testing.T) {
	dial := func(err error) error {
		return fmt.Errorf("try: %w", &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}, Err: err})
	}
	for _, test := range []struct {
		err  error
		says string
	}{
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connection refused"},
		{dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "no route to host"},
		{dial(os.NewSyscallError("connect", syscall.ETIMEDOUT)), "no answer in time"},
		{dial(&net.DNSError{Err: "no such host", Name: "db", Server: "10.0.0.2:53", IsNotFound: true}), "no such host"},
		{dial(&net.DNSError{Err: "server misbehaving", Name: "db", IsTemporary: true}), "the name of the host could not be looked up"},
		{dial(os.ErrDeadlineExceeded), "no answer in time"},
		{context.DeadlineExceeded, "no answer in time"},
		{errors.New(`transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`), "connection refused"},
		{errors.New("dial tcp: lookup db on 10.0.0.2:53: no such host"), "no such host"},
		{errors.New("dial tcp: lookup db on 10.0.0.2:53: read udp 10.0.0.3:4->10.0.0.2:53: i/o timeout"), "the name of the host could not be looked up"},
		{errors.New("dial tcp 10.0.0.1:1: i/o timeout"), "no answer in time"},
		{io.EOF, ""},
		{errors.New("wrong password: try again"), ""},
	} {
		if got := Reason(test.err); got != test.says {
			t.Errorf("%v is %q, not %q", test.err, got, test.says)
		}
	}
}
