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

	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/wait"
)

// Problems that Patroni does not heal are repaired as by an operator, and noted as repairs. Version 3.0.2 lets a
// paused primary overwrite the leader key of the node that was promoted meanwhile. Then the other nodes are on a
// later timeline than the primary, and retry for ever to stream from it.
const (
	// forkedFor is how long standbys must be on a later timeline than the primary. resumedFor is how long this is
	// checked after a pause.
	forkedFor, resumedFor = 5 * time.Second, 20 * time.Second
	// stuckFor is how long a problem must last before it is repaired, while somebody waits for a healthy cluster.
	stuckFor = 15 * time.Second
	// settleWithin is how long Patroni is asked whether it is done with a node.
	settleWithin = 3 * time.Second
	// repairLimit bounds one repair.
	repairLimit = 30 * time.Second
)

// remedy is an operator's action on a node.
type remedy int

const (
	noRemedy     remedy = iota // it recovers by itself, or nothing helps
	reinitialize               // copy the data of the primary again
	restart                    // kill it and start it again
)

// unsound is a problem of a node.
type unsound struct {
	node   *node
	what   string
	remedy remedy
	cause  error // error of the node; nil: none
}

func (e *unsound) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s %s: %v", e.node.Name(), e.what, e.cause)
	}
	return e.node.Name() + " " + e.what
}

// problems holds the problem of each node and its beginning.
type problems map[*node]struct {
	what  string
	since time.Time
}

// lasts reports whether a node has had the same problem for a duration; then the time starts again. wrong is nil if
// it has none.
func (p problems) lasts(n *node, wrong *unsound, long time.Duration) bool {
	if wrong == nil || wrong.remedy == noRemedy {
		delete(p, n)
		return false
	}
	if wrong.remedy == restart {
		long *= 2 // a restart may cause a fail-over
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

// repair repairs a node as an operator does. It only notes an error: a waiting caller sees that the cluster is not
// healthy, and the repair is tried again.
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

// settled reports whether Patroni is done with its PostgreSQL: it runs, or did not start. While it copies, rewinds or
// replays, it is not done. PostgreSQL is started again and again if it fails, so Patroni is asked several times.
func (n *node) settled(ctx context.Context) bool {
	return wait.Until(ctx, settleWithin, func() error {
		state, err := n.state(ctx)
		if err == nil && state != "running" && state != "start failed" {
			err = errors.New(state)
		}
		return err
	}) == nil
}

// state returns Patroni's state of its PostgreSQL, such as running or creating replica.
func (n *node) state(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var said struct {
		State string `json:"state"`
	}
	err := n.ask(ctx, http.MethodGet, "/patroni", nil, func(answer *http.Response) error {
		return json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&said) // any status has a body
	})
	return said.State, err
}

// history is the history file of the latest timeline that a node knows: its own, or the one that a standby follows.
// It is empty on the first timeline. Each line is a timeline that ended, and its end. The history of a node that has
// followed another begins with the other's history.
const history = `SELECT coalesce((SELECT pg_read_file('pg_wal/' || name) FROM pg_ls_waldir()
	WHERE name ~ '^[0-9A-F]{8}[.]history$' ORDER BY name DESC LIMIT 1), '')`

// forked returns a problem if a standby has another history than the primary. This happens only if the primary has
// taken leadership back from a promoted node. The standby may even stream, if two nodes were promoted to timelines
// with the same number.
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

// resumed looks in the background for the consequences of a pause of the leader.
func (c *Cluster) resumed() {
	if !c.begun.Load() || c.Life.Err() != nil {
		return
	}
	c.Tasks.Go(func() {
		lasting := problems{}
		for until := time.Now().Add(resumedFor); time.Now().Before(until) && wait.Sleep(c.Life, time.Second) == nil; {
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

// Resume resumes a paused node.
func (n *node) Resume(ctx context.Context) error {
	err := n.Server.Resume(ctx)
	if err == nil && !n.store {
		n.cluster.resumed()
	}
	return err
}
