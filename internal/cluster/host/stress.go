package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"stroppy/internal/cluster/cgroup"
	"stroppy/internal/cluster/wait"
	"stroppy/internal/cluster/wrap"
	"stroppy/internal/fault"
)

// stress is a fault that takes processor time from a node. Its processes only compute. They share a control group
// with the processes of the node, which has the weight of one process per processor. So they compete with the node,
// and hardly with its neighbours.
type stress struct {
	node  *Server
	above cgroup.Group // of the node's processes without the fault
	group cgroup.Group
	began usage

	mu        sync.Mutex
	computing []*Process
	ending    bool   // no process may enter the group any more
	lost      error  // error of moving a process of the node into the group
	seen      string // description of the processor use until the heal
}

// computes is a script that needs only a processor. computesName, its $0, shows its owner in a list of processes.
const computes, computesName = "while :; do :; done", "stroppy-stress"

// stressWatched is the shortest time of observation. stressSeen bounds the time until each of many processes has run.
const stressWatched, stressSeen = 250 * time.Millisecond, 15 * time.Second

// Stressable returns why stress is not possible on the node, or nil if it is. It tries by making a control group. If
// the server has never run, as in a dry run, the answer is not known.
func (s *Server) Stressable() error {
	if s.current() == nil || s.stressable.Load() {
		return nil
	}
	return s.tryGroup()
}

func (s *Server) tryGroup() error {
	if _, err := usageOf([]int{os.Getpid()}); err != nil {
		return err
	}
	above, err := cgroup.ByPID(os.Getpid()) // the group in which the servers are started
	if err != nil {
		return err
	}
	group, err := s.makeGroup(above)
	if err != nil {
		return err
	}
	if _, err := group.Remove(); err != nil {
		return err
	}
	s.stressable.Store(true)
	return nil
}

func (s *Server) makeGroup(above cgroup.Group) (cgroup.Group, error) {
	group := above.Child(RandomName())
	if err := s.host.record.Add(Leftover{Kind: LeftGroup, Name: group.Dir()}); err != nil {
		return group, err
	}
	err := group.Make(runtime.NumCPU())
	switch {
	case errors.Is(err, os.ErrPermission):
		err = fmt.Errorf("%w: run as root, or by `systemd-run --user --scope -p Delegate=cpu`", err)
	case errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("%w: mount the control groups writable, as in a privileged container", err)
	}
	return group, err
}

// Stress starts processes that compute and share the processors with the node; 0 means one per processor. New
// processes of the node share with them too. All descendants of the node's process count as its own.
func (s *Server) Stress(ctx context.Context, processes int) (e fault.Effect, err error) {
	defer wrap.Error(&err, "stress the processors of %s", s.Name())
	p := s.current()
	if p == nil {
		return e, errors.New("it is not running")
	}
	above, err := cgroup.ByPID(p.PID())
	if err != nil {
		return e, err
	}
	x := &stress{node: s, above: above}
	if x.group, err = s.makeGroup(above); err != nil {
		return e, err
	}
	if !s.stress.CompareAndSwap(nil, x) {
		_, err = x.group.Remove()
		return e, errors.Join(errors.New("they are stressed already"), err)
	}
	e.Still, e.Heal = x.still, x.heal
	if err = x.start(cmp.Or(processes, runtime.NumCPU())); err == nil {
		err = x.join(ctx)
	}
	if err == nil {
		e.Seen, err = x.observe(ctx)
	}
	return e, err
}

// start starts the computing processes. They end with this program.
func (x *stress) start(count int) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ending {
		return errors.New("the node is being removed")
	}
	for range count {
		cmd := exec.Command("sh", "-c", computes, computesName)
		cmd.Env, cmd.Dir = []string{}, "/"
		p, err := StartProcess(cmd, syscall.SIGKILL)
		if err != nil {
			return err
		}
		x.computing = append(x.computing, p)
		if err := errors.Join(x.node.host.record.Add(ProcessLeftover(p)), x.group.Add(p.PID())); err != nil {
			return err
		}
	}
	return nil
}

func (x *stress) processes() []*Process {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.computing
}

// pids returns the processes of the node and the computing ones.
func (x *stress) pids() []int {
	pids := x.node.PIDs()
	for _, p := range x.processes() {
		pids = append(pids, p.PID())
	}
	return pids
}

// join puts all processes of the node into the group and verifies that they are in it. A new child may be outside
// once more, and a process that is about to end is shown in the root group.
func (x *stress) join(ctx context.Context) error {
	return wait.Until(ctx, stressSeen, func() error {
		err := x.whole()
		if err != nil {
			for _, pid := range x.node.PIDs() {
				_ = x.group.Add(pid) // a process that has ended cannot be moved
			}
		}
		return err
	})
}

// whole returns an error if a process runs outside of the group.
func (x *stress) whole() error { return x.all(x.pids(), x.group) }

// all returns an error that names a process outside of a group.
func (x *stress) all(pids []int, group cgroup.Group) error {
	for _, pid := range pids {
		is, err := cgroup.ByPID(pid)
		switch {
		case err != nil && ended(pid):
		case err != nil:
			return err
		case is != group:
			return fmt.Errorf("process %d of %s is in the control group %s instead of %s", pid, x.node.Name(), is.Dir(), group.Dir())
		}
	}
	return nil
}

func ended(pid int) bool {
	stat, err := readStat(pid)
	return err != nil || !stat.alive()
}

// joinStress puts a server that was just started into the group of its stress. An error belongs to the fault, not to
// the server.
func (s *Server) joinStress(ctx context.Context) {
	x := s.stress.Load()
	if x == nil {
		return
	}
	x.mu.Lock()
	ending := x.ending
	x.mu.Unlock()
	if ending {
		return
	}
	err := x.join(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ending {
		x.lost = errors.Join(x.lost, err)
	}
}

// observe verifies that each computing process gets processor time.
func (x *stress) observe(ctx context.Context) (seen string, err error) {
	if x.began, err = usageOf(x.pids()); err != nil {
		return "", err
	}
	err = wait.Until(ctx, stressSeen, func() error {
		if err := wait.Sleep(ctx, stressWatched); err != nil {
			return err
		}
		seen, err = x.sinceBegan()
		if err == nil && !x.node.Running() { // another fault has stopped it, or it has ended
			err = errors.New("it is not running")
		}
		return err
	})
	return seen, err
}

// sinceBegan describes the use of the processors since the fault began. It returns an error if a computing process
// has not run.
func (x *stress) sinceBegan() (string, error) {
	now, err := usageOf(x.pids())
	if err != nil {
		return "", err
	}
	took, computing := now.at.Sub(x.began.at), x.processes()
	var together time.Duration
	for _, p := range computing {
		ran := now.since(x.began, p.PID()).ran
		if ran <= 0 {
			return "", fmt.Errorf("the stress process %d has not run for %v", p.PID(), hundredths(took))
		}
		together += ran
	}
	node := now.since(x.began, x.node.PIDs()...)
	return fmt.Sprintf("%d processes computed for %v in %v, and %s ran for %v and waited for %v", len(computing),
		hundredths(together), hundredths(took), x.node.Name(), hundredths(node.ran), hundredths(node.waited)), nil
}

func hundredths(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// still returns why the fault has ended although nobody has healed it.
func (x *stress) still(ctx context.Context) error {
	x.mu.Lock()
	err := x.lost
	x.mu.Unlock()
	for _, p := range x.processes() {
		select {
		case <-p.Done():
			err = errors.Join(err, fmt.Errorf("a stress process has ended: %w", orCleanExit(p.Err())))
		default:
		}
	}
	// A server that is just started, or a process that ends, is outside for a moment.
	if err = errors.Join(err, wait.Until(ctx, stressSeen, x.whole)); err == nil {
		x.seen, err = x.sinceBegan()
	}
	if err != nil {
		return fmt.Errorf("the stress of %s ended without a heal: %w", x.node.Name(), err)
	}
	return nil
}

// heal ends the computing processes and moves the node's processes back.
func (x *stress) heal(ctx context.Context) (string, error) {
	if err := x.end(); err != nil {
		return "", err
	}
	back := func() error { return x.all(x.node.PIDs(), x.above) }
	if err := wait.Until(ctx, stressSeen, back); err != nil { // an ending process is shown in the root group
		return "", err
	}
	if x.seen == "" {
		return "they have ended", nil
	}
	return "until they ended " + x.seen, nil
}

// end ends the computing processes and removes the group. It may be called again.
func (x *stress) end() (err error) {
	defer wrap.Error(&err, "end the stress of %s", x.node.Name())
	x.mu.Lock()
	x.ending = true
	x.mu.Unlock()
	for _, p := range x.processes() {
		err = errors.Join(err, p.Kill())
	}
	_, removed := x.group.Remove()
	if err = errors.Join(err, removed); err == nil {
		x.node.stress.CompareAndSwap(x, nil)
	}
	return err
}

func (s *Server) endStress() error {
	if x := s.stress.Load(); x != nil {
		return x.end()
	}
	return nil
}

// usage is the processor time of threads.
type usage struct {
	at      time.Time
	threads map[int]map[int]thread // by process and thread number
}

// thread holds how long a thread has run and how long it has waited for a processor. A wait that continues is not
// counted yet.
type thread struct{ ran, waited time.Duration }

// usageOf reads the processor time of the threads of processes from /proc/PID/task/TID/schedstat, see the kernel's
// sched-stats. A process that has ended has none.
func usageOf(pids []int) (u usage, err error) {
	defer wrap.Error(&err, "read how long a thread waits for a processor")
	u = usage{at: time.Now(), threads: map[int]map[int]thread{}}
	for _, pid := range pids {
		folder := "/proc/" + strconv.Itoa(pid) + "/task"
		tasks, err := os.ReadDir(folder)
		if err != nil {
			continue // it has ended
		}
		all := map[int]thread{}
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			if err != nil {
				return u, err
			}
			text, err := os.ReadFile(filepath.Join(folder, task.Name(), "schedstat"))
			if _, there := os.Stat(filepath.Join(folder, task.Name())); there != nil {
				continue
			}
			if err != nil {
				return u, fmt.Errorf("it needs CONFIG_SCHED_INFO: %w", err)
			}
			var t thread
			if _, err := fmt.Sscan(string(text), &t.ran, &t.waited); err != nil {
				return u, fmt.Errorf("%q: %w", text, err)
			}
			all[id] = t
		}
		u.threads[pid] = all
	}
	return u, nil
}

// since returns the processor time of the threads of processes since an earlier usage.
func (u usage) since(before usage, pids ...int) (sum thread) {
	for _, pid := range pids {
		for id, now := range u.threads[pid] {
			then := before.threads[pid][id]
			if now.ran < then.ran || now.waited < then.waited {
				then = thread{} // another thread has the number now
			}
			sum.ran += now.ran - then.ran
			sum.waited += now.waited - then.waited
		}
	}
	return sum
}
