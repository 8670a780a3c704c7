package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// shutdownLimit bounds a shutdown in good order, in which a primary lets replicas that
// lag catch up for shutdown-timeout, 10 s if it is not set.
const shutdownLimit = 15 * time.Second

// insist is how often a shutdown is asked for: Redis forgets the one that it is asked
// for while it writes its first append-only file, as a replica does that has just
// got everything ("Writing initial AOF, can't exit", src/server.c).
const insist = 500 * time.Millisecond

// member is one server of a Cluster: a place with a folder and a port, which stay
// when its data are taken away.
type member struct {
	*cluster.SupervisedNode
	cluster  *Cluster
	folder   string // with the configuration, the log, and the data below it
	endpoint netip.AddrPort

	health *session // asks all the time whether the server lives
	orders *session // for all else

	leading atomic.Bool // it is being started as the primary

	// What is known of the server's present process, guarded by the cluster's Mu.
	lives     int     // how many processes there were
	seen      view    // what it said last
	following *member // the primary all of whose data it has had, and then followed; nil: none
}

var errLeads = errors.New("it has come to lead meanwhile")

// newMember makes the folder of a node and describes its server.
func (c *Cluster) newMember(ctx context.Context, number int, host *cluster.Host) (_ *member, err error) {
	m := &member{cluster: c, folder: c.Folder(number)}
	if err = c.TakeEndpoints(ctx, host, map[int]*netip.AddrPort{6379: &m.endpoint}); err != nil {
		return nil, err
	}
	if err := c.MakeFolder(m.folder, number, 0o700); err != nil {
		return nil, err
	}
	data := filepath.Join(m.folder, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, errors.Join(err, os.RemoveAll(m.folder))
	}
	m.SupervisedNode = c.NewSupervisedNode(m, c.NewServer(number, host, data, filepath.Join(m.folder, "server.log"), cluster.Program{
		Command: m.command, Ready: m.ready, Join: func(context.Context) error { return nil },
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit, Insist: insist,
		FaultFS: c.Options.FaultFS,
	}))
	m.health, m.orders = newSession(m.address(), c.params.timeout), newSession(m.address(), c.params.timeout)
	return m, nil
}

func (m *member) host() string { return m.endpoint.Addr().String() }

func (m *member) port() string { return strconv.Itoa(int(m.endpoint.Port())) }

func (m *member) address() string { return m.endpoint.String() }

// configure writes redis.conf, the caller's settings over ours, except those by
// which the cluster works.
func (m *member) configure() error {
	all := map[string]string{
		"appendonly": "yes",
		"save":       "", // snapshots add nothing to the append-only file
		// See prepare.
		"repl-diskless-sync": "no",
		// A link that a cut has killed is noticed and made anew in seconds, and what
		// was missed comes without a copy of everything.
		"repl-ping-replica-period": "1",
		"repl-timeout":             "5",
		"repl-backlog-size":        "32mb",
		"maxclients":               strconv.Itoa(m.cluster.Options.MaxConnections(10_000)), // the server's own number, or more
	}
	maps.Copy(all, m.cluster.params.settings)
	maps.Copy(all, map[string]string{
		"bind": m.host(),
		"port": m.port(),
		"dir":  m.Dir(),
		// The address is one that this machine alone can reach.
		"protected-mode": "no",
	})
	text := cluster.SettingLines(all, func(name, value string) string {
		if value == "" {
			value = `""`
		}
		return name + " " + value
	})
	if err := os.WriteFile(m.conf(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("configure %s: %w", m.Name(), err)
	}
	return nil
}

func (m *member) conf() string { return filepath.Join(m.folder, "redis.conf") }

// command makes the command that starts the server in its role. Nobody becomes
// the primary but by lead, which holds the roles.
func (m *member) command(context.Context) (*exec.Cmd, error) {
	if err := m.configure(); err != nil {
		return nil, err
	}
	c := m.cluster
	c.Mu.Lock()
	defer c.Mu.Unlock()
	args := []string{m.conf()}
	if !m.leading.Load() {
		if c.Primary == m {
			return nil, errLeads
		}
		args = append(args, "--replicaof", c.Primary.host(), c.Primary.port())
	}
	m.lives++
	m.seen, m.following = view{}, nil
	m.Answered() // so that what comes is asked of the new process
	m.Asked()
	cmd := exec.Command(c.program, args...)
	cmd.Dir = m.folder
	return cmd, nil
}

// ready returns when the server has loaded its own data and answers.
func (m *member) ready(ctx context.Context) error {
	err := cluster.Retry(ctx, func() error {
		answer, err := m.orders.ask(ctx, "PING")
		if err == nil && answer != "PONG" {
			err = fmt.Errorf("%s answered PING with %q", m.Name(), answer)
		}
		return err
	})
	if err == nil {
		m.Answered()
	}
	return err
}

// Steered says why the node's clock cannot be steered. With
// libfaketime 0.9.10, Redis 7.0.15 does not come to the first line of its log.
func (m *member) Steered() error {
	return errors.New("its memory comes from jemalloc, which asks for the time before the library that would steer it is ready, and hangs")
}

// Erase ends the node for good and removes what was made for it.
func (m *member) Erase() error {
	err := m.Close()
	m.health.close()
	m.orders.close()
	return errors.Join(err, os.RemoveAll(m.folder))
}

// handOverLimit bounds what is done for a primary, in good order, before it is
// replaced all the same.
const handOverLimit = 5 * time.Second

// StartReplica starts the node, unless it runs, as a replica of the primary, from which it
// takes what it has not, or everything.
func (m *member) StartReplica(ctx context.Context) (done bool, err error) {
	if err = m.Server.Restart(ctx); errors.Is(err, errLeads) {
		return false, nil
	}
	return true, err
}

// StartPrimary starts the node that leads, on its own data, as the primary; the roles are
// held.
func (m *member) StartPrimary(ctx context.Context) error {
	m.leading.Store(true)
	defer m.leading.Store(false)
	return m.Server.Restart(ctx)
}

// Replace kills the node, takes its data away, and lets it join again, empty, as
// a replica. A node that leads hands the lead over in good order first, if it can;
// one that is dead is replaced when the supervisor has promoted another. One whose
// data nobody else has is not replaced: that is an error, and it comes back on its
// data.
func (m *member) Replace(ctx context.Context) error {
	c := m.cluster
	free := func(ctx context.Context) error {
		if err := c.expendable(m); err != nil || c.Leading() != m || !m.Awake() {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, handOverLimit)
		defer cancel()
		moved := c.Yield(limited, m, func() error { return nil })
		if moved != nil {
			c.Note("%s, which is to be replaced, did not hand the lead over: %v", m.Name(), moved)
			if c.params.failOver {
				moved = nil
			}
		}
		return moved
	}
	return c.ReplaceNode(ctx, m, free, func(ctx context.Context) error {
		if err := c.AwaitPrimary(ctx, m); err != nil {
			return err
		}
		return m.Server.Replace(ctx)
	})
}
