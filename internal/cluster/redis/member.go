package redis

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"stroppy/internal/cluster"
)

// member is one server of a Cluster: a place with a folder and a port, which stay
// when its data are taken away.
type member struct {
	*cluster.SupervisedNode
	cluster *Cluster
	folder  string // with the configuration, the log, and the data below it
	endpoint

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
	if err = c.TakeEndpoints(ctx, host, map[int]*netip.AddrPort{6379: &m.endpoint.at}); err != nil {
		return nil, err
	}
	if err := c.MakeFolder(m.folder, number, 0o700); err != nil {
		return nil, err
	}
	data := filepath.Join(m.folder, "data")
	if err := c.MakeFolder(data, number, 0o700); err != nil {
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

func (m *member) asked() *session { return m.orders }

// configure writes redis.conf.
func (m *member) configure() error {
	return writeConf(m.conf(), m.Name(), m.cluster.params.serverSettings(m.endpoint, m.Dir(), m.cluster.Options))
}

func (m *member) conf() string { return filepath.Join(m.folder, confFile) }

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
	err := m.orders.awaitPong(ctx)
	if err == nil {
		m.Answered()
	}
	return err
}

// Steered says why the node's clock cannot be steered.
func (*member) Steered() error { return errSteered }

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
