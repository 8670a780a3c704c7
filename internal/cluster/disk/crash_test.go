//go:build linux

package disk

import (
	"bufio"
	"context"
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

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/netem"
)

// ownerCommand makes this test program own a node on the file system and not end.
const ownerCommand = "test-owner"

func owner() int {
	err := own()
	fmt.Println(err)
	return 1
}

func own() error {
	record, err := host.NewRecord("test")
	if err != nil {
		return err
	}
	parent, err := record.TempFolder(os.TempDir())
	if err != nil {
		return err
	}
	network, err := netem.New(context.Background(), 1, true)
	if err != nil {
		return err
	}
	dir := filepath.Join(parent, "n0")
	n := host.NewServer(context.Background(), 0, network.Host(0), dir, dir+".log", host.Program{
		Command: func(context.Context) (*exec.Cmd, error) {
			return exec.Command("sh", "-c", `while echo line; do sleep 0.01; done > "$0"`, filepath.Join(dir, "file")), nil
		},
		Ready: func(context.Context) error { return nil },
		Death: syscall.SIGKILL, Shutdown: syscall.SIGTERM, ShutdownLimit: time.Second, FaultFS: true,
	})
	if err := n.Restart(context.Background()); err != nil {
		return err
	}
	fmt.Println(parent)
	select {}
}

// TestMountIsRemovedAfterOwnerIsKilled checks that no mount is left after the owner of the file system is killed.
// The file system unmounts itself. If its process is killed too, the next start clears it.
func TestMountIsRemovedAfterOwnerIsKilled(t *testing.T) {
	needFUSE(t)
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprintf("both %v", both), func(t *testing.T) {
			tmp := t.TempDir()
			t.Setenv("TMPDIR", tmp)
			t.Setenv("XDG_RUNTIME_DIR", "")
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, ownerCommand)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			parent := strings.TrimSpace(line)
			if err != nil || len(mountsIn(t, parent)) != 1 {
				t.Fatalf("the owner says %q, %v", line, err)
			}
			layer := childOf(t, cmd.Process.Pid)
			signals := []int{cmd.Process.Pid}
			if both {
				signals = append([]int{layer}, signals...)
			}
			for _, pid := range signals {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
			cmd.Wait() // the error of a killed process
			for limit := time.Now().Add(time.Minute); syscall.Kill(layer, 0) == nil; time.Sleep(time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatal("the process that serves the file system goes on")
				}
			}
			if mounts := mountsIn(t, parent); (len(mounts) > 0) != both {
				t.Errorf("mounts: %v", mounts)
			}
			cleared, err := host.Clear(t.Context())
			if err != nil || !strings.Contains(strings.Join(cleared, "\n"), "folder "+parent) {
				t.Errorf("cleared %q, %v", cleared, err)
			}
			if _, err := os.Stat(parent); !errors.Is(err, os.ErrNotExist) || len(mountsIn(t, parent)) > 0 {
				t.Errorf("after clearing: %v, %v", err, mountsIn(t, parent))
			}
		})
	}
}

// childOf finds the child process that serves a file system.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		line, _ := os.ReadFile(path)
		if !strings.Contains(string(line), "\x00"+host.FaultFSCommand) {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		if strings.Contains(string(status), fmt.Sprintf("PPid:\t%d\n", parent)) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("no process serves the file system")
	return 0
}
