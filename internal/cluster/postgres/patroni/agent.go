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
	"stroppy/internal/cluster/wait"
)

// agent is the Patroni of a node, which fails over. PostgreSQL continues without it, and a primary continues to
// accept writes.
type agent struct{ *node }

// Agent returns the node's Patroni.
func (n *node) Agent() cluster.Auxiliary { return agent{n} }

// Store returns the etcd servers.
func (c *Cluster) Store() (servers []cluster.Auxiliary) {
	for _, n := range c.stores() {
		servers = append(servers, n.Server)
	}
	return servers
}

func (a agent) Name() string { return "the Patroni of " + a.node.Name() }

// processes returns Patroni's processes, without serve.py, which is the first of the node, and without PostgreSQL's.
func (a agent) processes() []int {
	pids := a.PIDs()
	return slices.DeleteFunc(pids[min(1, len(pids)):], func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || !strings.Contains(string(line), "\x00"+filepath.Join(a.folder, configFile)+"\x00")
	})
}

// Running reports whether Patroni exists, paused or not.
func (a agent) Running() bool { return len(a.processes()) > 0 }

// Kill ends only Patroni, with SIGKILL.
func (a agent) Kill(ctx context.Context) error {
	return a.signal(ctx, "kill", syscall.SIGKILL, func() error {
		if a.Running() {
			return errors.New("it is still alive")
		}
		return nil
	})
}

// Restart starts Patroni, unless it runs, and returns when it reports its PostgreSQL as running.
func (a agent) Restart(ctx context.Context) error {
	if !a.node.Running() {
		return a.node.Restart(ctx)
	}
	err := wait.Retry(ctx, func() error {
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

// well asks Patroni whether its PostgreSQL runs in the right role.
func (a agent) well(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return a.call(limited, http.MethodGet, "/health", nil)
}

// Pause stops only Patroni.
func (a agent) Pause(ctx context.Context) error {
	return a.signal(ctx, "pause", system.Stop, func() error { return a.StillPaused(ctx) })
}

// StillPaused returns an error if a process of Patroni runs.
func (a agent) StillPaused(context.Context) error {
	for _, pid := range a.processes() {
		if !stopped(pid) {
			return fmt.Errorf("process %d of %s still runs", pid, a.Name())
		}
	}
	return nil
}

// Resume resumes Patroni and returns when it reports its PostgreSQL as running. It returns nil if the node has ended
// meanwhile.
func (a agent) Resume(ctx context.Context) error {
	if !a.Running() {
		return nil
	}
	err := a.signal(ctx, "resume", system.Continue, func() error {
		if slices.ContainsFunc(a.processes(), stopped) {
			return errors.New("it is still stopped")
		}
		return nil
	})
	if err == nil {
		err = wait.Retry(ctx, func() error { return a.well(ctx) })
	}
	if err == nil {
		a.cluster.resumed()
	}
	return err
}

// signal sends a signal to all processes of Patroni and waits until its effect is seen.
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
		err = wait.Until(ctx, wait.SeenWithin, seen)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, a.Name(), err)
	}
	return nil
}

// stopped reports whether a process exists and is stopped: see proc(5).
func stopped(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, found := strings.Cut(string(text[max(0, strings.LastIndexByte(string(text), ')')):]), " ")
	return err == nil && found && strings.HasPrefix(after, "T")
}
