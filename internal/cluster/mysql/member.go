package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
)

// majorityTimeout is how long a member that does not see a majority waits until it leaves its group. Then it rolls
// back waiting transactions and refuses writes (group_replication_unreachable_majority_timeout). MySQL's default is
// to wait for ever.
const majorityTimeout = 5 * time.Second

// leaveLimit bounds a clean shutdown. A member waits up to a minute until the group agrees that it leaves, especially
// if others leave at the same time.
const leaveLimit = 90 * time.Second

// messageCache is the number of bytes of messages that a member keeps for others that lack some. It is MySQL's
// minimum, because all members share this machine's memory.
const messageCache = 128 << 20

// member is a server of a group. Its folder and addresses stay; its process changes.
type member struct {
	*host.Server
	set     *Group
	address netip.AddrPort // for clients
	group   netip.AddrPort // for messages of the other members
	scratch string         // folder of temporary tables
	db      *sql.DB        // for short queries, which wait for no other member
	lasting *sql.DB        // for statements that may take long

	failed atomic.Pointer[error] // error of the last attempt to join
}

// newMember describes a member.
func (g *Group) newMember(number int, _ *host.Host) (*member, cluster.Design) {
	m := &member{set: g, scratch: g.Folder(number) + ".tmp"}
	return m, cluster.Design{
		Server: &m.Server, Ports: map[int]*netip.AddrPort{3306: &m.address, 33061: &m.group}, Expendable: m.expendable,
		Folders: []string{g.Folder(number), m.scratch},
		Make: func() (err error) {
			if m.db, err = open(m.address.String(), askLimit); err == nil {
				m.lasting, err = open(m.address.String(), joinLimit)
			}
			return err
		},
		Program: host.Program{
			Command: func(context.Context) (*exec.Cmd, error) { return m.command(), nil }, Ready: m.ready, Join: m.initialize,
			Now: func(ctx context.Context) (time.Time, error) { return Now(ctx, m.db, m.Name()) }, Clock: true,
			Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: leaveLimit,
		},
	}
}

// initialize makes the data of an empty member. They are the same on all members, and not part of a transaction of
// the group.
func (m *member) initialize(ctx context.Context) error {
	return initializeMySQL(ctx, m.set.User, m.set.programs, m.Dir(), m.scratch, firstStatements(m.set.Network()))
}

// command returns the command of the server, which starts outside of the group and read-only.
func (m *member) command() *exec.Cmd {
	g := m.set
	p := g.params.group
	onOff := map[bool]string{true: "ON", false: "OFF"}
	group := map[string]string{
		"group-name": g.name, "start-on-boot": "OFF", "bootstrap-group": "OFF",
		"local-address": m.group.String(), "group-seeds": g.seeds(), "ip-allowlist": g.hosts(),
		"single-primary-mode": onOff[!p.multiPrimary], "enforce-update-everywhere-checks": onOff[p.multiPrimary],
		// The supervisor, which sees all members, decides when a member returns.
		"autorejoin-tries": "0", "exit-state-action": "READ_ONLY",
		"member-expel-timeout":         strconv.Itoa(int(p.expel.Seconds())),
		"unreachable-majority-timeout": strconv.Itoa(int(majorityTimeout.Seconds())),
		"message-cache-size":           strconv.Itoa(messageCache),
		"recovery-get-public-key":      "ON",
	}
	if p.consistency != "" {
		group["consistency"] = p.consistency
	}
	flags := slices.Concat(usualFlags(m.Dir(), m.scratch, m.address, &g.Options, g.programs), mySQLFlags, []string{
		"--server-id=" + strconv.Itoa(m.Number()+1), "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--super-read-only=ON",
		"--report-host=" + m.address.Addr().String(), "--report-port=" + strconv.Itoa(int(m.address.Port())),
		"--log-bin=binlog", "--plugin-load-add=group_replication.so",
	})
	for name, value := range group {
		flags = append(flags, "--loose-group-replication-"+name+"="+value)
	}
	cmd := g.User.Command(context.Background(), m.Dir(), g.programs.server, append(flags, g.params.flags...)...)
	cmd.Env = g.programs.environment(m.scratch)
	return cmd
}

// ready waits until the member is in the group and has all its data.
func (m *member) ready(ctx context.Context) error {
	return retry(ctx, func() error {
		s, err := m.status(ctx)
		if err == nil && s.state != online {
			err = fmt.Errorf("%s is %s in its group", m.Name(), s.state)
			if failed := m.failed.Load(); failed != nil {
				err = errors.Join(err, *failed)
			}
		}
		return err
	})
}

// Restart starts the member on its own data, unless it runs, and returns when it is in the group.
func (m *member) Restart(ctx context.Context) error {
	ctx, cancel := m.Bound(ctx)
	defer cancel()
	err := m.Server.Restart(ctx)
	if err == nil {
		err = m.ready(ctx)
	}
	return err
}

// expendable returns nil if another member is in a working group.
func (m *member) expendable(ctx context.Context) error {
	for _, other := range m.set.Others(m) {
		if !other.Awake() {
			continue
		}
		if s, err := other.status(ctx); err == nil && s.works() {
			return nil
		}
	}
	return errors.New("no other member is in a working group, so none could give it the data again")
}

// URL returns the address of the member alone.
func (m *member) URL() string { return urlOf(m.address.String()).String() }

// Erase ends the member for good and removes all that was made for it.
func (m *member) Erase() error {
	return errors.Join(m.Server.Erase(), m.db.Close(), m.lasting.Close(), os.RemoveAll(m.scratch))
}

// do runs statements one after another on one connection. It waits for no other member unless a statement itself
// does.
func (m *member) do(ctx context.Context, limit time.Duration, statements ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := m.lasting.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", m.Name(), err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %s: %w", m.Name(), statement, err)
		}
	}
	return nil
}
