// Package wire is what drivers have in common that hold a bare connection: how it
// is made, how long an answer is waited for, and when the other side is given up.
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

// UserTimeout is how long the other side's kernel may acknowledge nothing before the
// connection ends with an error. The sockets alone measure it, which costs a call
// nothing. A server that computes, or whose process is frozen, is not silent: its
// kernel still answers, so that a statement outside a transaction may take any
// time.
const UserTimeout = 5 * time.Second

// What a driver takes where its URL says nothing else.
const (
	ConnectTimeout = 5 * time.Second
	AnswerTimeout  = 10 * time.Second // in a transaction, so that a frozen server does not hang a client forever
)

// RestTime is how long a connection must have been at rest to be checked before it is
// used. What is then sent on one that the server had ended before would be lost in the
// network, and its outcome unknown without need: such a connection ends with ErrEnded.
const RestTime = 10 * time.Millisecond

var ErrEnded = errors.New("the server had ended the connection")

// keepAlive asks a connection at rest, which has nothing to be acknowledged, so
// that its end is noticed in the same time.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: UserTimeout - 3*time.Second, Interval: time.Second, Count: 3}

// Dial makes a connection that ends when the other side is silent, and that one
// goroutine reads and one writes. It is what package net.Dialer's DialContext is
// otherwise. See WithLocalAddresses for where it is made from.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	dial := dialer.DialContext
	if from, ok := ctx.Value(localKey{}).(*local); ok {
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
	err = setUserTimeout(tcp)
	if err == nil {
		conn, err = newDirect(tcp)
	}
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return conn, nil
}

// RoundTrip writes a question of which an answer is read next, by the same goroutine, on a
// connection of Dial's or another one. It returns how much of it was written. It may have
// waited until the answer begins to arrive.
func RoundTrip(conn net.Conn, question []byte) (int, error) {
	if c, ok := conn.(interface{ RoundTrip([]byte) (int, error) }); ok {
		return c.RoundTrip(question)
	}
	return conn.Write(question)
}

// Deadlines is how long the answers of one connection are waited for. It is used by
// the one goroutine that uses the connection.
type Deadlines struct {
	Conn  net.Conn
	Limit time.Duration // of an answer

	// deadline is the one that is set on the connection. It is moved on only when
	// less than the limit is left, not for each answer, because setting it costs a
	// timer: an answer may take up to an eighth longer than the limit.
	deadline time.Time

	// The watched context. A session is used with the same one again and again, so
	// that it is registered once.
	done  <-chan struct{}
	stop  func() bool
	fired chan struct{}
}

// Arm makes the next answer, which is asked for now, end with ctx, or with the
// limit if bounded.
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

// Because says why the connection gave no answer, of which err is what reading or
// writing ended with.
func (p *Deadlines) Because(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer within %v", p.Limit)
	}
	return fmt.Errorf("the connection was lost: %w", err)
}

// Guard returns a context that ends when a server stops answering: a statement may
// take hours, but a frozen server must not hang its client. Each time a period
// has passed it asks probe, which returns nil for any answer. The second result
// ends the guard.
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
