package patroni

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/postgres/server"
	"stroppy/internal/cluster/system"
	"stroppy/internal/cluster/wait"
)

//go:embed serve.py
var serve string

// shutdownLimit bounds the shutdown of etcd and of Patroni, which shuts PostgreSQL down first.
const shutdownLimit = 20 * time.Second

// configFile is the name of Patroni's configuration in the folder of a node.
const configFile = "patroni.yml"

// node is a host of a Cluster; its folder and ports stay. It has an etcd server, or PostgreSQL and Patroni, whose
// processes are all descendants of the Server's process.
type node struct {
	*host.Server
	cluster *Cluster
	folder  string // with the configuration, the log, and the data below it
	store   bool   // it is an etcd server

	endpoint, rest netip.AddrPort // of PostgreSQL and of Patroni
	client, peer   netip.AddrPort // of etcd
	over           *server.Session
	starts         atomic.Int32
}

// newNode describes a host.
func (c *Cluster) newNode(number int, on *host.Host) (*node, cluster.Design) {
	n := &node{cluster: c, folder: c.Folder(number), store: number >= c.data && number < c.data+c.params.store}
	d := cluster.Design{
		Server: &n.Server, Ports: map[int]*netip.AddrPort{5432: &n.endpoint, 8008: &n.rest}, Folder: n.folder,
		Dir: filepath.Join(n.folder, "data"), Log: filepath.Join(n.folder, "server.log"),
		Make: func() (err error) {
			n.over, err = server.NewSession(on.Addr().String(), n.endpoint.Port(), askLimit)
			return err
		},
		Program: host.Program{
			Command: n.command, Ready: n.ready, Join: func(context.Context) error { return nil }, // Patroni copies the data
			Death: syscall.SIGQUIT, Shutdown: syscall.SIGTERM, ShutdownLimit: shutdownLimit, FaultFS: true,
		},
		Expendable: func(ctx context.Context) error { return c.expendable(ctx, n) },
		Leave:      func(ctx context.Context) error { return c.Depose(ctx, n) },
	}
	if n.store {
		d.Ports, d.Make = map[int]*netip.AddrPort{2379: &n.client, 2380: &n.peer}, nil
		d.Program.Command, d.Program.Ready, d.Program.Death, d.Program.FaultFS = n.storeCommand, n.storeReady, syscall.SIGKILL, false
	}
	return n, d
}

// pgdata returns PostgreSQL's data folder, which Patroni removes and makes again. It is below the node's folder,
// which may be a mount.
func (n *node) pgdata() string { return filepath.Join(n.Dir(), "pg") }

// URL returns the address of the node alone, or "" if it has no data.
func (n *node) URL() string {
	if n.store {
		return ""
	}
	return server.NodeURL(n.endpoint.String())
}

// endedError reports a node that ended while the cluster was started.
type endedError struct{ node, log string }

func (e *endedError) Error() string {
	return "the Patroni of " + e.node + " has ended before it answered" + e.log
}

// command returns the command that starts Patroni.
func (n *node) command(context.Context) (*exec.Cmd, error) {
	c := n.cluster
	if n.starts.Add(1) > 1 && !c.begun.Load() {
		err := &endedError{n.Name(), n.EndOfLog()}
		c.giveUp(err)
		return nil, err
	}
	path := filepath.Join(n.folder, configFile)
	text, err := json.MarshalIndent(n.configuration(), "", "  ") // JSON is YAML too
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("configure Patroni: %w", err)
	}
	cmd := c.User.Command(context.Background(), n.folder, c.programs.python, "-c", serve, c.programs.patroni, path)
	// Variables of libpq or Patroni would override the configuration.
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH"), "HOME=" + n.folder}
	return cmd, nil
}

type object = map[string]any

// configuration returns Patroni's configuration: https://patroni.readthedocs.io/en/latest/yaml_configuration.html.
func (n *node) configuration() object {
	c, p := n.cluster, n.cluster.params
	settings := object{
		"max_connections":            c.Options.MaxConnections(500),
		"dynamic_shared_memory_type": "mmap", // files in the data folder, so that a kill leaves none elsewhere
		"hot_standby_feedback":       "on",   // queries on a standby must not stop its replay
		"wal_receiver_timeout":       "3s",
		"wal_sender_timeout":         "3s",
		"wal_log_hints":              "on", // for pg_rewind
		"wal_keep_size":              "1GB",
	}
	own := object{"unix_socket_directories": "", "wal_retrieve_retry_interval": "100ms"}
	for name, value := range p.settings {
		delete(own, name)
		settings[name] = value
	}
	hosts := cluster.Join(c.stores(), func(s *node) string { return s.client.String() })
	user := object{"username": server.Superuser}
	return object{
		"scope": scope, "name": n.Name(),
		"restapi":  object{"listen": n.rest.String(), "connect_address": n.rest.String()},
		"etcd3":    object{"hosts": hosts},
		"watchdog": object{"mode": "off"},
		"bootstrap": object{
			"dcs": object{
				ttl: inSeconds(p.ttl), loopWait: inSeconds(p.loopWait), retryTimeout: inSeconds(p.retryTimeout), maximumLag: p.maximumLag,
				"primary_start_timeout": 0, failsafe: p.failsafe,
				"synchronous_mode": p.synchronous != synchronousOff, "synchronous_mode_strict": p.synchronous == synchronousStrict,
				"postgresql": object{
					"use_pg_rewind": true, "use_slots": true, "remove_data_directory_on_rewind_failure": true,
					"remove_data_directory_on_diverged_timelines": true, "parameters": settings,
				},
			},
			"initdb": []any{object{"encoding": "UTF8"}, object{"locale": "C"}, object{"auth": "trust"}, "data-checksums", "no-sync"},
		},
		"postgresql": object{
			"listen": n.endpoint.String(), "connect_address": n.endpoint.String(), "data_dir": n.pgdata(), "bin_dir": c.programs.bin,
			"pgpass": filepath.Join(n.folder, "pgpass"), "parameters": own, "pg_hba": server.Trust(c.Network()),
			"authentication": object{"superuser": user, "replication": user, "rewind": user},
			"basebackup":     []any{object{"checkpoint": "fast"}, "no-sync"},
		},
	}
}

// inSeconds returns a duration in Patroni's unit.
func inSeconds(d time.Duration) int { return int(d / time.Second) }

// ready waits until the server answers queries.
func (n *node) ready(ctx context.Context) error {
	return wait.RetryEvery(ctx, startEvery, func() error { return n.over.Ask(ctx, "SELECT") })
}

// storeCommand returns the command that starts an etcd server.
func (n *node) storeCommand(context.Context) (*exec.Cmd, error) {
	c := n.cluster
	members := cluster.Join(c.stores(), func(s *node) string { return s.Name() + "=http://" + s.peer.String() })
	own := etcd.Member{Name: n.Name(), Dir: n.Dir(), Client: n.client, Peer: n.peer}
	cmd := own.Command(c.programs.etcd, members, "new", "stroppy-"+c.stores()[0].peer.String())
	user := c.User.Command(context.Background(), n.folder, c.programs.etcd)
	cmd.Dir, cmd.SysProcAttr = user.Dir, user.SysProcAttr
	return cmd, nil
}

// Kill ends Patroni and PostgreSQL with SIGKILL and returns when they are gone.
func (n *node) Kill(ctx context.Context) error {
	return errors.Join(n.Server.Kill(ctx), n.endStray(), server.ReleaseMemory(n.pgdata()))
}

// endStray ends a postmaster that was just starting when all processes were ended. Without a parent it is not found
// as a descendant.
func (n *node) endStray() error {
	text, err := os.ReadFile(filepath.Join(n.pgdata(), server.PIDFile))
	if err != nil {
		return nil // it does not run, or has not begun
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || pid <= 1 {
		return nil
	}
	alive := func() bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && strings.Contains(string(line), n.pgdata()+"\x00")
	}
	if !alive() {
		return nil
	}
	if err := system.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("end the postmaster of %s: %w", n.Name(), err)
	}
	return wait.Until(context.Background(), wait.SeenWithin, func() error {
		if alive() {
			return fmt.Errorf("the postmaster of %s is still alive", n.Name())
		}
		return nil
	})
}

// errSteered is the reason why the clock of a node cannot be changed: Patroni would see it too.
var errSteered = errors.New("a node's clock is also Patroni's clock: use postgres:1")

// Steered returns why the node's clock cannot be changed.
func (*node) Steered() error { return errSteered }

// Erase ends the node for good and removes all that was made for it.
func (n *node) Erase() error {
	err := n.Close()
	if n.over != nil {
		err = errors.Join(err, n.endStray(), server.ReleaseMemory(n.pgdata()))
		n.over.Close()
	}
	return errors.Join(err, os.RemoveAll(n.folder))
}
