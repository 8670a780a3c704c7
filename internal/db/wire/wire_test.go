package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// silent returns a connection to a listener that accepts everything and sends nothing.
func silent(t *testing.T) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		if conn, err := l.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	conn, err := Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		l.Close()
		<-taken
	})
	return conn
}

// wait arms p, reads until the read ends, and returns the reason.
func wait(ctx context.Context, p *Deadlines, bounded bool) error {
	if err := p.Arm(ctx, time.Now(), bounded); err != nil {
		return err
	}
	_, err := p.Conn.Read(make([]byte, 1))
	return p.Because(ctx, err)
}

func TestDeadlineEndsRead(t *testing.T) {
	p := &Deadlines{Conn: silent(t), Limit: time.Hour}
	if err := p.Arm(t.Context(), time.Now(), true); err != nil {
		t.Fatal(err)
	}
	p.Limit = 20 * time.Millisecond // a deadline that is set is not kept when it is too late
	if err := wait(t.Context(), p, true); err == nil || err.Error() != "no answer within 20ms" {
		t.Errorf("no answer gives %v", err)
	}

	reason := errors.New("the run is over")
	for _, bounded := range []bool{true, false} {
		p.Limit = time.Hour
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { cancel(reason) })
		if err := wait(ctx, p, bounded); !errors.Is(err, reason) {
			t.Errorf("a context that ends gives %v", err)
		}
		if err := wait(ctx, p, bounded); !errors.Is(err, reason) {
			t.Errorf("a context that has ended gives %v", err)
		}
	}

	// A context that ended while idle does not affect later calls.
	ctx, cancel := context.WithCancel(t.Context())
	if err := p.Arm(ctx, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	cancel()
	p.Limit = 20 * time.Millisecond
	if err := wait(t.Context(), p, true); err == nil || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("after another context has ended: %v", err)
	}
	p.Disarm()
	p.Conn.Close()
	if err := wait(t.Context(), p, true); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed connection gives %v", err)
	}
}

func TestGuardCancelsWhenServerIsSilent(t *testing.T) {
	gone := errors.New("gone")
	asked := 0
	ctx, release := Guard(t.Context(), time.Millisecond, func(context.Context) error {
		if asked++; asked < 3 {
			return nil
		}
		return gone
	})
	defer release()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, gone) || asked != 3 {
		t.Errorf("%d questions, the context ended because of %v", asked, err)
	}
	ctx, release = Guard(t.Context(), time.Hour, func(context.Context) error { return gone })
	if ctx.Err() != nil {
		t.Error("a guard that has not asked has ended the context")
	}
	if release(); ctx.Err() == nil {
		t.Error("a guard was released and its context goes on")
	}
}

func TestDialFailsWithoutListener(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if conn, err := Dial(t.Context(), "tcp", l.Addr().String()); err == nil {
		conn.Close()
		t.Error("nobody listens, and there is a connection")
	}
}
