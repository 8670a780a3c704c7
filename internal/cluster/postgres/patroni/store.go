package patroni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"stroppy/internal/cluster/wait"
)

// startStore starts all etcd servers at once.
func (c *Cluster) startStore(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, storeLimit, fmt.Errorf("etcd, which keeps Patroni's state, had %v to answer: %s", storeLimit, withoutStore))
	defer cancel()
	err := c.Each(func(n *node) error {
		if !n.store {
			return nil
		}
		return n.Server.Restart(limited)
	})
	if err != nil && limited.Err() != nil {
		return fmt.Errorf("%w%s", context.Cause(limited), c.stores()[0].EndOfLog()) // each server reports it
	}
	return err
}

// withoutStore is the advice for a store that does not answer.
const withoutStore = "see why it hangs"

// errSilent is the reason why a cluster is given up whose store does not answer any more.
var errSilent = fmt.Errorf("etcd, which keeps Patroni's state, has not answered for %v: %s", storeSilence, withoutStore)

// guardStore queries the store until ctx or the cluster ends. It gives up when the store has not answered for
// storeSilence, because waits for Patroni would never end.
func (c *Cluster) guardStore(ctx context.Context, giveUp func(error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.Life, cancel)()
	for {
		limited, done := context.WithTimeout(ctx, storeSilence)
		err := wait.Retry(limited, func() error {
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
		if err != nil || wait.Sleep(ctx, watchEvery) != nil {
			return
		}
	}
}

func (n *node) storeReady(ctx context.Context) error {
	return wait.Retry(ctx, func() error {
		_, err := ask(ctx, n.client.String(), "leader")
		if errors.Is(err, errNoKey) {
			return nil
		}
		return err
	})
}

var errNoKey = errors.New("the store has no such key")

// asker asks etcd over HTTP as Patroni does. Each query uses a new connection, so that none outlives the server
// process. There are 10 to 50 queries a second, and etcd's own client took processor time from the measured run.
var asker = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask asks one server for a key through etcd's gateway: keys and values are base64 in JSON
// (https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/).
func ask(ctx context.Context, endpoint, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	question, err := json.Marshal(map[string][]byte{"key": []byte("/service/" + scope + "/" + name)})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+endpoint+"/v3/kv/range", bytes.NewReader(question))
	if err != nil {
		return "", err
	}
	answer, err := asker.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // use the part that came
		return "", fmt.Errorf("etcd at %s: %s: %s", endpoint, answer.Status, bytes.TrimSpace(said))
	}
	var found struct {
		KVs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		return "", fmt.Errorf("etcd at %s: read its answer: %w", endpoint, err)
	}
	if len(found.KVs) == 0 {
		return "", fmt.Errorf("read %s from Patroni's store: %w", name, errNoKey)
	}
	return string(found.KVs[0].Value), nil
}

// key reads a key of Patroni, linearizably, from the first server of the store that answers. It begins with the
// server that answered last.
func (c *Cluster) key(ctx context.Context, name string) (string, error) {
	stores, last := c.stores(), int(c.answered.Load())
	var failed error
	for i := range stores {
		at := (last + i) % len(stores)
		value, err := ask(ctx, stores[at].client.String(), name)
		if err == nil || errors.Is(err, errNoKey) {
			c.answered.Store(int32(at))
			return value, err
		}
		failed = errors.Join(failed, err)
	}
	return "", fmt.Errorf("read %s from Patroni's store: %w", name, failed)
}

// synchronousStandbys returns the standbys that Patroni may promote, as noted for a primary, or "" if none are noted.
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

// watchEvery is the interval of checks for the leader. awaitEvery is the interval of checks whether the owner of the
// leader key accepts writes.
const watchEvery, awaitEvery = 100 * time.Millisecond, 20 * time.Millisecond

// writes reports whether a transaction commits on a node, like a client's. It writes a message to the log that nobody
// reads.
func (n *node) writes(ctx context.Context) bool {
	return n.over.Ask(ctx, "SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'stroppy', '')") == nil
}

// watch notes when a node becomes the leader, until the cluster is stopped. It becomes the leader when a write on it
// is seen to commit. Before that it must have acquired Patroni's leader key, or was seen as a standby with the key.
func (c *Cluster) watch() {
	holder, awaited, every := "", "", watchEvery
	for wait.Sleep(c.Life, every) == nil {
		if awaited == "" && holder != "" && c.leading.Load() == nil {
			awaited, every = holder, awaitEvery
		}
		if awaited != "" {
			if p, err := c.leads(c.Life); err == nil && p.Name() == awaited && p.writes(c.Life) {
				c.NoteLeader(awaited, "%s takes writes", awaited)
				c.leading.Store(p)
				awaited, every = "", watchEvery
			}
		}
		name, err := c.key(c.Life, "leader")
		switch {
		case err != nil && !errors.Is(err, errNoKey) || name == holder:
			continue
		case name == "":
			c.Note("nobody has Patroni's leader key, which %s had", holder)
			awaited, every = "", watchEvery
		default:
			c.Note("%s has Patroni's leader key", name)
			awaited, every = name, awaitEvery
		}
		c.leading.Store(nil)
		holder = name
	}
}

// watchDemotion notes when the leader is a standby, which ends its leadership. Patroni demotes a primary whose store
// does not answer, and the leader key may stay there.
func (c *Cluster) watchDemotion() {
	for wait.Sleep(c.Life, watchEvery) == nil {
		n := c.leading.Load()
		if n == nil || !n.Awake() {
			continue
		}
		recovering, err := n.recovering(c.Life)
		if err == nil && recovering && c.leading.CompareAndSwap(n, nil) {
			c.Note("%s, which took writes, is a standby", n.Name())
		}
	}
}
