package patroni

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
)

// startStore starts all etcd servers at once.
func (c *Cluster) startStore(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, storeLimit, fmt.Errorf("etcd, which keeps Patroni's state, had %v to answer: %s", storeLimit, withoutStore))
	defer cancel()
	return c.Each(func(n *node) error {
		if !n.store {
			return nil
		}
		err := n.Server.Restart(limited)
		if err != nil && limited.Err() != nil {
			err = errors.Join(context.Cause(limited), err)
		}
		return err
	})
}

// withoutStore is what to do about a store that does not answer.
const withoutStore = "see why it hangs, or take failover=" + bySupervisor + ", stroppy's own supervisor, which needs none"

// errSilent is why a cluster whose store has stopped to answer is given up.
var errSilent = fmt.Errorf("etcd, which keeps Patroni's state, has not answered for %v: %s", storeSilence, withoutStore)

// guardStore asks the store until ctx or the cluster ends, and gives up when it has not
// answered for storeSilence: what waits for Patroni meanwhile would wait without end.
func (c *Cluster) guardStore(ctx context.Context, giveUp func(error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.Life, cancel)()
	for {
		limited, done := context.WithTimeout(ctx, storeSilence)
		err := cluster.Retry(limited, func() error {
			_, err := c.key(limited, "leader")
			if errors.Is(err, errNoKey) {
				return nil
			}
			return err
		})
		done()
		if err != nil && ctx.Err() == nil {
			giveUp(errSilent)
		}
		if err != nil || cluster.Sleep(ctx, watchEvery) != nil {
			return
		}
	}
}

func (n *node) storeReady(ctx context.Context) error {
	return cluster.Retry(ctx, func() error {
		_, err := get(ctx, []string{n.client.String()}, "leader")
		if errors.Is(err, errNoKey) {
			return nil
		}
		return err
	})
}

var errNoKey = errors.New("the store has no such key")

// get reads a key of Patroni's, linearizably.
func get(ctx context.Context, endpoints []string, name string) (string, error) {
	answer, err := etcd.Ask(ctx, endpoints, askLimit, func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, "/service/"+scope+"/"+name)
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("read %s from Patroni's store: %w", name, err)
	case len(answer.Kvs) == 0:
		return "", fmt.Errorf("read %s from Patroni's store: %w", name, errNoKey)
	}
	return string(answer.Kvs[0].Value), nil
}

// key reads a key of Patroni's from any etcd server.
func (c *Cluster) key(ctx context.Context, name string) (string, error) {
	var endpoints []string
	for _, n := range c.stores() {
		endpoints = append(endpoints, n.client.String())
	}
	return get(ctx, endpoints, name)
}

// synchronousStandbys are the standbys of which Patroni promotes one, as it has noted them
// for a primary; empty while it has noted none.
func (c *Cluster) synchronousStandbys(ctx context.Context, p *node) (names string, err error) {
	text, err := c.key(ctx, "sync")
	if errors.Is(err, errNoKey) {
		return "", nil
	}
	var noted struct {
		Leader  string `json:"leader"`
		Standby string `json:"sync_standby"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &noted)
	}
	if err == nil && noted.Leader == p.Name() {
		names = noted.Standby
	}
	return names, err
}

// watchEvery is the time between two looks at who leads, and awaitEvery that between two at
// whether the node that has the leader key takes writes.
const watchEvery, awaitEvery = 100 * time.Millisecond, 20 * time.Millisecond

// writes says that a transaction commits on a node, as one of a client does. What it writes is
// a message in the log that nobody reads.
func (n *node) writes(ctx context.Context) bool {
	return n.over.Ask(ctx, "SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'stroppy', '')") == nil
}

// watch notes when another node leads, which it does when it has Patroni's leader key and a
// write on it was seen to commit, until the cluster is stopped.
func (c *Cluster) watch() {
	last, awaited, every := "", "", watchEvery
	for cluster.Sleep(c.Life, every) == nil {
		if awaited != "" {
			if p, err := c.leads(c.Life); err == nil && p.Name() == awaited && p.writes(c.Life) {
				c.NoteLeader(awaited, "%s takes writes", awaited)
				awaited, every = "", watchEvery
			}
		}
		name, err := c.key(c.Life, "leader")
		switch {
		case err != nil && !errors.Is(err, errNoKey) || name == last:
		case name == "":
			c.Note("nobody has Patroni's leader key, which %s had", last)
		default:
			c.Note("%s has Patroni's leader key", name)
			last, awaited, every = name, name, awaitEvery
		}
	}
}
