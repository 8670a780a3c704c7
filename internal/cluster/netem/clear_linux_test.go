package netem

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"stroppy/internal/cluster/cgroup"
	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// owned holds what a program made before it is killed.
type owned struct {
	ID, Folder, Mount string
	Group             string // of one of the processes; empty if groups are not available
	PIDs              []int
	Keepers           []int // of the namespaces
}

// ownNetwork makes one thing of each kind, reports them, and waits to be killed. text is "loopback" or "namespaces"
// and a folder.
func ownNetwork(text string) error {
	kind, parent, _ := strings.Cut(text, " ")
	n, err := New(context.Background(), 2, kind == "loopback")
	if err != nil {
		return err
	}
	made := owned{}
	ready := filepath.Join(parent, host.RandomName())
	if f, ok := n.backend.(*namespaces); ok {
		made.ID = f.id
		for _, h := range f.hosts {
			made.Keepers = append(made.Keepers, h.keeper.cmd.Process.Pid)
		}
	}
	for i := range 2 {
		// It ignores the signals that report the end of this program.
		p, err := n.Host(i).Start(exec.Command("sh", "-c", `trap "" TERM HUP; echo >"$0"; sleep 1000 & wait`, ready), syscall.SIGTERM)
		if err != nil {
			return err
		}
		made.PIDs = append(made.PIDs, p.PID())
		if err := wait.Until(context.Background(), time.Minute, func() error { return os.Remove(ready) }); err != nil {
			return err
		}
	}
	r, err := host.NewRecord("postgres:2")
	if err != nil {
		return err
	}
	above, err := cgroup.ByPID(os.Getpid())
	if err != nil {
		return err
	}
	group := above.Child(host.RandomName())
	if err := r.Add(host.Leftover{Kind: host.LeftGroup, Name: group.Dir()}); err != nil {
		return err
	}
	if group.Make(1) == nil { // otherwise groups are not available
		if err := group.Add(made.PIDs[0]); err != nil {
			return err
		}
		made.Group = group.Dir()
	}
	if made.Folder, err = r.TempFolder(parent); err != nil {
		return err
	}
	if err := r.SetURL("postgres://u:secret@10.0.0.1:5432/db"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(made.Folder, "n0", "data"), 0o755); err != nil {
		return err
	}
	if kind == "namespaces" {
		made.Mount = filepath.Join(made.Folder, "n0", "data")
		if err := r.Add(host.Leftover{Kind: host.LeftMount, Name: made.Mount}); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", made.Mount, "tmpfs", 0, ""); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(made.Folder, "n0", "data", "row"), []byte("1"), 0o600); err != nil {
		return err
	}
	line, err := json.Marshal(made)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	select {}
}

// startOwner starts a program that makes things and returns what it made.
func startOwner(t *testing.T, kind, parent string) (*exec.Cmd, owned) {
	t.Helper()
	cmd := inRole(context.Background(), "own "+kind+" "+parent)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var made owned
	if err == nil {
		err = json.Unmarshal(line, &made)
	}
	if err != nil {
		t.Fatalf("the program that is to be killed says %q: %v", line, err)
	}
	return cmd, made
}

// exists reports whether a process exists and is no zombie.
func exists(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// TestClearRemovesNetworksOfKilledProgram checks that Clear removes what a killed program left of its network, and
// keeps what others have made. Namespaces end with their program, with their links, and with their processes, even
// if these ignore signals.
func TestClearRemovesNetworksOfKilledProgram(t *testing.T) {
	for _, kind := range []string{"namespaces", "loopback"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "namespaces" {
				needNamespaces(t)
			}
			t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
			parent := t.TempDir()
			if kind == "namespaces" {
				stays := foreign(t)
				defer stays()
			}
			_, living := startOwner(t, kind, parent)
			victim, made := startOwner(t, kind, parent)
			if err := victim.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = victim.Wait()
			if kind == "namespaces" {
				goByThemselves(t, made)
			}
			for _, pid := range made.PIDs {
				if kind == "loopback" && !exists(pid) {
					t.Fatalf("process %d, which heeds no signal, has not outlived its program", pid)
				}
			}
			lines, err := host.Clear(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Log(strings.Join(lines, "\n"))
			for _, pid := range made.PIDs {
				if exists(pid) {
					t.Errorf("process %d was not cleared", pid)
				}
				if reported := strings.Contains(strings.Join(lines, "\n"), "process "+strconv.Itoa(pid)); reported != (kind == "loopback") {
					t.Errorf("a line names process %d: %v", pid, reported)
				}
			}
			if _, err := os.Lstat(made.Folder); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder %s was not cleared: %v", made.Folder, err)
			}
			if made.Group != "" {
				if _, err := os.Lstat(made.Group); !errors.Is(err, os.ErrNotExist) || !strings.Contains(strings.Join(lines, "\n"), "group "+made.Group) {
					t.Errorf("the control group %s was not cleared: %v", made.Group, err)
				}
			}
			stillWhole(t, kind, living)
			if lines, err := host.Clear(t.Context()); err != nil || len(lines) > 0 {
				t.Errorf("a second Clear: %v, %v", lines, err)
			}
			endOwner(t, living)
		})
	}
}

// goByThemselves waits until no process and no link of a killed program is left.
func goByThemselves(t *testing.T, made owned) {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	for _, pid := range append(made.PIDs, made.Keepers...) {
		for exists(pid) {
			if time.Now().After(limit) {
				t.Fatalf("process %d has outlived its program", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for len(tracesOf(t, made)) > 0 {
		if time.Now().After(limit) {
			t.Fatalf("%v have outlived their program", tracesOf(t, made))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// tracesOf lists the links, if there were any.
func tracesOf(t *testing.T, made owned) []string {
	if made.ID == "" {
		return nil
	}
	return traces(t, made.ID)
}

// stillWhole checks that all that a living program made exists.
func stillWhole(t *testing.T, kind string, living owned) {
	t.Helper()
	for _, pid := range living.PIDs {
		if !exists(pid) {
			t.Errorf("process %d of a living program was cleared", pid)
		}
	}
	if _, err := os.ReadFile(filepath.Join(living.Folder, "n0", "data", "row")); err != nil {
		t.Errorf("a folder of a living program was cleared: %v", err)
	}
	if left := tracesOf(t, living); kind == "namespaces" && len(left) != 1 {
		t.Errorf("a living program has %v left", left)
	}
	records, err := host.Records()
	if err != nil || len(records) != 2 || !records[0].Alive || records[1].Kind != "postgres:2" || records[1].URL != "postgres://u@10.0.0.1:5432/db" {
		t.Errorf("the records of a living program are %+v, %v", records, err)
	}
}

// endOwner ends the living program by its record, as cluster down does, and clears what it left.
func endOwner(t *testing.T, living owned) {
	t.Helper()
	records, err := host.Records()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := r.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for limit := time.Now().Add(time.Minute); len(records) > 0; time.Sleep(10 * time.Millisecond) {
		if _, err := host.Clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		if records, err = host.Records(); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(limit) {
			t.Fatalf("%v are left", records)
		}
	}
	goByThemselves(t, living)
}

// foreign makes a bridge with a name like our links, which no program of ours has made. It returns a check that the
// bridge exists.
func foreign(t *testing.T) func() {
	t.Helper()
	id := host.RandomName()
	bridge := &netlink.Bridge{LinkAttrs: named(host.Prefix + id)}
	if err := netlink.LinkAdd(bridge); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(bridge); err != nil {
			t.Error(err)
		}
	})
	return func() {
		if _, err := netlink.LinkByName(host.Prefix + id); err != nil {
			t.Errorf("a foreign bridge was cleared: %v", err)
		}
	}
}
