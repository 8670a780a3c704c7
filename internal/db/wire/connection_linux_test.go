package wire

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stroppy/internal/db/drivertest"
)

// kinds holds the connections of this package; each function returns both ends.
var kinds = map[string]func(t *testing.T) (net.Conn, *net.TCPConn){
	"direct": pair,
	"blocking": func(t *testing.T) (net.Conn, *net.TCPConn) {
		t.Helper()
		ours, theirs := pair(t)
		ours, err := Block(ours)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ours.Close() })
		return ours, theirs
	},
}

// closeWrite closes the sending direction of a connection.
func closeWrite(c net.Conn) error {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	return errors.Join(raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) }), err)
}

// ask sends a question and waits until its answer begins to arrive.
func ask(c net.Conn, question []byte) (sent int, err error) {
	if sent, err = RoundTrip(c, question); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	return sent, err
}

// pair returns both ends of a connection; the first comes from Dial.
func pair(t *testing.T) (net.Conn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
	})
	return ours, theirs.(*net.TCPConn)
}

// TestLargeDataFlowsInBothDirections sends more than all buffers hold, so that both directions must wait for each
// other.
func TestLargeDataFlowsInBothDirections(t *testing.T) {
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			ours, theirs := both(t)
			sent := bytes.Repeat([]byte("money "), 4<<20)
			failed := make(chan error, 2)
			go func() {
				_, err := io.Copy(theirs, theirs)
				failed <- errors.Join(err, theirs.CloseWrite())
			}()
			go func() {
				n, err := ours.Write(sent)
				if n != len(sent) && err == nil {
					err = io.ErrShortWrite
				}
				failed <- errors.Join(err, closeWrite(ours))
			}()
			got, err := io.ReadAll(ours)
			if err := errors.Join(err, <-failed, <-failed); err != nil {
				t.Fatal(err)
			}
			if sha256.Sum256(got) != sha256.Sum256(sent) {
				t.Errorf("%d bytes came back of %d, or others", len(got), len(sent))
			}
		})
	}
}

// TestConnectionErrorsMatchPackageNet checks that errors are reported as by package net.
func TestConnectionErrorsMatchPackageNet(t *testing.T) {
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				name, op string
				spoil    func(ours net.Conn, theirs *net.TCPConn) error
				call     func(net.Conn, []byte) (int, error)
				want     error
				elapsed  bool
			}{
				{"a read past its deadline", "read", func(ours net.Conn, _ *net.TCPConn) error {
					return ours.SetDeadline(time.Now().Add(10 * time.Millisecond))
				}, net.Conn.Read, os.ErrDeadlineExceeded, true},
				{"a write that nobody reads", "write", func(ours net.Conn, _ *net.TCPConn) error {
					return ours.SetDeadline(time.Now().Add(10 * time.Millisecond))
				}, net.Conn.Write, os.ErrDeadlineExceeded, true},
				{"a read of a closed one", "read", func(ours net.Conn, _ *net.TCPConn) error { return ours.Close() }, net.Conn.Read, net.ErrClosed, false},
				{"a write on a closed one", "write", func(ours net.Conn, _ *net.TCPConn) error { return ours.Close() }, net.Conn.Write, net.ErrClosed, false},
				{"a read after a reset", "read", func(_ net.Conn, theirs *net.TCPConn) error {
					return errors.Join(theirs.SetLinger(0), theirs.Close())
				}, net.Conn.Read, syscall.ECONNRESET, false},
			} {
				ours, theirs := both(t)
				if err := test.spoil(ours, theirs); err != nil {
					t.Fatal(err)
				}
				_, err := test.call(ours, make([]byte, 64<<20))
				var own *net.OpError
				if !errors.Is(err, test.want) || !errors.As(err, &own) || own.Op != test.op || own.Addr == nil || own.Timeout() != test.elapsed {
					t.Errorf("%s ends with %#v", test.name, err)
				}
			}
		})
	}
}

// TestEndOfDataIsNoConnectionError checks that the end of the other side's data is not an error, and that a
// write to a closed connection is.
func TestEndOfDataIsNoConnectionError(t *testing.T) {
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			ours, theirs := both(t)
			if err := theirs.Close(); err != nil {
				t.Fatal(err)
			}
			if n, err := ours.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("reading after the end gives %d bytes and %v", n, err)
			}
			if n, err := ours.Read(nil); n != 0 || err != nil {
				t.Errorf("reading nothing gives %d bytes and %v", n, err)
			}
			var err error
			for range 1000 { // the first ones are taken by the kernel
				if _, err = ours.Write([]byte("money")); err != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("writing to nobody ends with %v", err)
			}
		})
	}
}

// TestRoundTripSendsRequestsOfAnyLength checks that a request of any length is written, and that the right answer
// follows, even after an unread one. The other side answers only after the complete request.
func TestRoundTripSendsRequestsOfAnyLength(t *testing.T) {
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				name        string
				size, early int // bytes; early ones are there before anything was asked
			}{
				{"short", 100, 0},
				{"with something unread", 100, 10},
				{"longer than the buffers", 32 << 20, 0},
			} {
				ours, theirs := both(t)
				sent := bytes.Repeat([]byte("?"), test.size)
				ready := make(chan struct{})
				go func() {
					_, _ = theirs.Write(bytes.Repeat([]byte("!"), test.early))
					close(ready)
					question := make([]byte, test.size)
					_, _ = io.ReadFull(theirs, question)
					_, _ = theirs.Write(question)
				}()
				<-ready
				time.Sleep(10 * time.Millisecond) // what was written early has arrived
				n, err := RoundTrip(ours, sent)
				if n != test.size || err != nil {
					t.Fatalf("%s: %d bytes of %d were asked, with %v", test.name, n, test.size, err)
				}
				got := make([]byte, test.early+test.size)
				if _, err := io.ReadFull(ours, got); err != nil {
					t.Fatalf("%s: the answer ends with %v", test.name, err)
				}
				if !bytes.Equal(bytes.TrimLeft(got, "!"), sent) {
					t.Errorf("%s: another answer came back", test.name)
				}
			}
		})
	}
}

// TestRoundTripReportsSentBytesWithoutAnswer checks the number of bytes that are reported as sent if no answer
// comes.
func TestRoundTripReportsSentBytesWithoutAnswer(t *testing.T) {
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			question := []byte("?")
			for _, test := range []struct {
				name  string
				spoil func(ours net.Conn, theirs *net.TCPConn) error
				sent  int
				want  error
			}{
				{"nobody answers", func(ours net.Conn, _ *net.TCPConn) error {
					return ours.SetDeadline(time.Now().Add(10 * time.Millisecond))
				}, 1, os.ErrDeadlineExceeded},
				{"called off before", func(ours net.Conn, _ *net.TCPConn) error { return ours.SetDeadline(time.Unix(1, 0)) }, 0, os.ErrDeadlineExceeded},
				{"closed before", func(ours net.Conn, _ *net.TCPConn) error { return ours.Close() }, 0, net.ErrClosed},
				{"reset before", func(_ net.Conn, theirs *net.TCPConn) error {
					err := errors.Join(theirs.SetLinger(0), theirs.Close())
					time.Sleep(10 * time.Millisecond)
					return err
				}, 0, syscall.ECONNRESET},
			} {
				ours, theirs := both(t)
				if err := test.spoil(ours, theirs); err != nil {
					t.Fatal(err)
				}
				n, err := ask(ours, question)
				var own *net.OpError
				if n != test.sent || !errors.Is(err, test.want) || !errors.As(err, &own) {
					t.Errorf("%s: %d bytes went out, with %#v", test.name, n, err)
				}
			}
		})
	}
}

// TestLostConnectionEndsRoundTrip checks that the caller wakes if the connection ends before the request or
// instead of the answer. The next read must report the end.
func TestLostConnectionEndsRoundTrip(t *testing.T) {
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, early := range []bool{true, false} {
				ours, theirs := both(t)
				if early {
					theirs.Close()
					time.Sleep(10 * time.Millisecond)
				} else {
					time.AfterFunc(10*time.Millisecond, func() { theirs.Close() })
				}
				if err := ours.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
					t.Fatal(err)
				}
				_, err := ask(ours, []byte("?"))
				if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("ended early %v: asking ends with %v", early, err)
				}
			}
		})
	}
}

// TestDeadlineSetDuringCallEndsIt checks that a deadline that is set during a call ends the call.
func TestDeadlineSetDuringCallEndsIt(t *testing.T) {
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			ours, _ := both(t)
			time.AfterFunc(10*time.Millisecond, func() { _ = ours.SetDeadline(time.Unix(1, 0)) })
			if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a read that is called off ends with %v", err)
			}
		})
	}
}

// TestReadWaitsUntilItsDeadline checks that a read waits exactly as long as allowed, and ends with the connection.
func TestReadWaitsUntilItsDeadline(t *testing.T) {
	const long = 250 * time.Millisecond // more than a system call
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			ours, theirs := both(t)
			began := time.Now()
			if err := ours.SetDeadline(began.Add(long)); err != nil {
				t.Fatal(err)
			}
			_, err := ours.Read(make([]byte, 1))
			if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took < long {
				t.Errorf("a read of %v ends after %v with %v", long, took, err)
			}
			if err := ours.SetDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(long, func() { _, _ = theirs.Write([]byte("!")) })
			if _, err = ours.Read(make([]byte, 1)); err != nil {
				t.Errorf("a read without a deadline ends with %v", err)
			}
			time.AfterFunc(long, func() { ours.Close() })
			if _, err = ours.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a read of what is closed meanwhile ends with %v", err)
			}
			if err := ours.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("closing again ends with %v", err)
			}
		})
	}
}

func BenchmarkDirect(b *testing.B) {
	address := drivertest.Serve(b, func(conn net.Conn) {
		_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, 4096))
	})
	dialer := net.Dialer{}
	for _, how := range []struct {
		name string
		dial func() (net.Conn, error)
		send func(net.Conn, []byte) (int, error)
	}{
		{"net", func() (net.Conn, error) { return dialer.DialContext(b.Context(), "tcp", address) }, net.Conn.Write},
		{"direct", func() (net.Conn, error) { return Dial(b.Context(), "tcp", address) }, net.Conn.Write},
		{"blocking", func() (net.Conn, error) {
			conn, err := Dial(b.Context(), "tcp", address)
			if err != nil {
				return nil, err
			}
			return Block(conn)
		}, RoundTrip},
		{"asked", func() (net.Conn, error) { return Dial(b.Context(), "tcp", address) }, RoundTrip},
	} {
		b.Run(how.name, func(b *testing.B) {
			conn, err := how.dial()
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			message := make([]byte, 64)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := how.send(conn, message); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
