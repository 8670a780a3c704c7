//go:build fdb

package foundationdb

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

const (
	dialTimeout = time.Second // of a check whether a server listens
	// askTimeout bounds a query through fdbcli. The status waits up to five seconds for each component that does not
	// answer (fdbserver/Status.actor.cpp, 7.3). So it takes longest when something is wrong.
	askTimeout    = 20 * time.Second
	changeTimeout = 30 * time.Second // of a change through fdbcli
	// excludeTimeout bounds the wait until the data of a node are elsewhere.
	excludeTimeout = 5 * time.Minute
	// askAgain is the interval between two queries, each of which starts a process.
	askAgain      = 500 * time.Millisecond
	shutdownLimit = 15 * time.Second
)

// node is one machine of the cluster. Its folder and addresses stay; its processes and its data change.
type node struct {
	*host.Server
	cluster   *Cluster
	endpoints []netip.AddrPort // of its processes
}

// newNode describes a node.
func (c *Cluster) newNode(int, *host.Host) (*node, cluster.Design) {
	n := &node{cluster: c, endpoints: make([]netip.AddrPort, c.params.processes)}
	taken := map[int]*netip.AddrPort{}
	for i := range n.endpoints {
		taken[4500+i] = &n.endpoints[i]
	}
	return n, cluster.Design{
		Server: &n.Server, Ports: taken, Program: host.Program{
			Command: n.command, Ready: n.ready, Join: n.join,
			Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit, Clock: true,
		},
		Expendable: n.expendable, Leave: n.leave, Back: n.back,
	}
}

// address returns the address of the node's first process, the only one that may be a coordinator.
func (n *node) address() string { return n.endpoints[0].String() }

func (n *node) addresses() (list []string) {
	for _, e := range n.endpoints {
		list = append(list, e.String())
	}
	return list
}

// file returns the path of the node's own cluster file, which its servers rewrite when the coordinators change.
func (n *node) file() string { return filepath.Join(n.Dir(), "fdb.cluster") }

// writeFile gives the node the clients' current connection string.
func (n *node) writeFile() error {
	text, err := os.ReadFile(n.cluster.file)
	if err == nil {
		err = os.WriteFile(n.file(), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the cluster file of %s: %w", n.Name(), err)
	}
	return nil
}

// command returns the command that starts the node's servers. Several servers end with the shell that started them.
func (n *node) command(context.Context) (*exec.Cmd, error) {
	if _, err := os.Stat(n.file()); err != nil {
		if err := n.writeFile(); err != nil {
			return nil, err
		}
	}
	// Without this folder a server complains once a second, and keeps the unwritten trace in memory.
	if err := os.MkdirAll(n.trace(), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for the trace files of %s: %w", n.Name(), err)
	}
	if len(n.endpoints) == 1 {
		return exec.Command(n.cluster.server, n.arguments(n.address())...), nil
	}
	script := "trap 'kill $(jobs -p) 2>/dev/null; wait; exit 0' TERM\n"
	for _, address := range n.addresses() {
		script += `"$0" "$@" -p "` + address + `" -l "` + address + `" -d "` + n.data(address) + `" --parentpid $$ &` + "\n"
	}
	script += "wait\n"
	return exec.Command("/bin/sh", append([]string{"-c", script, n.cluster.server}, n.shared()...)...), nil
}

func (n *node) data(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return filepath.Join(n.Dir(), port)
}

// trace returns the folder of the servers' trace files, which the servers do not make.
func (n *node) trace() string { return filepath.Join(n.Dir(), "trace") }

func (n *node) arguments(address string) []string {
	return append(n.shared(), "-p", address, "-l", address, "-d", n.data(address))
}

// shared returns the arguments of all servers of the node. The servers are one zone, because they lose their
// unacknowledged writes together. A server that exceeds --memory ends itself. It slows its clients down only when 1
// GB waits to be stored (TARGET_BYTES_PER_STORAGE_SERVER, fdbclient/ServerKnobs.cpp, 7.3).
func (n *node) shared() []string {
	args := []string{
		"-C", n.file(), "-L", n.trace(), "--logsize", "5MiB", "--maxlogssize", "30MiB",
		"--memory", "4GiB", "--cache-memory", "64MiB", "--storage-memory", "256MiB",
		"--locality-machineid", n.Name(), "--locality-zoneid", n.Name(),
	}
	for _, knob := range slices.Sorted(maps.Keys(n.cluster.params.knobs)) {
		args = append(args, "--knob_"+knob+"="+n.cluster.params.knobs[knob])
	}
	return args
}

// ready waits until the node has joined. Before the database is formed, it waits until the servers listen.
func (n *node) ready(ctx context.Context) error {
	if !n.cluster.formed.Load() {
		return wait.RetryEvery(ctx, 50*time.Millisecond, func() error {
			for _, address := range n.addresses() {
				conn, err := net.DialTimeout("tcp", address, dialTimeout)
				if err != nil {
					return err
				}
				conn.Close()
			}
			return nil
		})
	}
	return wait.RetryEvery(ctx, askAgain, func() error {
		s, err := n.cluster.status(ctx)
		if err == nil {
			err = s.joined(n.addresses())
		}
		return err
	})
}

// join prepares the start of a node whose data are gone. Its coordinator has forgotten its promises, so the node must
// not be a coordinator when it returns.
func (n *node) join(ctx context.Context) error {
	others := slices.DeleteFunc(n.cluster.wanted(), func(address string) bool { return address == n.address() })
	if len(others) < len(n.cluster.wanted()) {
		if err := n.cluster.coordinate(ctx, others); err != nil {
			return err
		}
	}
	return n.writeFile()
}

// back makes the new node a part of the cluster.
func (n *node) back(ctx context.Context) error {
	c := n.cluster
	if c.params.exclude {
		err := wait.RetryEvery(ctx, askAgain, func() error {
			return c.command(ctx, changeTimeout, append([]string{"include"}, n.addresses()...)...)
		})
		if err != nil {
			return err
		}
	}
	return c.coordinate(ctx, c.wanted())
}

// leave waits with exclude=on until the node has no data, as in a planned replacement. An unhealthy cluster asks to try
// again.
func (n *node) leave(ctx context.Context) error {
	if !n.cluster.params.exclude {
		return nil
	}
	return wait.RetryEvery(ctx, askAgain, func() error {
		return n.cluster.command(ctx, excludeTimeout, append([]string{"exclude"}, n.addresses()...)...)
	})
}

// command executes one command of fdbcli.
func (c *Cluster) command(ctx context.Context, limit time.Duration, words ...string) error {
	_, err := c.ask(ctx, limit, words...)
	return err
}

func (c *Cluster) ask(ctx context.Context, limit time.Duration, words ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+time.Second)
	defer cancel()
	line := strings.Join(words, " ")
	cmd := exec.CommandContext(ctx, c.cli, "-C", c.file, "--timeout", strconv.Itoa(int(limit.Seconds())), "--exec", line)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("fdbcli, %s: %w: %s", line, err, host.LastLines(append(out.Bytes(), complaints.Bytes()...)))
	}
	if text := out.String(); strings.Contains(text, "ERROR:") {
		return nil, fmt.Errorf("fdbcli, %s: %s", line, host.LastLines(out.Bytes()))
	}
	return out.Bytes(), nil
}

// status asks the cluster for its status. It may return the answer to a query that another caller began after this
// call.
func (c *Cluster) status(ctx context.Context) (status, error) {
	asked := time.Now()
	if err := c.seen.lock.Acquire(ctx); err != nil {
		return status{}, err
	}
	defer c.seen.lock.Release()
	if c.seen.at.After(asked) {
		return c.seen.status, nil
	}
	began := time.Now()
	text, err := c.ask(ctx, askTimeout, "status", "json")
	if err != nil {
		return status{}, err
	}
	s, err := parseStatus(text)
	if err != nil {
		return s, err
	}
	c.seen.at, c.seen.status = began, s
	return s, nil
}
