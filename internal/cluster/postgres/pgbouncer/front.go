package pgbouncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/wait"
)

// Before starts servers, and a PgBouncer before their primary. PgBouncer runs beside the clients, outside of the
// nodes' hosts, so that no fault of a node affects it. The parameters are:
//
//	pooler=transaction   a client has a server session for one transaction
//	pooler=session       a client has a server session until it disconnects
//	pooler.NAME=VALUE    a setting of PgBouncer, such as pooler.default_pool_size=50
//
// PgBouncer treats all hosts of a list as equal, and cannot find the one that accepts writes. So its configuration
// names one server, and is rewritten and reloaded when another one leads. join returns the cluster of a pooler and
// its servers.
func (p Params) Before(
	ctx context.Context, o cluster.Options, servers func(context.Context, cluster.Options) (Servers, error), join func(*Front, cluster.Cluster) cluster.Local,
) (cluster.Local, error) {
	program, lacks := find()
	if lacks == nil {
		lacks = p.check(ctx, program)
	}
	if lacks != nil && !(o.DryRun && errors.As(lacks, new(host.MissingError))) {
		return nil, lacks
	}
	behind, err := servers(ctx, o)
	if planned, ok := errors.AsType[*cluster.PlannedError](err); ok {
		return nil, &cluster.PlannedError{Cluster: join(&Front{params: p}, planned.Cluster), Lacks: cmp.Or(planned.Lacks, lacks)}
	}
	if err != nil {
		return nil, err
	}
	f := &Front{params: p, servers: behind}
	if err := f.start(ctx, program, filepath.Join(filepath.Dir(behind.Folder(0)), "pooler")); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return join(f, behind), nil
}

// followEvery is the interval of checks for the leader.
const followEvery = 20 * time.Millisecond

// Servers are a cluster behind a pooler.
type Servers interface {
	cluster.Local
	Folder(number int) string
	Events() []cluster.Event
	Note(format string, args ...any)
}

// Front is a pooler that follows the primary of its servers.
type Front struct {
	params  Params
	servers Servers
	pooler  *Pooler // nil before it has started

	life context.Context
	end  context.CancelFunc
	task sync.WaitGroup

	mu     sync.Mutex
	leader string // the node that the pooler follows
}

// start starts the pooler in a new folder, and makes it follow the primary.
func (f *Front) start(ctx context.Context, program, dir string) error {
	seen := len(f.servers.Events()) // before the leader is asked for, so that no change is missed
	number, err := f.servers.Leader(ctx)
	if err != nil {
		return err
	}
	at, err := f.addressOf(number)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("start PgBouncer: %w", err)
	}
	if f.pooler, err = start(ctx, program, dir, at, server.Superuser, f.params.settings); err != nil {
		return err
	}
	f.leader = fmt.Sprintf("n%d", number)
	f.life, f.end = context.WithCancel(context.Background())
	f.task.Go(func() { f.follow(seen) })
	return nil
}

// addressOf returns a node's address for clients.
func (f *Front) addressOf(number int) (netip.AddrPort, error) {
	u, err := url.Parse(f.servers.NodeURL(number))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("read the address of n%d: %w", number, err)
	}
	return netip.ParseAddrPort(u.Host)
}

// follow makes the pooler follow the nodes in the events from index seen on, until the cluster is stopped. It
// restarts a pooler that has ended.
func (f *Front) follow(seen int) {
	next := f.leader
	for wait.Sleep(f.life, followEvery) == nil {
		events := f.servers.Events()
		for _, e := range events[seen:] {
			if e.Leader != "" {
				next = e.Leader
			}
		}
		seen = len(events)
		if !f.pooler.Running() {
			f.servers.Note("PgBouncer has ended, and is started again")
			if err := f.pooler.Restart(f.life); err != nil && f.life.Err() == nil {
				f.servers.Note("PgBouncer did not start: %v", err)
			}
			continue
		}
		if next == f.following() {
			continue
		}
		if err := f.turnTo(next); err != nil && f.life.Err() == nil {
			f.servers.Note("%v", err)
		}
	}
}

// consoleLimit bounds one change of the primary in the pooler.
const consoleLimit = 2 * time.Second

// turnTo makes the pooler follow a node.
func (f *Front) turnTo(name string) error {
	ctx, cancel := context.WithTimeout(f.life, consoleLimit)
	defer cancel()
	var number int
	if _, err := fmt.Sscanf(name, "n%d", &number); err != nil {
		return fmt.Errorf("make PgBouncer follow the primary: %q is not a node: %w", name, err)
	}
	at, err := f.addressOf(number)
	if err == nil {
		err = f.pooler.Follow(ctx, at)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.leader = name
	f.mu.Unlock()
	f.servers.Note("PgBouncer sends transactions to %s", name)
	return nil
}

func (f *Front) following() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leader
}

// URL returns the pooler's address. A client with its own session can keep prepared statements.
func (f *Front) URL() string {
	query := "connect_timeout=2"
	if f.params.mode == session {
		query += "&prepare=true"
	}
	return f.pooler.URL(server.Superuser, server.Superuser, query)
}

// Pooler returns the running pooler.
func (f *Front) Pooler() *Pooler { return f.pooler }

// PoolerPIDs returns the pooler's processes.
func (f *Front) PoolerPIDs() []int { return f.pooler.PIDs() }

// WaitHealthy waits for the servers, and then until the pooler sends transactions to the leader.
func (f *Front) WaitHealthy(ctx context.Context) error {
	if err := f.servers.WaitHealthy(ctx); err != nil {
		return err
	}
	err := wait.Retry(ctx, func() error {
		number, err := f.servers.Leader(ctx)
		if err != nil {
			return err
		}
		if at := f.following(); at != fmt.Sprintf("n%d", number) {
			return fmt.Errorf("it sends transactions to %s, but n%d leads", at, number)
		}
		return f.pooler.ready(ctx)
	})
	if err != nil {
		return fmt.Errorf("wait until PgBouncer follows the primary: %w", err)
	}
	return nil
}

// Stop ends the pooler and then the servers. It may be called again.
func (f *Front) Stop() error {
	if f.end != nil {
		f.end()
	}
	f.task.Wait()
	var err error
	if f.pooler != nil {
		err = f.pooler.Stop()
	}
	return errors.Join(err, f.servers.Stop())
}
