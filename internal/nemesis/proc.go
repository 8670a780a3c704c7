package nemesis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"stroppy/internal/cluster"
)

// process names one process for ever: numbers are used again, start times with
// the same number are not.
type process struct {
	pid   int
	start string // field 22 of /proc/PID/stat, in clock ticks since boot
}

// state reads the state of a process from /proc/PID/stat, see proc(5): T is
// stopped, Z is dead and not yet waited for. It is 0 when the process is gone. The
// second field, the program's name, is in brackets and may hold any character.
func (p process) state() byte {
	now, state := look(p.pid)
	if now.start != p.start {
		return 0
	}
	return state
}

func (p process) alive() bool {
	s := p.state()
	return s != 0 && s != 'Z' && s != 'X'
}

func (p process) stopped() bool {
	s := p.state()
	return s == 'T' || s == 't'
}

// look returns what has the number now; its state is 0 where nothing has it.
func look(pid int) (process, byte) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return process{}, 0
	}
	return process{pid: pid, start: string(fields[19])}, fields[0][0]
}

// processesOf lists the processes of the nodes as they are now.
func processesOf(nodes ...cluster.Node) (list []process) {
	for _, n := range nodes {
		for _, pid := range n.PIDs() {
			if p, state := look(pid); state != 0 {
				list = append(list, p)
			}
		}
	}
	return list
}

// How long and how often an effect is looked for that comes by itself.
const (
	lookFor   = 2 * time.Second
	lookEvery = 5 * time.Millisecond
)

// until calls seen until it returns nil, at most for so long; the error is the
// last that it returned.
func until(ctx context.Context, limit time.Duration, seen func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := seen()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lookEvery):
		}
	}
}

// each calls do for all nodes at once and joins what they return.
func each(nodes []cluster.Node, do func(cluster.Node) error) error {
	errs := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { errs[i] = do(n) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// count says how many there are, for a person.
func count(n int, what, many string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %s", n, many)
}
