package postgres

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
	"sync/atomic"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/patroni"
	"stroppy/internal/cluster/postgres/pgbouncer"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/wait"
)

// startPooled starts servers, and a PgBouncer before their primary. PgBouncer runs beside the clients, outside of the
// nodes' hosts, so that no fault of a node affects it.
//
// PgBouncer treats all hosts of a list as equal, and cannot find the one that accepts writes. So its configuration
// names one server, and is rewritten and reloaded when another one leads.
func startPooled(ctx context.Context, o cluster.Options, p pgbouncer.Params) (cluster.Local, error) {
	program, lacks := p.Find(ctx)
	if lacks != nil && !(o.DryRun && errors.As(lacks, new(host.MissingError))) {
		return nil, lacks
	}
	behind, err := startServers(ctx, o)
	if planned, ok := errors.AsType[*cluster.PlannedError](err); ok {
		return nil, &cluster.PlannedError{Cluster: join(&front{params: p}, planned.Cluster), Lacks: cmp.Or(planned.Lacks, lacks)}
	}
	if err != nil {
		return nil, err
	}
	f := &front{params: p, servers: behind}
	if err := f.start(ctx, program, filepath.Join(filepath.Dir(behind.Folder(0)), "pooler")); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return join(f, behind), nil
}

// The clusters behind a pooler. The methods of front hide the methods of the servers, which are embedded one level
// deeper.
type (
	pooledServer struct {
		*front
		oneServer
	}
	oneServer     struct{ *server.Cluster }
	pooledPatroni struct {
		*front
		underPatroni
	}
	underPatroni struct{ *patroni.Cluster }
)

var _ cluster.Mover = (*pooledPatroni)(nil)

// join returns the cluster of a pooler and its servers.
func join(f *front, servers cluster.Cluster) cluster.Local {
	if one, ok := servers.(*server.Cluster); ok {
		return &pooledServer{f, oneServer{one}}
	}
	return &pooledPatroni{f, underPatroni{servers.(*patroni.Cluster)}}
}

// followEvery is the interval of checks for the leader.
const followEvery = 20 * time.Millisecond

// servers are a cluster behind a pooler.
type servers interface {
	cluster.Local
	Folder(number int) string
	Events() []cluster.Event
	Note(format string, args ...any)
}

// front is a pooler that follows the primary of its servers.
type front struct {
	params  pgbouncer.Params
	servers servers
	pooler  *pgbouncer.Pooler // nil before it has started

	life context.Context
	end  context.CancelFunc
	task sync.WaitGroup

	leader atomic.Int64 // the number of the node that the pooler follows
}

// start starts the pooler in a new folder, and makes it follow the primary.
func (f *front) start(ctx context.Context, program, dir string) error {
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
	if f.pooler, err = f.params.Start(ctx, program, dir, at); err != nil {
		return err
	}
	f.leader.Store(int64(number))
	f.life, f.end = context.WithCancel(context.Background())
	f.task.Go(func() { f.follow(seen) })
	return nil
}

// addressOf returns a node's address for clients.
func (f *front) addressOf(number int) (netip.AddrPort, error) {
	u, err := url.Parse(f.servers.NodeURL(number))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("read the address of n%d: %w", number, err)
	}
	return netip.ParseAddrPort(u.Host)
}

// follow makes the pooler follow the nodes in the events from index seen on, until the cluster is stopped. It
// restarts a pooler that has ended.
func (f *front) follow(seen int) {
	next := int(f.leader.Load())
	for wait.Sleep(f.life, followEvery) == nil {
		events := f.servers.Events()
		for _, e := range events[seen:] {
			_, _ = fmt.Sscanf(e.Leader, "n%d", &next) // most events name none
		}
		seen = len(events)
		if !f.pooler.Running() {
			f.servers.Note("PgBouncer has ended, and is started again")
			if err := f.pooler.Restart(f.life); err != nil && f.life.Err() == nil {
				f.servers.Note("PgBouncer did not start: %v", err)
			}
			continue
		}
		if int64(next) == f.leader.Load() {
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
func (f *front) turnTo(number int) error {
	ctx, cancel := context.WithTimeout(f.life, consoleLimit)
	defer cancel()
	at, err := f.addressOf(number)
	if err == nil {
		err = f.pooler.Follow(ctx, at)
	}
	if err == nil {
		f.leader.Store(int64(number))
		f.servers.Note("PgBouncer sends transactions to n%d", number)
	}
	return err
}

// URL returns the pooler's address. A client with its own session can keep prepared statements.
func (f *front) URL() string {
	query := "connect_timeout=2"
	if f.params.Mode == pgbouncer.Session {
		query += "&prepare=true"
	}
	return f.pooler.URL(server.Superuser, server.Superuser, query)
}

// PoolerPIDs returns the pooler's processes.
func (f *front) PoolerPIDs() []int { return f.pooler.PIDs() }

// WaitHealthy waits for the servers, and then until the pooler sends transactions to the leader.
func (f *front) WaitHealthy(ctx context.Context) error {
	if err := f.servers.WaitHealthy(ctx); err != nil {
		return err
	}
	err := wait.Retry(ctx, func() error {
		number, err := f.servers.Leader(ctx)
		if err != nil {
			return err
		}
		if at := f.leader.Load(); at != int64(number) {
			return fmt.Errorf("it sends transactions to n%d, but n%d leads", at, number)
		}
		return f.pooler.Ready(ctx)
	})
	if err != nil {
		return fmt.Errorf("wait until PgBouncer follows the primary: %w", err)
	}
	return nil
}

// Stop ends the pooler and then the servers. It may be called again.
func (f *front) Stop() error {
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
