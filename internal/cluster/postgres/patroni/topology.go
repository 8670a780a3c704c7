package patroni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/wait"
)

var errNoPrimary = errors.New("no node that runs has Patroni's leader key and takes writes")

// leads returns the node that has Patroni's leader key and accepts writes.
func (c *Cluster) leads(ctx context.Context) (*node, error) {
	name, err := c.key(ctx, "leader")
	if err != nil {
		return nil, err
	}
	nodes := c.servers()
	at := slices.IndexFunc(nodes, func(n *node) bool { return n.Name() == name && n.Awake() })
	if at < 0 {
		return nil, errNoPrimary
	}
	recovering, err := nodes[at].recovering(ctx)
	if err == nil && recovering {
		err = fmt.Errorf("%s, which has Patroni's leader key, is still a standby", name)
	}
	return nodes[at], err
}

// recovering reports whether the node is a standby.
func (n *node) recovering(ctx context.Context) (bool, error) {
	return server.One[bool](ctx, n.over, "SELECT pg_is_in_recovery()")
}

// standing is a standby in the view of its primary.
type standing struct {
	Replayed    int64 // position in the log in bytes
	Synchronous bool  // its sender process in the primary is synchronous
}

// view is a primary's state and its view of the standbys that stream from it.
type view struct {
	Flushed  int64 // position up to which its log is on disk
	Standbys map[string]standing
	history  string // of its timeline; only healthy asks for it
}

func look(ctx context.Context, p *node) (v view, err error) {
	text, err := server.One[string](ctx, p.over, `SELECT json_build_object('Flushed', (pg_current_wal_flush_lsn() - '0/0')::bigint,
		'Standbys', (SELECT json_object_agg(application_name, json_build_object(
			'Synchronous', coalesce(sync_state IN ('sync', 'quorum'), false), 'Replayed', coalesce(replay_lsn - '0/0', 0)::bigint))
			FROM pg_stat_replication WHERE state = 'streaming'))::text`)
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		return v, fmt.Errorf("ask %s for its standbys: %w", p.Name(), err)
	}
	return v, nil
}

// healthy begins a wait until every node answers over the network in its role. Every standby must have the
// primary's history, stream from it, and have replayed its log up to the first check. With synchronous replication,
// Patroni must be able to promote a standby. Patroni's own state of a member is not used: it may report a standby as
// running, with no lag, that does not stream. Problems that Patroni does not heal are repaired meanwhile.
func (c *Cluster) healthy() func(context.Context) error {
	var target int64
	var of *node
	lasting := problems{}
	return func(ctx context.Context) error {
		p, err := c.leads(ctx)
		if err != nil {
			return err
		}
		v, err := look(ctx, p)
		if err != nil {
			return err
		}
		if v.history, err = server.One[string](ctx, p.over, history); err != nil {
			return fmt.Errorf("ask %s for the history of its timeline: %w", p.Name(), err)
		}
		if of != p {
			of, target, lasting = p, v.Flushed, problems{}
		}
		var wrong, first *unsound
		for _, n := range c.servers() {
			if n == p {
				wrong, err = c.unpromotable(ctx, p, v)
			} else {
				wrong, err = c.sound(ctx, n, p, v, target)
			}
			if err != nil {
				return err
			}
			if lasting.lasts(n, wrong, c.stuckFor) && c.begun.Load() {
				c.repair(ctx, wrong)
			}
			if wrong != nil && (first == nil || first.node == p) { // a standby's problem is the cause
				first = wrong
			}
		}
		if first != nil {
			return first
		}
		return nil
	}
}

// unpromotable returns a problem if Patroni should be able to promote a standby of a primary, but is not.
func (c *Cluster) unpromotable(ctx context.Context, p *node, v view) (*unsound, error) {
	if c.params.synchronous == synchronousOff {
		return nil, nil
	}
	names, err := c.synchronousStandbys(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Split(names, ",") {
		if v.Standbys[name].Synchronous {
			return nil, nil
		}
	}
	wrong := &unsound{p, "waits for no standby yet that Patroni may promote", noRemedy, nil}
	if len(v.Standbys) == len(c.servers())-1 {
		wrong.remedy = restart // its Patroni does not know the standbys, which stream
	}
	return wrong, nil
}

// sound returns the problem of a standby, or nil.
func (c *Cluster) sound(ctx context.Context, n, p *node, v view, target int64) (*unsound, error) {
	recovering, err := n.recovering(ctx)
	s, streams := v.Standbys[n.Name()]
	if err == nil && recovering {
		if wrong, err := forked(ctx, n, p, v.history); wrong != nil || err != nil {
			return wrong, err
		}
	}
	switch {
	case err != nil:
		// A standby whose data are of a timeline that the primary does not have may not start.
		return &unsound{n, "does not answer over the network", reinitialize, err}, nil
	case !recovering:
		return &unsound{n, "is a primary beside " + p.Name(), restart, nil}, nil
	case !streams:
		return &unsound{n, "does not stream from " + p.Name(), reinitialize, nil}, nil
	case s.Replayed < target:
		return &unsound{n, fmt.Sprintf("has %d bytes of the log to replay", target-s.Replayed), noRemedy, nil}, nil
	}
	return nil, nil
}

// expendable returns why a node's data must not be removed, or nil.
func (c *Cluster) expendable(ctx context.Context, n *node) error {
	p, err := c.leads(ctx)
	if err == nil && p != n {
		return nil
	}
	if err != nil {
		return err
	}
	v, err := look(ctx, n)
	if err != nil {
		return err
	}
	names, err := c.synchronousStandbys(ctx, n)
	if err != nil {
		return err
	}
	for name := range v.Standbys {
		if c.params.synchronous == synchronousOff || slices.Contains(strings.Split(names, ","), name) {
			return nil
		}
	}
	return errors.New("it leads, and Patroni can promote no standby that streams from it")
}

// undoMove bounds the cleanup after a switch-over.
const undoMove = 5 * time.Second

// MoveLeader moves leadership by POST /switchover of Patroni's REST API, unless the node leads already. With
// synchronous replication Patroni accepts only a synchronous standby, so all standbys are made synchronous meanwhile.
func (c *Cluster) MoveLeader(ctx context.Context, to int) error {
	if slices.Contains(c.Witnesses(), to) {
		return fmt.Errorf("n%d holds Patroni's state and has no data", to)
	}
	return c.HandOver(ctx, to, c.leads, c.switchOver)
}

// switchOver tries once.
func (c *Cluster) switchOver(ctx context.Context, p, target *node) (err error) {
	if c.params.synchronous != synchronousOff {
		promotable := func() error {
			names, err := c.synchronousStandbys(ctx, p)
			if err == nil && !slices.Contains(strings.Split(names, ","), target.Name()) {
				err = fmt.Errorf("%s is not a synchronous standby of %s", target.Name(), p.Name())
			}
			return err
		}
		if promotable() != nil {
			defer func() {
				undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoMove)
				defer cancel()
				err = errors.Join(err, wait.Retry(undo, func() error { return c.synchronousCount(undo, 1) }))
			}()
			if err := c.synchronousCount(ctx, len(c.servers())-1); err != nil {
				return err
			}
			if err := wait.Retry(ctx, promotable); err != nil {
				return err
			}
		}
	}
	began := time.Now()
	err = p.call(ctx, http.MethodPost, "/switchover", object{"leader": p.Name(), "candidate": target.Name()})
	if err == nil {
		err = c.AwaitLead(ctx, target)
	}
	if err == nil {
		c.Note("%s leads, %v after the switch-over was asked for", target.Name(), time.Since(began).Round(time.Millisecond))
	}
	return err
}

// synchronousCount sets how many standbys Patroni makes synchronous.
func (c *Cluster) synchronousCount(ctx context.Context, count int) error {
	p, err := c.leads(ctx)
	if err != nil {
		return err
	}
	return p.call(ctx, http.MethodPatch, "/config", object{"synchronous_node_count": count})
}

// call sends a request to Patroni on the node.
func (n *node) call(ctx context.Context, method, path string, body object) error {
	return n.ask(ctx, method, path, body, func(answer *http.Response) error {
		said, err := io.ReadAll(io.LimitReader(answer.Body, 1000))
		if err == nil && answer.StatusCode/100 != 2 {
			err = fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(said)))
		}
		return err
	})
}

// ask sends a request to Patroni on the node and reads its answer:
// https://patroni.readthedocs.io/en/latest/rest_api.html.
func (n *node) ask(ctx context.Context, method, path string, body object, read func(*http.Response) error) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+n.rest.String()+path, &sent)
	if err != nil {
		return err
	}
	request.Close = true // no connection outlives the server process
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err == nil {
		defer answer.Body.Close()
		err = read(answer)
	}
	if err != nil {
		return fmt.Errorf("ask Patroni on %s for %s: %w", n.Name(), path, err)
	}
	return nil
}
