package own

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strconv"
	"time"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/fault"
)

const (
	dialLimit = 500 * time.Millisecond // of a connection that shows whether a server exists
	seenLimit = 10 * time.Second       // until the effect of a command is seen
	silence   = time.Second            // without an answer, after which a server counts as paused
)

// node is a server that somebody else started, with the commands of its owner.
type node struct {
	cluster  *Cluster
	number   int
	name     string // the owner's; empty: there is none
	url      string
	address  string // HOST:PORT; empty: the URL has none
	on       string
	commands map[string]*command
	server   Server
	promises []promise // guarded by mu of the cluster
}

// supervised is a node that something else starts again after its end.
type supervised struct{ *node }

// RestartsItself marks the node for the nemesis.
func (supervised) RestartsItself() {}

func (n *node) Number() int  { return n.number }
func (n *node) Name() string { return "n" + strconv.Itoa(n.number) }

// title returns the name with the owner's name.
func (n *node) title() string {
	if n.name == "" {
		return n.Name()
	}
	return n.Name() + " (" + n.name + ")"
}

// of returns the end of a sentence about a command of the node; nil: it is a command of the whole cluster.
func (n *node) of() string {
	if n == nil {
		return ""
	}
	return " of " + n.title()
}

// values returns the values of the placeholders.
func (n *node) values() map[string]string {
	if n == nil {
		return nil
	}
	host, port, _ := net.SplitHostPort(n.address)
	return map[string]string{"name": cmp.Or(n.name, n.Name()), "host": host, "port": port}
}

// is reports whether an answer means this node.
func (n *node) is(answer string) bool {
	if answer == "" {
		return false
	}
	host, _, _ := net.SplitHostPort(n.address)
	return answer == n.name || answer == n.Name() || answer == n.address || answer == host && !n.cluster.shared(host)
}

// shared reports whether several nodes have the same host.
func (c *Cluster) shared(host string) bool {
	count := 0
	for _, n := range c.nodes {
		if own, _, _ := net.SplitHostPort(n.address); own == host {
			count++
		}
	}
	return count > 1
}

// Running reports whether the server exists, paused or not: by the command of its owner, or if it accepts a connection.
func (n *node) Running() bool { return n.runs(n.cluster.life) }

func (n *node) runs(ctx context.Context) bool {
	if cmd := n.commands[running]; cmd != nil {
		_, err := n.cluster.run(ctx, cmd, n, true)
		return err == nil
	}
	conn, err := n.dial(ctx)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

func (n *node) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: dialLimit}
	return d.DialContext(ctx, "tcp", n.address)
}

// do runs the command for an action.
func (n *node) do(ctx context.Context, action string) error {
	_, err := n.cluster.run(ctx, n.commands[action], n, false)
	return err
}

// promising runs inject, after a note of the command that heals it. A call of healed removes the note.
func (n *node) promising(heal string, inject func() error) error {
	cmd := n.commands[heal]
	if cmd == nil { // a supervisor heals it
		return inject()
	}
	text, err := cmd.shell(n, n.values())
	if err != nil {
		return err
	}
	kept, err := n.cluster.Promise(text)
	if err != nil {
		return err
	}
	n.cluster.mu.Lock()
	n.promises = append(n.promises, promise{heal, kept})
	n.cluster.mu.Unlock()
	return inject()
}

// promise is a note of the command that heals a fault.
type promise struct {
	heal string
	kept func() error
}

// healed removes the notes of a heal that was seen.
func (n *node) healed(heal string) (err error) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	var left []promise
	for _, p := range n.promises {
		if p.heal == heal {
			err = errors.Join(err, p.kept())
		} else {
			left = append(left, p)
		}
	}
	n.promises = left
	return err
}

// Kill ends the server as a crash does.
func (n *node) Kill(ctx context.Context) error { return n.ends(ctx, kill) }

// Terminate shuts the server down in good order.
func (n *node) Terminate(ctx context.Context) error { return n.ends(ctx, stop) }

// ends runs a command that ends the server, and returns when the end is seen: a connection breaks, or a new one is
// refused.
func (n *node) ends(ctx context.Context, action string) error {
	broken := make(chan struct{})
	if conn, err := n.dial(ctx); n.address != "" && err == nil {
		defer conn.Close()
		go func() {
			_, _ = io.Copy(io.Discard, conn) // a server may speak first
			close(broken)
		}()
	}
	err := n.promising(start, func() error { return n.do(ctx, action) })
	if err != nil {
		return err
	}
	return wait.Until(ctx, seenLimit, func() error {
		select {
		case <-broken:
			return nil
		default:
		}
		if n.runs(ctx) {
			return fmt.Errorf("%s still runs after its command %s", n.title(), action)
		}
		return nil
	})
}

// Restart starts the server and returns when it answers. A server with a supervisor starts by itself.
func (n *node) Restart(ctx context.Context) error {
	if n.commands[start] != nil {
		if err := n.do(ctx, start); err != nil {
			return err
		}
	}
	return n.awake(ctx, start)
}

// awake waits until the server answers, and removes the notes of its heal.
func (n *node) awake(ctx context.Context, heal string) error {
	err := wait.RetryEvery(ctx, healthyEvery, func() error {
		_, err := n.cluster.answers(ctx, n.server)
		return err
	})
	if err != nil {
		return fmt.Errorf("wait until %s answers: %w", n.title(), err)
	}
	return n.healed(heal)
}

// Replace removes the data of the server and lets it join again.
func (n *node) Replace(ctx context.Context) error {
	if err := n.do(ctx, replace); err != nil {
		return err
	}
	return n.awake(ctx, start)
}

// Pause stops the server where it is. The effect is seen when a new connection is accepted and not answered.
func (n *node) Pause(ctx context.Context) error {
	if err := n.promising(resume, func() error { return n.do(ctx, pause) }); err != nil {
		return err
	}
	return wait.Until(ctx, seenLimit, func() error { return n.StillPaused(ctx) })
}

// StillPaused returns an error if the server answers or does not exist.
func (n *node) StillPaused(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	began := time.Now()
	_, err := n.server.Answers(limited)
	switch {
	case err == nil:
		return fmt.Errorf("%s still answers although it is paused", n.title())
	case time.Since(began) < silence/2: // it answered with an error, or refused the connection
		return fmt.Errorf("%s does not hang although it is paused: %w", n.title(), err)
	}
	return nil
}

// Resume lets the server go on and returns when it answers.
func (n *node) Resume(ctx context.Context) error {
	if err := n.do(ctx, resume); err != nil {
		return err
	}
	if !n.runs(ctx) {
		return n.healed(resume) // it has ended meanwhile
	}
	return n.awake(ctx, resume)
}

// Steered returns nil: the inventory decides.
func (n *node) Steered() error { return nil }

// JumpClock sets the clock of the node forward or back, and sees it by the command clock.
func (n *node) JumpClock(ctx context.Context, by time.Duration) (fault.Effect, error) {
	before, err := n.offset(ctx)
	if err != nil {
		return fault.Effect{}, err
	}
	back := n.clockBy(-by)
	text, err := n.commands[setClock].shell(n, back)
	if err != nil {
		return fault.Effect{}, err
	}
	kept, err := n.cluster.Promise(text)
	if err != nil {
		return fault.Effect{}, err
	}
	set := func(ctx context.Context, values map[string]string, want time.Duration) (string, error) {
		if _, err := n.cluster.runWith(ctx, n.commands[setClock], n, values, false); err != nil {
			return "", err
		}
		now, err := n.offset(ctx)
		if err == nil && (now-want).Abs() > min(time.Second, by.Abs()/2) {
			err = fmt.Errorf("the clock of %s differs by %v from this machine, and %v was expected", n.title(),
				now.Round(time.Millisecond), want.Round(time.Millisecond))
		}
		return fmt.Sprintf("the clock of %s differs by %v", n.Name(), now.Round(time.Millisecond)), err
	}
	e := fault.Effect{Heal: func(ctx context.Context) (string, error) {
		seen, err := set(ctx, back, before)
		if err == nil {
			err = kept()
		}
		return seen, err
	}}
	e.Seen, err = set(ctx, n.clockBy(by), before+by)
	return e, err
}

func (n *node) clockBy(by time.Duration) map[string]string {
	values := maps.Clone(n.values())
	values["by"] = strconv.FormatFloat(by.Seconds(), 'f', -1, 64)
	return values
}

// offset returns how far the clock of the node is ahead of this machine's.
func (n *node) offset(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	out, err := n.cluster.run(ctx, n.commands[clock], n, false)
	middle := began.Add(time.Since(began) / 2)
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.ParseFloat(out.Answer, 64)
	if err != nil {
		return 0, fmt.Errorf("%s%s printed %q: it must print the seconds since 1970, as date +%%s.%%N does", n.commands[clock].place(), n.of(), out.Answer)
	}
	return time.Duration((seconds - float64(middle.UnixNano())/1e9) * 1e9), nil
}
