package patroni

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/postgres/server"
)

// What Patroni does not heal by itself is repaired as an operator does it, and noted as a
// repair. Version 3.0.2 lets a primary that was paused overwrite the leader key of the node
// that was promoted meanwhile. The other nodes are then on a later timeline than the primary,
// and retry for ever to stream from it.
const (
	// forkedFor is how long standbys must have been on a later timeline than the primary,
	// and resumedFor how long that is looked for after a pause.
	forkedFor, resumedFor = 5 * time.Second, 20 * time.Second
	// stuckFor is how long the same must be wrong with a node before it is repaired, where
	// somebody waits until the cluster is healthy.
	stuckFor = 15 * time.Second
	// settleWithin is how long Patroni is asked whether it has come to an end with a node.
	settleWithin = 3 * time.Second
	// repairLimit bounds one repair.
	repairLimit = 30 * time.Second
)

// remedy is what an operator does with a node.
type remedy int

const (
	noRemedy     remedy = iota // it comes by itself, or nobody can help
	reinitialize               // copy the data of the primary anew
	restart                    // kill it and start it again
)

// unsound is what is wrong with a node.
type unsound struct {
	node   *node
	what   string
	remedy remedy
	cause  error // what the node said; nil: nothing
}

func (e *unsound) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s %s: %v", e.node.Name(), e.what, e.cause)
	}
	return e.node.Name() + " " + e.what
}

// problems knows since when what is wrong with each node.
type problems map[*node]struct {
	what  string
	since time.Time
}

// lasts says whether the same has been wrong with a node for so long, after which the time
// begins anew. Nil: nothing is wrong with it.
func (p problems) lasts(n *node, wrong *unsound, long time.Duration) bool {
	if wrong == nil || wrong.remedy == noRemedy {
		delete(p, n)
		return false
	}
	if wrong.remedy == restart {
		long *= 2 // it may cost a fail-over
	}
	before, now := p[n], time.Now()
	if before.what != wrong.what || now.Sub(before.since) >= long {
		before.since = now
	}
	lasted := p[n].what == wrong.what && before.since == now
	before.what = wrong.what
	p[n] = before
	return lasted
}

// repair does with a node what an operator does. An error is no more than the repair that
// was not made: whoever waits sees that the cluster is not healthy, and it is tried again.
func (c *Cluster) repair(ctx context.Context, wrong *unsound) {
	ctx, cancel := context.WithTimeout(ctx, repairLimit)
	defer cancel()
	n := wrong.node
	var err error
	done := "was restarted"
	switch wrong.remedy {
	case reinitialize:
		if !n.settled(ctx) {
			return
		}
		done = "was reinitialized from the primary"
		err = n.call(ctx, http.MethodPost, "/reinitialize", object{"force": true})
	case restart:
		if err = n.Kill(ctx); err == nil {
			err = n.Restart(ctx)
		}
	}
	if err != nil {
		c.Note("%s, and could not be repaired: %v", wrong, err)
		return
	}
	c.NoteRepair("%s %s: Patroni does not heal that, so %s %s, as by an operator", n.Name(), wrong.what, n.Name(), done)
}

// settled says that Patroni has come to an end with its PostgreSQL: it runs, or did not start.
// While it copies, rewinds, or replays its log it is on its way. One that does not start is
// started again and again, so that Patroni is asked several times.
func (n *node) settled(ctx context.Context) bool {
	return cluster.Until(ctx, settleWithin, func() error {
		state, err := n.state(ctx)
		if err == nil && state != "running" && state != "start failed" {
			err = errors.New(state)
		}
		return err
	}) == nil
}

// state asks Patroni what it says of its PostgreSQL, such as running or creating replica.
func (n *node) state(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var said struct {
		State string `json:"state"`
	}
	err := n.ask(ctx, http.MethodGet, "/patroni", nil, func(answer *http.Response) error {
		return json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&said) // of any status: it says what is wrong
	})
	return said.State, err
}

// history is the history file of the latest timeline that a node knows of, which is its own,
// or that which a standby follows; empty on the first. A line in it is a timeline that ended,
// and where: the history of a node that has followed another begins that one's.
const history = `SELECT coalesce((SELECT pg_read_file('pg_wal/' || name) FROM pg_ls_waldir()
	WHERE name ~ '^[0-9A-F]{8}[.]history$' ORDER BY name DESC LIMIT 1), '')`

// forked says that a standby has another history than the primary, which is so only where the
// primary has taken the lead back from a node that was promoted. The standby may stream all
// the same, where two nodes were promoted to timelines of the same number; nil if it has not.
func forked(ctx context.Context, n, p *node, of string) (*unsound, error) {
	own, err := server.One[string](ctx, n.over, history)
	if err != nil {
		return nil, fmt.Errorf("ask %s for the history of its timeline: %w", n.Name(), err)
	}
	if strings.HasPrefix(of, own) {
		return nil, nil
	}
	return &unsound{n, fmt.Sprintf("has a timeline that %s, which leads, does not have, because Patroni's leader key was overwritten", p.Name()), reinitialize, nil}, nil
}

// resumed looks, in the background, for what follows where a node that was stopped for a
// while goes on as the leader.
func (c *Cluster) resumed() {
	if !c.begun.Load() || c.Life.Err() != nil {
		return
	}
	c.Tasks.Go(func() {
		lasting := problems{}
		for until := time.Now().Add(resumedFor); time.Now().Before(until) && cluster.Sleep(c.Life, time.Second) == nil; {
			p, err := c.leads(c.Life)
			if err != nil {
				continue
			}
			of, err := server.One[string](c.Life, p.over, history)
			if err != nil {
				continue
			}
			for _, n := range c.servers() {
				if n == p || !n.Awake() {
					continue
				}
				if wrong, err := forked(c.Life, n, p, of); err == nil && lasting.lasts(n, wrong, forkedFor) {
					c.repair(c.Life, wrong)
				}
			}
		}
	})
}

// Resume lets a node go on that Pause has stopped.
func (n *node) Resume(ctx context.Context) error {
	err := n.Server.Resume(ctx)
	if err == nil && !n.store {
		n.cluster.resumed()
	}
	return err
}
