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
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// standardPort is Redis's.
const standardPort = 6379

// patience bounds a shutdown in good order, in which a primary lets replicas that
// lag catch up for shutdown-timeout, 10 s if it is not set.
const patience = 15 * time.Second

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

	state // guarded by the cluster's Mu
}

// state is what the cluster knows of a node.
type state struct {
	leading bool // it is being started as the primary

	// What is known of the server's present process.
	lives     int       // how many processes there were
	unheard   time.Time // when the first question was asked that has no answer; zero if all have
	seen      view      // what it said last
	following *member   // the primary all of whose data it has had, and then followed; nil: none
}

var errLeads = errors.New("it has come to lead meanwhile")

// newMember makes the folder of a node and describes its server.
func (c *Cluster) newMember(ctx context.Context, number int, host *cluster.Host) (_ *member, err error) {
	m := &member{cluster: c, folder: c.Folder(number)}
	if m.endpoint, err = c.Endpoint(ctx, host, standardPort); err != nil {
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
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, Patience: patience, Insist: insist,
		FaultFS: c.Options().FaultFS,
	}))
	m.health, m.orders = newSession(m.address(), c.params.patience), newSession(m.address(), c.params.patience)
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
	}
	maps.Copy(all, m.cluster.params.settings)
	maps.Copy(all, map[string]string{
		"bind": m.host(),
		"port": m.port(),
		"dir":  m.Dir(),
		// The address is one that this machine alone can reach.
		"protected-mode": "no",
	})
	if err := os.WriteFile(m.conf(), []byte(settingsText(all)), 0o600); err != nil {
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
	if !m.leading {
		if c.Primary == m {
			return nil, errLeads
		}
		args = append(args, "--replicaof", c.Primary.host(), c.Primary.port())
	}
	m.lives++
	m.unheard, m.seen, m.following = time.Now(), view{}, nil
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
		m.cluster.Mu.Lock()
		m.unheard = time.Time{}
		m.cluster.Mu.Unlock()
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
