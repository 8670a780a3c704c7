package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"stroppy/internal/cluster/cgroup"
)

// stress is what takes up the processors of a node: processes that do nothing but compute, which
// are with those of the node in a control group that weighs as much as one process on each
// processor. So they compete with the node, and hardly with its neighbours.
type stress struct {
	node  *Server
	group cgroup.Group
	began usage

	mu        sync.Mutex
	computing []*Process
	ending    bool   // no process comes into the group any more
	lost      error  // a process of the node that could not be put into the group
	seen      string // what the processors did until the heal
}

// computes is a script that needs nothing but a processor; $0 says to a person whose it is.
const computes, computesName = "while :; do :; done", "stroppy-stress"

// Time in which the processors are watched at least, and how long it may take until each of many
// processes has had one.
const stressWatched, stressSeen = 250 * time.Millisecond, 15 * time.Second

// Stressable says why the node's processors cannot be taken up, nil if they can. It makes a control
// group and removes it, but for a server that is only planned: there it is not known.
func (s *Server) Stressable() error {
	if s.planned || s.stressable.Load() {
		return nil
	}
	if _, err := usageOf([]int{os.Getpid()}); err != nil {
		return err
	}
	above, err := cgroup.Of(os.Getpid()) // which the servers are started in
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

// makeGroup makes a control group below another.
func (s *Server) makeGroup(above cgroup.Group) (cgroup.Group, error) {
	group := above.Child(randomName())
	if err := s.host.network.record.Add(Leftover{Kind: LeftGroup, Name: group.Dir()}); err != nil {
		return group, err
	}
	err := group.Make(runtime.NumCPU())
	switch {
	case errors.Is(err, os.ErrPermission):
		err = fmt.Errorf("%w: run as root, or by `systemd-run --user --scope -p Delegate=cpu`", err)
	case errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("%w: mount the control groups so that they can be written, as a privileged container has them", err)
	}
	return group, err
}

// Stress has so many processes compute that share what the node has of the processors, 0: one for
// each processor. What the node forks or is started meanwhile shares with them too. All that runs
// below the node's own process counts as its own.
func (s *Server) Stress(ctx context.Context, processes int) (Effect, error) {
	if processes == 0 {
		processes = runtime.NumCPU()
	}
	fail := func(err error) (Effect, error) {
		return Effect{}, fmt.Errorf("take up the processors of %s: %w", s.Name(), err)
	}
	p := s.current()
	if p == nil {
		return fail(errors.New("it is not running"))
	}
	above, err := cgroup.Of(p.PID())
	if err != nil {
		return fail(err)
	}
	x := &stress{node: s}
	if x.group, err = s.makeGroup(above); err != nil {
		return fail(err)
	}
	if !s.stress.CompareAndSwap(nil, x) {
		_, err = x.group.Remove()
		return fail(errors.Join(errors.New("other processes take them up already"), err))
	}
	e := Effect{Still: x.still, Heal: x.heal}
	if err = x.start(processes); err == nil {
		err = x.join(ctx)
	}
	if err == nil {
		e.Seen, err = x.observe(ctx)
	}
	if err != nil {
		err = fmt.Errorf("take up the processors of %s: %w", s.Name(), err)
	}
	return e, err
}

// start starts the processes that compute. They end with this program.
func (x *stress) start(count int) error {
	for range count {
		if err := x.startOne(); err != nil {
			return err
		}
	}
	return nil
}

func (x *stress) startOne() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ending {
		return errors.New("the node is being removed")
	}
	cmd := exec.Command("sh", "-c", computes, computesName)
	cmd.Env, cmd.Dir = []string{}, "/"
	p, err := StartProcess(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	x.computing = append(x.computing, p)
	return errors.Join(x.node.host.network.record.Add(ProcessLeftover(p)), x.group.Add(p.PID()))
}

// processes are those that compute.
func (x *stress) processes() []*Process {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.computing
}

// pids are those of the node and of the processes that compute.
func (x *stress) pids() []int {
	pids := x.node.PIDs()
	for _, p := range x.processes() {
		pids = append(pids, p.PID())
	}
	return pids
}

// join puts all processes of the node into the group, and sees that they are in it: what one forks
// while it is put there may be outside once more, and one that is about to end is shown in the root.
func (x *stress) join(ctx context.Context) error {
	return Until(ctx, stressSeen, func() error {
		err := x.whole()
		if err != nil {
			for _, pid := range x.node.PIDs() {
				_ = x.group.Add(pid) // one that has ended cannot be put anywhere
			}
		}
		return err
	})
}

// whole says which process runs outside of the group.
func (x *stress) whole() error {
	outside, err := x.outside()
	if err == nil && outside != 0 {
		err = fmt.Errorf("process %d of %s is outside of the control group", outside, x.node.Name())
	}
	return err
}

// outside returns a process that runs outside of the group; 0: there is none.
func (x *stress) outside() (int, error) {
	for _, pid := range x.pids() {
		is, err := cgroup.Of(pid)
		switch {
		case err != nil && ended(pid):
		case err != nil:
			return pid, err
		case is != x.group:
			return pid, nil
		}
	}
	return 0, nil
}

func ended(pid int) bool {
	stat, err := readStat(pid)
	return err != nil || !stat.alive()
}

// joinStress puts a server that was just started into the group of the processes that take up its
// processors. What goes wrong with that is the fault's error, and not the server's.
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

// observe sees that each of the processes that compute gets time of the processors, beside the node.
func (x *stress) observe(ctx context.Context) (seen string, err error) {
	if x.began, err = usageOf(x.pids()); err != nil {
		return "", err
	}
	err = Until(ctx, stressSeen, func() error {
		if err := Sleep(ctx, stressWatched); err != nil {
			return err
		}
		seen, err = x.sinceBegan()
		if err == nil && !x.node.Running() { // another fault has it for the moment, or it has ended
			err = errors.New("it is not running")
		}
		return err
	})
	return seen, err
}

// sinceBegan says what the processors did since the fault began, and is an error if one of the
// processes that compute got nothing of it.
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
			return "", fmt.Errorf("process %d, which is to compute, has had no processor for %v", p.PID(), hundredths(took))
		}
		together += ran
	}
	node := now.since(x.began, x.node.PIDs()...)
	return fmt.Sprintf("%d processes computed for %v in %v, and %s ran for %v and waited for %v", len(computing),
		hundredths(together), hundredths(took), x.node.Name(), hundredths(node.ran), hundredths(node.waited)), nil
}

func hundredths(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// still says why the processors are not taken up any more although nobody has healed it.
func (x *stress) still(ctx context.Context) error {
	x.mu.Lock()
	err := x.lost
	x.mu.Unlock()
	for _, p := range x.processes() {
		select {
		case <-p.Done():
			err = errors.Join(err, fmt.Errorf("a process that was to compute has ended: %w", orCleanExit(p.Err())))
		default:
		}
	}
	// A server that is started meanwhile, or a process that ends, is outside for a moment.
	if err = errors.Join(err, Until(ctx, stressSeen, x.whole)); err == nil {
		x.seen, err = x.sinceBegan()
	}
	if err != nil {
		return fmt.Errorf("the processors of %s were to be taken up: %w", x.node.Name(), err)
	}
	return nil
}

// heal ends the processes that compute, and puts those of the node back.
func (x *stress) heal(ctx context.Context) (string, error) {
	if err := x.end(); err != nil {
		return "", err
	}
	if err := Until(ctx, stressSeen, x.back); err != nil { // one that is about to end is shown in the root
		return "", err
	}
	if x.seen == "" {
		return "they have ended", nil
	}
	return "until they ended " + x.seen, nil
}

// back says which process of the node is not in the group that it was in before.
func (x *stress) back() error {
	above := filepath.Dir(x.group.Dir())
	for _, pid := range x.node.PIDs() {
		is, err := cgroup.Of(pid)
		switch {
		case err != nil && ended(pid):
		case err != nil:
			return err
		case is.Dir() != above:
			return fmt.Errorf("process %d of %s is in the control group %s, and not in %s as before", pid, x.node.Name(), is.Dir(), above)
		}
	}
	return nil
}

// end ends the processes that compute and removes the group. It may be called again.
func (x *stress) end() error {
	x.mu.Lock()
	x.ending = true
	x.mu.Unlock()
	var err error
	for _, p := range x.processes() {
		err = errors.Join(err, p.Kill())
	}
	_, removed := x.group.Remove()
	if err = errors.Join(err, removed); err != nil {
		return fmt.Errorf("end the processes that take up the processors of %s: %w", x.node.Name(), err)
	}
	x.node.stress.CompareAndSwap(x, nil)
	return nil
}

func (s *Server) endStress() error {
	if x := s.stress.Load(); x != nil {
		return x.end()
	}
	return nil
}

// usage is what threads had of the processors.
type usage struct {
	at      time.Time
	threads map[int]map[int]thread // by process, and by number
}

// thread is how long one has run, and how long it was ready to run and waited for a processor until
// it had one: a wait that goes on is not in it yet.
type thread struct{ ran, waited time.Duration }

// usageOf reads what the threads of processes had: /proc/PID/task/TID/schedstat, see the kernel's
// sched-stats. Of a process that has ended there are none.
func usageOf(pids []int) (usage, error) {
	u := usage{at: time.Now(), threads: map[int]map[int]thread{}}
	for _, pid := range pids {
		folder := "/proc/" + strconv.Itoa(pid) + "/task"
		tasks, err := os.ReadDir(folder)
		if err != nil {
			continue // it has ended
		}
		all := map[int]thread{}
		for _, task := range tasks {
			text, err := os.ReadFile(filepath.Join(folder, task.Name(), "schedstat"))
			id, wrong := strconv.Atoi(task.Name())
			if _, there := os.Stat(filepath.Join(folder, task.Name())); there != nil || wrong != nil {
				continue
			}
			if err != nil {
				return u, fmt.Errorf("see how long a thread waits for a processor, which needs a kernel with CONFIG_SCHED_INFO: %w", err)
			}
			fields := strings.Fields(string(text))
			if len(fields) < 2 {
				return u, fmt.Errorf("see how long a thread waits for a processor: %q has too few fields", text)
			}
			ran, errRan := strconv.ParseInt(fields[0], 10, 64)
			waited, errWaited := strconv.ParseInt(fields[1], 10, 64)
			if err := errors.Join(errRan, errWaited); err != nil {
				return u, fmt.Errorf("see how long a thread waits for a processor: %w", err)
			}
			all[id] = thread{time.Duration(ran), time.Duration(waited)}
		}
		u.threads[pid] = all
	}
	return u, nil
}

// since is what the threads of processes that are there had since an earlier time.
func (u usage) since(before usage, pids ...int) (sum thread) {
	for _, pid := range pids {
		for id, now := range u.threads[pid] {
			then := before.threads[pid][id]
			if now.ran < then.ran || now.waited < then.waited {
				then = thread{} // another one has the number now
			}
			sum.ran += now.ran - then.ran
			sum.waited += now.waited - then.waited
		}
	}
	return sum
}
