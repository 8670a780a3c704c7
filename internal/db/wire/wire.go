// Package wire is shared by drivers that use a bare connection. It covers making a connection, waiting for an answer,
// and giving up an unresponsive server.
package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// UserTimeout is the time without any acknowledgement by the other side's kernel after which a connection ends with
// an error. Only the sockets measure it, so it costs calls nothing. The kernel of a server that computes or is frozen
// still answers, so a statement outside a transaction may take any time.
const UserTimeout = 5 * time.Second

// These are the defaults if the URL sets nothing else.
const (
	ConnectTimeout = 5 * time.Second
	AnswerTimeout  = 10 * time.Second // in a transaction, so that a frozen server does not hang a client forever
)

// RestTime is the idle time after which a connection is checked before use. If the server has ended the connection,
// data sent on it would be lost, and its outcome unknown without need. Such a connection ends with ErrEnded.
const RestTime = 10 * time.Millisecond

var ErrEnded = errors.New("the server had ended the connection")

// Dialer makes connections that end when the other side is silent.
type Dialer struct {
	KeepAlive   net.KeepAliveConfig // the probes of an idle connection
	UserTimeout time.Duration       // as the constant; 0: the system's
}

// Limits returns a Dialer with the usual limits. It probes an idle connection, which has nothing to be acknowledged,
// so that its end is noticed in the same time.
func Limits() Dialer {
	idle := net.KeepAliveConfig{Enable: true, Idle: UserTimeout - 3*time.Second, Interval: time.Second, Count: 3}
	return Dialer{KeepAlive: idle, UserTimeout: UserTimeout}
}

// Dial is the DialContext of a Dialer with the usual limits.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return Limits().DialContext(ctx, network, address)
}

// DialContext makes a connection for one reading and one writing goroutine. Otherwise it is like
// net.Dialer.DialContext. WithLocalAddresses sets its local address.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{KeepAlive: -1, KeepAliveConfig: d.KeepAlive} // KeepAlive counts if the other is not enabled
	dial := dialer.DialContext
	if from, ok := ctx.Value(localKey{}).(*local); ok && network != "unix" {
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return from.dial(ctx, dialer, network, address)
		}
	}
	conn, err := dial(ctx, network, address)
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		err = ErrNoPort
	}
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, nil
	}
	if d.UserTimeout > 0 {
		err = setUserTimeout(tcp, d.UserTimeout)
	}
	if err == nil {
		conn, err = newDirect(tcp)
	}
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return conn, nil
}

// RoundTrip writes a question whose answer the same goroutine reads next. The connection may come from Dial or
// elsewhere. It returns the number of bytes written. It may have waited until the answer begins to arrive.
func RoundTrip(conn net.Conn, question []byte) (int, error) {
	if c, ok := conn.(interface{ RoundTrip([]byte) (int, error) }); ok {
		return c.RoundTrip(question)
	}
	return conn.Write(question)
}

// Deadlines limits the time for the answers on one connection. It is used by the goroutine that uses the connection.
type Deadlines struct {
	Conn  net.Conn
	Limit time.Duration // of an answer

	// deadline is the one set on the connection. It is updated only when less than the limit is left, because setting
	// it costs a timer. So an answer may take up to an eighth longer than the limit.
	deadline time.Time

	// The watched context. A session often uses the same one repeatedly, so it is registered once.
	done  <-chan struct{}
	stop  func() bool
	fired chan struct{}
}

// Arm sets the deadline of the answer requested now: the end of ctx and, if bounded, the limit.
func (p *Deadlines) Arm(ctx context.Context, now time.Time, bounded bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if done := ctx.Done(); done != p.done {
		p.Disarm()
		if done != nil {
			fired, conn := make(chan struct{}), p.Conn
			p.stop = context.AfterFunc(ctx, func() {
				_ = conn.SetDeadline(time.Unix(1, 0)) // a closed connection needs none
				close(fired)
			})
			p.done, p.fired = done, fired
		}
	}
	var want time.Time
	if bounded {
		longest := p.Limit + p.Limit/8
		if left := p.deadline.Sub(now); left >= p.Limit && left <= longest {
			return nil
		}
		want = now.Add(longest)
	} else if p.deadline.IsZero() {
		return nil
	}
	p.deadline = want
	if err := p.Conn.SetDeadline(want); err != nil {
		return err
	}
	if ctx.Err() != nil { // it may have ended between, and its deadline was overwritten
		return context.Cause(ctx)
	}
	return nil
}

// Disarm forgets the watched context.
func (p *Deadlines) Disarm() {
	if p.stop != nil && !p.stop() {
		<-p.fired
		p.deadline = time.Unix(1, 0)
	}
	p.done, p.stop, p.fired = nil, nil, nil
}

// Because returns the reason why there was no answer. err is the error of reading or writing.
func (p *Deadlines) Because(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer within %v", p.Limit)
	}
	return fmt.Errorf("the connection was lost: %w", err)
}

// Guard returns a context that ends when a server stops answering. A statement may take hours, but a frozen server
// must not block its client. After each period it calls probe, which must return nil for any answer. The second
// result ends the guard.
func Guard(ctx context.Context, period time.Duration, probe func(context.Context) error) (context.Context, func()) {
	guarded, cancel := context.WithCancelCause(ctx)
	ticker := time.NewTicker(period)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-guarded.Done():
				return
			case <-ticker.C:
				if err := probe(guarded); err != nil {
					cancel(fmt.Errorf("the server does not answer any more: %w", err))
					return
				}
			}
		}
	}()
	return guarded, func() { cancel(nil) }
}
