package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/cluster/wait"
)

const (
	// usualPriority is Redis's default of replica-priority. A replica with neverPriority is not promoted.
	usualPriority, neverPriority = "100", "0"
	// undoMove bounds the cleanup after a requested failover.
	undoMove = 5 * time.Second
)

// MoveLeader makes a node the primary by SENTINEL FAILOVER, unless it leads already. The Sentinel chooses the
// replica. So the others get the priority that excludes them, which the Sentinel sees at its next query, within 10 s.
//
// The old primary is not asked to stop. It accepts writes until the Sentinels make it a replica, and these writes are
// lost.
func (c *SentinelCluster) MoveLeader(ctx context.Context, to int) error {
	if slices.Contains(c.Witnesses(), to) {
		return fmt.Errorf("n%d has a Sentinel and no data", to)
	}
	return c.HandOver(ctx, to, c.leads, c.move)
}

// move tries once.
func (c *Cluster) move(ctx context.Context, p, target *server) (err error) {
	others := slices.DeleteFunc(c.servers(), func(n *server) bool { return n == p || n == target || !n.Awake() })
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoMove)
		defer cancel()
		for _, n := range others { // a restart resets it
			err = errors.Join(err, n.prioritize(limited, usualPriority))
		}
	}()
	for _, n := range others {
		if err := n.prioritize(ctx, neverPriority); err != nil {
			return err
		}
	}
	if err := wait.Retry(ctx, func() error { return target.alone(ctx, others) }); err != nil {
		return err
	}
	once := newSession(target.sentinelAt.address(), askLimit) // it sends nothing twice
	defer once.close()
	began := time.Now()
	if _, err := once.ask(ctx, "SENTINEL", "FAILOVER", master); err != nil {
		return err
	}
	if err := c.AwaitLead(ctx, target); err != nil {
		return err
	}
	c.Note("%s leads, %v after SENTINEL FAILOVER was sent", target.Name(), time.Since(began).Round(time.Millisecond))
	return nil
}

// prioritize sets a node's priority, also in its configuration file, because the Sentinels make the server write the
// file whenever its role changes.
func (n *server) prioritize(ctx context.Context, priority string) error {
	if !n.Awake() {
		return nil
	}
	_, err := n.orders.ask(ctx, "CONFIG", "SET", "replica-priority", priority)
	if err == nil {
		_, err = n.orders.ask(ctx, "CONFIG", "REWRITE")
	}
	return err
}

// alone returns why the node's Sentinel may choose another replica, or nil.
func (n *server) alone(ctx context.Context, others []*server) error {
	replicas, err := askReplicas(ctx, n.sentinelS)
	if err != nil {
		return err
	}
	for _, r := range replicas {
		if slices.ContainsFunc(others, func(o *server) bool { return o.address() == r.address() }) && r["slave-priority"] != neverPriority {
			return fmt.Errorf("the Sentinel of %s has not seen yet that %s must not lead", n.Name(), r.address())
		}
	}
	return nil
}

// instance is a Sentinel's knowledge of a server, by the names in the reply to SENTINEL MASTER and SENTINEL REPLICAS:
// https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/.
type instance map[string]string

func (i instance) address() string { return i["ip"] + ":" + i["port"] }

// well reports whether the flags contain only the role.
func (i instance) well(as string) bool { return i["flags"] == as }

func parseInstance(words []any) instance {
	i := instance{}
	for at := 0; at+1 < len(words); at += 2 {
		i[fmt.Sprint(words[at])] = fmt.Sprint(words[at+1])
	}
	return i
}

func askMaster(ctx context.Context, s *session) (instance, error) {
	answer, err := s.do(ctx, "SENTINEL", "MASTER", master)
	if err != nil {
		return nil, err
	}
	words, err := answer.Slice()
	return parseInstance(words), err
}

func askReplicas(ctx context.Context, s *session) (list []instance, err error) {
	answer, err := s.do(ctx, "SENTINEL", "REPLICAS", master)
	if err != nil {
		return nil, err
	}
	all, err := answer.Slice()
	for _, one := range all {
		words, _ := one.([]any)
		list = append(list, parseInstance(words))
	}
	return list, err
}

// agrees returns why a node's Sentinel could not fail over to any replica of p, or nil.
func (c *Cluster) agrees(ctx context.Context, n, p *server) error {
	m, err := askMaster(ctx, n.sentinelS)
	if err != nil {
		return fmt.Errorf("the Sentinel of %s does not answer: %w", n.Name(), err)
	}
	others, replicas := len(c.List())-1, c.data-1
	switch {
	case m.address() != p.address():
		return fmt.Errorf("the Sentinel of %s names the primary %s, but most name %s", n.Name(), m.address(), p.Name())
	case !m.well("master"):
		return fmt.Errorf("the Sentinel of %s regards the primary %s as %q", n.Name(), p.Name(), m["flags"])
	case m["num-other-sentinels"] != strconv.Itoa(others):
		return fmt.Errorf("the Sentinel of %s knows %s of %d other Sentinels", n.Name(), m["num-other-sentinels"], others)
	}
	list, err := askReplicas(ctx, n.sentinelS)
	if err == nil && len(list) != replicas {
		err = fmt.Errorf("the Sentinel of %s knows %d of %d replicas", n.Name(), len(list), replicas)
	}
	if err != nil {
		return err
	}
	for _, r := range list {
		if !r.well("slave") || r["master-link-status"] != "ok" {
			return fmt.Errorf("the Sentinel of %s regards the replica %s as %q, with its link to the primary %q", n.Name(), r.address(), r["flags"], r["master-link-status"])
		}
	}
	return nil
}
