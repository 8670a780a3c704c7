package resource

import (
	"bufio"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"
)

// busy starts a shell that keeps one processor busy, as the grandchild of this process.
func busy(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", `sh -c 'echo ready; while :; do :; done'; :`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range slices.Backward((&family{root: int32(cmd.Process.Pid)}).pids()) {
			_ = exec.Command("kill", "-9", strconv.Itoa(pid)).Run()
		}
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestChildProcessTimeCountsOnce checks that the time of a child process counts exactly once.
func TestChildProcessTimeCountsOnce(t *testing.T) {
	cmd := busy(t)
	group := family{root: int32(cmd.Process.Pid)}
	for range 2 { // the second time by what the first one has read
		if all := group.pids(); len(all) != 2 || all[0] != cmd.Process.Pid {
			t.Fatalf("the family of %d is %v, not it and its child", group.root, all)
		}
	}
	begin := time.Now()
	m := New(0, Group{Name: "busy", PIDs: group.pids}, Group{Name: "gone", PIDs: func() []int { return nil }}, Self())
	var sum float64
	for range 5 {
		time.Sleep(200 * time.Millisecond)
		s := m.Sample(time.Since(begin))
		if !s.Groups[0].Known || s.Groups[1].Known || !s.Groups[2].Known {
			t.Fatalf("known are %+v, not the first and the last", s.Groups)
		}
		if s.Groups[0].RSS < 100<<10 || s.Groups[2].RSS < 1<<20 {
			t.Errorf("memory of a shell and of this test: %d and %d bytes", s.Groups[0].RSS, s.Groups[2].RSS)
		}
		sum += s.Groups[0].CPU
	}
	took := time.Since(begin).Seconds()
	if sum <= 0 || sum > took+0.1 {
		t.Errorf("one busy process used %.2f s of processor time in %.2f s", sum, took)
	}
	totals := m.Totals()
	if totals[0].CPU != sum || totals[0].MaxRSS == 0 || totals[1].Known || totals[0].Name != "busy" {
		t.Errorf("totals are %+v, the first should be %.2f s", totals, sum)
	}
}

// TestNewProcessCountsTimeBeforeFirstSample checks that the time before a process's first sample counts, unless it
// existed when the meter began.
func TestNewProcessCountsTimeBeforeFirstSample(t *testing.T) {
	var pids []int
	m := New(0, Group{Name: "late", PIDs: func() []int { return pids }})
	cmd := busy(t)
	for all := 0.0; all == 0; { // until the system has counted some of its time
		pids = (&family{root: int32(cmd.Process.Pid)}).pids()
		for _, pid := range pids {
			if u, err := look(pid); err == nil {
				all += u.cpu
			}
		}
	}
	late := m.Sample(time.Second).Groups[0]
	if late.CPU <= 0 {
		t.Errorf("a process that came after the meter began has used %v s", late.CPU)
	}
	early := New(0, Group{Name: "early", PIDs: func() []int { return pids }}).Sample(0).Groups[0]
	if early.CPU >= late.CPU {
		t.Errorf("a process that was there before counts %v s at once", early.CPU)
	}
}

func TestListenersAreFoundByAddress(t *testing.T) {
	var addresses []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	nobody := []string{gone.Addr().String(), "192.0.2.1:80", "no-port", "localhost:x"}
	all := Listeners(append(nobody, addresses...)...)
	if len(all) != len(addresses) {
		t.Fatalf("of the listeners at %v there are %d", addresses, len(all))
	}
	for i, g := range all {
		if g.Name != addresses[i] || !slices.Contains(g.PIDs(), selfPID()) {
			t.Errorf("the listener at %s is %s: not this test", addresses[i], g.Name)
		}
	}
	if all := Listeners(nobody...); len(all) > 0 {
		t.Errorf("listeners were found at %s", all[0].Name)
	}
}

func selfPID() int { return Self().PIDs()[0] }
