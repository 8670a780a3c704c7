package patroni

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/system"
)

// agent is Patroni as what fails over beside a node. PostgreSQL goes on without it, and
// whoever led goes on to take writes.
type agent struct{ *node }

// Agent is the node's Patroni.
func (n *node) Agent() cluster.Auxiliary { return agent{n} }

// Store are the etcd servers.
func (c *Cluster) Store() (servers []cluster.Auxiliary) {
	for _, n := range c.stores() {
		servers = append(servers, n.Server)
	}
	return servers
}

func (a agent) Name() string { return "the Patroni of " + a.node.Name() }

// processes are those of Patroni, without serve.py, which is the first of the node, and
// without those of PostgreSQL.
func (a agent) processes() []int {
	pids := a.PIDs()
	return slices.DeleteFunc(pids[min(1, len(pids)):], func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || !strings.Contains(string(line), "\x00"+filepath.Join(a.folder, configFile)+"\x00")
	})
}

// Running reports whether Patroni is there, paused or not.
func (a agent) Running() bool { return len(a.processes()) > 0 }

// Kill ends Patroni alone, with SIGKILL.
func (a agent) Kill(ctx context.Context) error {
	return a.signal(ctx, "kill", syscall.SIGKILL, func() error {
		if a.Running() {
			return errors.New("it is alive yet")
		}
		return nil
	})
}

// Restart starts Patroni, unless it runs, and returns when it says that its PostgreSQL runs.
func (a agent) Restart(ctx context.Context) error {
	if !a.node.Running() {
		return a.node.Restart(ctx)
	}
	err := cluster.Retry(ctx, func() error {
		if pids := a.PIDs(); len(pids) > 0 && !a.Running() {
			// serve.py ignores the signal until it knows that Patroni has ended.
			if err := system.Kill(pids[0], system.User1); err != nil {
				return err
			}
		}
		return a.well(ctx)
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", a.Name(), err)
	}
	return nil
}

// well asks Patroni whether its PostgreSQL runs in the role that it should have.
func (a agent) well(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return a.call(limited, http.MethodGet, "/health", nil)
}

// Pause stops Patroni alone where it is.
func (a agent) Pause(ctx context.Context) error {
	return a.signal(ctx, "pause", system.Stop, func() error { return a.StillPaused(ctx) })
}

// StillPaused says which process of Patroni goes on.
func (a agent) StillPaused(context.Context) error {
	for _, pid := range a.processes() {
		if !stopped(pid) {
			return fmt.Errorf("process %d of %s goes on", pid, a.Name())
		}
	}
	return nil
}

// Resume lets Patroni go on, and returns when it says that its PostgreSQL runs. If the node
// has ended meanwhile it is no error.
func (a agent) Resume(ctx context.Context) error {
	if !a.Running() {
		return nil
	}
	err := a.signal(ctx, "resume", system.Continue, func() error {
		if slices.ContainsFunc(a.processes(), stopped) {
			return errors.New("it is stopped yet")
		}
		return nil
	})
	if err == nil {
		err = cluster.Retry(ctx, func() error { return a.well(ctx) })
	}
	if err == nil {
		a.cluster.resumed()
	}
	return err
}

// signal sends a signal to all processes of Patroni, and waits until its effect is seen.
func (a agent) signal(ctx context.Context, what string, number syscall.Signal, seen func() error) error {
	pids := a.processes()
	var err error
	if len(pids) == 0 {
		err = errors.New("it is not running")
	}
	for _, pid := range pids {
		if sent := system.Kill(pid, number); sent != nil {
			err = errors.Join(err, sent)
		}
	}
	if err == nil {
		err = cluster.Until(ctx, cluster.SeenWithin, seen)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, a.Name(), err)
	}
	return nil
}

// stopped says that a process is there and stopped where it is: see proc(5).
func stopped(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, found := strings.Cut(string(text[max(0, strings.LastIndexByte(string(text), ')')):]), " ")
	return err == nil && found && strings.HasPrefix(after, "T")
}
