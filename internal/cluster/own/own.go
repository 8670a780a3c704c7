// Package own reaches databases whose servers somebody else started: the servers of a URL, or the nodes of an inventory.
// An inventory is a YAML file with a URL for each node and with commands for the faults. A command or a query names the
// leader, and another one reports the health.
package own

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/system"
	"stroppy/internal/cluster/wait"
)

// Server is one address of a database, as a driver reaches it. Its methods may be called from several goroutines.
type Server interface {
	// Ask runs a query in a session that stays open, and returns the first column of the first row.
	Ask(ctx context.Context, query string) (string, error)
	// Answers opens a new connection and returns the HOST:PORT that answers; empty: the driver does not know it.
	Answers(ctx context.Context) (server string, err error)
	Close() error
}

// Access reaches databases by their URLs.
type Access struct {
	Secret    func(command string) bool // reports whether a command contains a secret
	Check     func(url string) error    // returns an error for a URL that is wrong
	Alone     func(url string) string   // returns the URL that reaches a server whatever its role is
	Addresses func(url string) []string // returns HOST:PORT of each server
	Open      func(url string) Server   // does not connect yet
	// Writers returns the servers of a URL, each of which answers only if it takes writes.
	Writers func(url string) []Server
}

// Limits of the calls to servers.
const (
	askLimit     = time.Second // of a question to one server
	healthyEvery = 200 * time.Millisecond
	watchEvery   = 100 * time.Millisecond // between two questions for the leader, at least
	connectEvery = 250 * time.Millisecond // between two connections that find the server that takes writes, at least
	// The next question may take askShare times as long as the last answered one, and at least askSoon. A server that
	// hangs then delays the news of another one only a little.
	askShare, askSoon = 3, 300 * time.Millisecond
)

// Cluster is a set of servers that this program did not start.
type Cluster struct {
	cluster.EventLog
	inventory
	access  Access
	writers []Server // all servers of the URL
	life    context.Context
	end     context.CancelFunc
	tasks   sync.WaitGroup
	names   map[string]string // the name of a node by HOST:PORT and by IP:PORT

	mu     sync.Mutex
	logger *slog.Logger      // nil: the run has no log yet
	early  []logLine         // until then
	last   map[string]string // the last output of each command that is repeated
}

// Serving returns the servers of a URL. Only commands of the user can hurt them. With dryRun it connects to nothing.
func Serving(url string, dryRun bool, a Access) *Cluster {
	c := newCluster(inventory{url: url, equal: true, timeout: commandLimit}, a)
	if !dryRun {
		c.watch(connectEvery, func(ctx context.Context) (string, error) {
			_, server, err := c.writing(ctx)
			return server, err
		})
	}
	return c
}

func newCluster(i inventory, a Access) *Cluster {
	c := &Cluster{inventory: i, access: a, writers: a.Writers(i.url), names: map[string]string{}, last: map[string]string{}}
	c.life, c.end = context.WithCancel(context.Background())
	for _, n := range c.nodes {
		n.cluster = c
		n.server = a.Open(n.url)
	}
	return c
}

// Start reads an inventory and returns its nodes, once the leader is known and the cluster is healthy. It starts and
// stops nothing. With o.DryRun it only reads the inventory, and the error is a *cluster.PlannedError.
func Start(ctx context.Context, file string, o cluster.Options, a Access) (*Cluster, error) {
	i, err := read(file, a)
	if err != nil {
		return nil, err
	}
	c := newCluster(i, a)
	if o.DryRun {
		return nil, &cluster.PlannedError{Cluster: c}
	}
	if err := c.ready(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	for _, n := range c.nodes {
		c.findNames(ctx, n)
	}
	if !c.equal {
		c.watch(watchEvery, func(ctx context.Context) (string, error) {
			number, err := c.Leader(ctx)
			return fmt.Sprintf("n%d", number), err
		})
	}
	return c, nil
}

// ready waits until the cluster is healthy and has a leader.
func (c *Cluster) ready(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("it had %v", c.timeout))
	defer cancel()
	if err := c.WaitHealthy(limited); err != nil {
		return err
	}
	if c.equal {
		return nil
	}
	return wait.RetryEvery(limited, healthyEvery, func() error {
		_, err := c.Leader(limited)
		return err
	})
}

// findNames notes the addresses of a node, by which clients know it.
func (c *Cluster) findNames(ctx context.Context, n *node) {
	if n.address == "" {
		return
	}
	c.names[n.address] = n.Name()
	name, port, err := net.SplitHostPort(n.address)
	if err != nil {
		return
	}
	found, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return // the clients' connections are then shown by their addresses
	}
	for _, ip := range found {
		c.names[net.JoinHostPort(ip, port)] = n.Name()
	}
}

// NameOf returns the node at a HOST:PORT, or the address itself.
func (c *Cluster) NameOf(server string) string { return cmp.Or(c.names[server], server) }

// URL returns the address of the whole database.
func (c *Cluster) URL() string { return c.url }

// NodeURL returns the address of a node alone.
func (c *Cluster) NodeURL(i int) string {
	if i < 0 || i >= len(c.nodes) {
		return ""
	}
	return c.nodes[i].url
}

// Nodes returns the nodes of the inventory; none for the servers of a URL.
func (c *Cluster) Nodes() []cluster.Node {
	list := make([]cluster.Node, len(c.nodes))
	for i, n := range c.nodes {
		list[i] = n
		if n.commands[start] == nil {
			list[i] = supervised{n}
		}
	}
	return list
}

// Listed reports whether the servers are the nodes of an inventory.
func (c *Cluster) Listed() bool { return c.file != "" }

// WaitHealthy waits until each node answers and the command or the query of the inventory succeeds.
func (c *Cluster) WaitHealthy(ctx context.Context) error {
	return wait.RetryEvery(ctx, healthyEvery, func() error {
		if len(c.nodes) == 0 {
			_, _, err := c.writing(ctx)
			return err
		}
		for _, n := range c.nodes {
			if _, err := c.answers(ctx, n.server); err != nil {
				return fmt.Errorf("%s does not answer: %w", n.title(), err)
			}
		}
		return c.healthy.check(ctx, c)
	})
}

// answers asks a server within askLimit.
func (c *Cluster) answers(ctx context.Context, s Server) (string, error) {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return s.Answers(limited)
}

// writing returns the server that takes writes and its address. All are asked at once, because one may hang.
func (c *Cluster) writing(ctx context.Context) (Server, string, error) {
	type reply struct {
		server  Server
		address string
		err     error
	}
	replies := make(chan reply, len(c.writers))
	for _, s := range c.writers {
		go func() {
			address, err := c.answers(ctx, s)
			replies <- reply{s, address, err}
		}()
	}
	var failed error
	for range c.writers {
		r := <-replies
		if r.err == nil {
			return r.server, r.address, nil
		}
		failed = errors.Join(failed, r.err)
	}
	return nil, "", failed
}

// watch notes each change of the server that takes writes, until the cluster is stopped.
func (c *Cluster) watch(every time.Duration, ask func(context.Context) (string, error)) {
	c.tasks.Go(func() {
		limit := askLimit
		for known := ""; c.life.Err() == nil; {
			began, pause := time.Now(), every
			limited, cancel := context.WithTimeout(c.life, max(limit, c.leader.limit(c)))
			now, err := ask(limited)
			cancel()
			if err == nil {
				limit = min(max(askSoon, askShare*time.Since(began)), askLimit)
			}
			if err == nil && now != "" && now != known {
				known = now
				c.NoteLeader(now, "%s takes writes", now)
			}
			if c.leader.command != nil { // it takes processor time from the run
				pause = max(every, askShare*time.Since(began))
			}
			_ = wait.Sleep(c.life, pause) // the loop sees the end
		}
	})
}

// Observe returns which server takes writes now.
func (c *Cluster) Observe(ctx context.Context) string {
	_, server, err := c.writing(ctx)
	switch {
	case err != nil:
		return "no server takes writes"
	case server == "":
		return "the database answers"
	}
	return c.NameOf(server) + " takes writes"
}

// Promise records a command that heals a fault. If this program is killed, its next start runs the command.
func (c *Cluster) Promise(heal string) (kept func() error, err error) {
	if system.Supported() != nil || c.access.Secret(heal) { // no other system has records, and no file has a secret
		c.note("not kept for a start after a crash", host.Output{All: heal}, nil, false)
		return func() error { return nil }, nil
	}
	record, err := host.NewRecord("a fault of " + cmp.Or(c.file, "--db"))
	if err == nil {
		err = record.Add(host.Leftover{Kind: host.LeftFault, Name: heal})
	}
	if err != nil {
		return nil, fmt.Errorf("note how the fault is healed after a crash: %w", err)
	}
	return record.Close, nil
}

// Stop ends the observation. The servers stay as they are.
func (c *Cluster) Stop() error {
	c.end()
	c.tasks.Wait()
	var err error
	for _, s := range c.writers {
		err = errors.Join(err, s.Close())
	}
	for _, n := range c.nodes {
		err = errors.Join(err, n.server.Close())
	}
	return err
}

// Leader returns the node that accepts writes, as the command or the query of the inventory names it.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	switch {
	case c.equal:
		return -1, cluster.ErrNoLeader
	case ctx.Err() != nil: // a dry run asks nobody
		return -1, context.Cause(ctx)
	case c.leader.command != nil:
		out, err := c.run(ctx, c.leader.command, nil, true)
		if err != nil {
			return -1, err
		}
		return c.named(out.Answer)
	}
	return c.askLeader(ctx)
}

// named returns the node that an answer names.
func (c *Cluster) named(answer string) (int, error) {
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.is(answer) })
	if i < 0 {
		return -1, fmt.Errorf("%s answered %q, which names no node of the inventory", c.leader.place(), answer)
	}
	return i, nil
}

// settle is how long other nodes may also claim to lead after the first did.
const settle = 20 * time.Millisecond

// askLeader asks all nodes at once. A node leads if its answer is true or names it.
func (c *Cluster) askLeader(ctx context.Context) (int, error) {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	type reply struct {
		leader int
		err    error
	}
	replies := make(chan reply, len(c.nodes))
	for _, n := range c.nodes {
		go func() {
			answer, err := n.server.Ask(limited, c.leader.query)
			r := reply{-1, err}
			switch {
			case err != nil:
				r.err = fmt.Errorf("%s: ask %s: %w", c.leader.place(), n.title(), err)
			case isTrue(answer):
				r.leader = n.number
			case !isFalse(answer):
				r.leader, r.err = c.named(answer)
			}
			replies <- r
		}()
	}
	found, failed, patience := -1, error(nil), (<-chan time.Time)(nil)
	for range c.nodes {
		select {
		case r := <-replies:
			failed = errors.Join(failed, r.err)
			if r.leader >= 0 && found >= 0 && r.leader != found {
				return -1, fmt.Errorf("%s: n%d and n%d both claim to lead", c.leader.place(), found, r.leader)
			}
			if r.leader >= 0 && found < 0 {
				found, patience = r.leader, time.After(settle)
			}
			continue
		case <-patience:
		case <-limited.Done():
		}
		break
	}
	if found < 0 {
		return -1, cmp.Or(failed, fmt.Errorf("%s: no node leads", c.leader.place()))
	}
	return found, nil
}
