package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// standardPort is Redis's.
const standardPort = 6379

// patience bounds a shutdown in good order, in which a primary lets replicas that
// lag catch up for shutdown-timeout, 10 s if it is not set.
const patience = 15 * time.Second

// member is one server of a Cluster: a place with a folder and a port, which stay
// when its data are taken away.
type member struct {
	*cluster.Server
	cluster *Cluster
	folder  string // with the configuration, the log, and the data below it
	port    int

	health *session // asks all the time whether the server lives
	orders *session // for all else

	being  context.Context // ends when the node is removed or the cluster is stopped
	retire context.CancelCauseFunc
	busy   lock // held while the server is started, rejoined or replaced

	state // guarded by cluster.mu
}

// state is what the cluster knows and wants of a node.
type state struct {
	held    hold                    // who ended or paused it on purpose, so that the supervisor leaves it alone
	cancel  context.CancelCauseFunc // ends what is being done to it; nil if nothing is
	leading bool                    // it is being started as the primary
	retryAt time.Time               // when the next try may be made to bring it back

	// What is known of the server's present process.
	lives     int       // how many processes there were
	unheard   time.Time // when the first question was asked that has no answer; zero if all have
	seen      view      // what it said last
	following *member   // the primary all of whose data it has had, and then followed; nil: none
}

// hold says who holds a node.
type hold string

const (
	unheld  hold = ""
	killed  hold = "killed"
	stopped hold = "stopped"
	paused  hold = "paused"
	joining hold = "joining"
)

var (
	errStopped = errors.New("the cluster is stopped")
	errRemoved = errors.New("the node was removed from the cluster")
	errHurt    = errors.New("the node was killed, stopped or replaced meanwhile")
	errLeads   = errors.New("it has come to lead meanwhile")
)

// newMember makes the folder of a node and describes its server. The node is not
// in the cluster yet.
func (c *Cluster) newMember(ctx context.Context, number int, host *cluster.Host) (*member, error) {
	m := &member{cluster: c, busy: newLock()}
	m.folder = filepath.Join(c.dir, "n"+strconv.Itoa(number))
	data := filepath.Join(m.folder, "data")
	if err := os.Mkdir(m.folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of n%d, take another folder if it is there: %w", number, err)
	}
	err := os.Mkdir(data, 0o700)
	if err == nil {
		m.port, err = c.freePort(ctx, host)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(m.folder))
	}
	m.Server = cluster.NewServer(number, host, data, filepath.Join(m.folder, "server.log"), cluster.Program{
		Command: m.command, Ready: m.ready, Join: func(context.Context) error { return nil },
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, Patience: patience,
		Layer: c.layer,
	})
	m.being, m.retire = context.WithCancelCause(c.life)
	m.health, m.orders = newSession(m.address(), c.params.patience), newSession(m.address(), c.params.patience)
	return m, nil
}

// freePort returns a port of the host that no node has.
func (c *Cluster) freePort(ctx context.Context, host *cluster.Host) (int, error) {
	for {
		port, err := host.Port(ctx, standardPort)
		if err != nil {
			return 0, err
		}
		if !slices.ContainsFunc(c.list(), func(m *member) bool { return m.port == port && m.Host().Addr() == host.Addr() }) {
			return port, nil
		}
	}
}

func (m *member) host() string { return m.Host().Addr().String() }

func (m *member) address() string { return net.JoinHostPort(m.host(), strconv.Itoa(m.port)) }

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
	}
	maps.Copy(all, m.cluster.params.settings)
	maps.Copy(all, map[string]string{
		"bind": m.host(),
		"port": strconv.Itoa(m.port),
		"dir":  m.Dir(),
		// The address is one that this machine alone can reach.
		"protected-mode": "no",
	})
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if value == "" {
			value = `""`
		}
		fmt.Fprintf(&text, "%s %s\n", name, value)
	}
	if err := os.WriteFile(m.conf(), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("configure %s: %w", m.Name(), err)
	}
	return nil
}

func (m *member) conf() string { return filepath.Join(m.folder, "redis.conf") }

// command makes the command that starts the server in its role. Nobody becomes
// the primary but by lead, which holds the roles.
func (m *member) command(ctx context.Context) (*exec.Cmd, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := m.configure(); err != nil {
		return nil, err
	}
	c := m.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	args := []string{m.conf()}
	if !m.leading {
		if c.primary == m {
			return nil, errLeads
		}
		args = append(args, "--replicaof", c.primary.host(), strconv.Itoa(c.primary.port))
	}
	m.lives++
	m.unheard, m.seen, m.following = time.Now(), view{}, nil
	cmd := exec.Command(c.program, args...)
	cmd.Dir = m.folder
	return cmd, nil
}

// ready returns when the server has loaded its own data and answers.
func (m *member) ready(ctx context.Context) error {
	err := persist(ctx, func() error {
		answer, err := m.orders.ask(ctx, "PING")
		if err == nil && answer != "PONG" {
			err = fmt.Errorf("%s answered PING with %q", m.Name(), answer)
		}
		return err
	})
	if err == nil {
		m.cluster.mu.Lock()
		m.unheard = time.Time{}
		m.cluster.mu.Unlock()
	}
	return err
}

// Steered says why the node's clock cannot be steered. With
// libfaketime 0.9.10, Redis 7.0.15 does not come to the first line of its log.
func (m *member) Steered() error {
	return errors.New("its memory comes from jemalloc, which asks for the time before the library that would steer it is ready, and hangs")
}

// awake says that the node's process runs and is not paused.
func (m *member) awake() bool { return m.Running() && !m.Paused() }

// erase ends the node for good and removes what was made for it. What is being
// done to it ends by itself, for its life is over.
func (m *member) erase() error {
	if err := m.busy.acquire(context.Background()); err != nil {
		return err
	}
	defer m.busy.release()
	m.health.close()
	m.orders.close()
	return errors.Join(m.Server.Close(), os.RemoveAll(m.folder))
}
