package host

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClearKeepsRecordsOfUnknownOwners checks that Clear keeps damaged records, and records of owners that cannot be
// compared with present processes.
func TestClearKeepsRecordsOfUnknownOwners(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	state, err := stateFolder()
	if err != nil {
		t.Fatal(err)
	}
	sleeper, err := StartProcess(exec.Command("sleep", "1000"), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	defer sleeper.Kill()
	self := thisProcess()
	old, other := self, self
	old.Boot, other.Space = "another", "pid:[1]"
	for _, c := range []struct {
		name           string
		owner          owner
		lives          bool
		tail           string // damage at the end
		folder, record bool   // not removed
		processStays   bool
	}{
		{name: "alive", owner: self, lives: true, folder: true, record: true, processStays: true},
		{name: "before a restart of the machine", owner: old, processStays: true},
		{name: "in another container", owner: other, folder: true, record: true, processStays: true},
		{name: "dead", owner: self, tail: `{"made":{"kind":"folder","na`, processStays: false},
	} {
		folder := filepath.Join(t.TempDir(), "stroppy-x")
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		var text []byte
		made := []Leftover{Leftover{Kind: LeftFolder, Name: folder}, Leftover{Kind: LeftFolder, Name: filepath.Dir(folder)}, ProcessLeftover(sleeper)}
		shared := made[2]
		shared.Kind = LeftShared
		clock := fmt.Sprintf("/dev/shm/faketime_shm_%d", shared.PID)
		if err := os.WriteFile(clock, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(clock)
		for _, e := range []entry{{Owner: &c.owner, Kind: "test"}, {Made: &made[0]}, {Made: &made[1]}, {Made: &made[2]}, {Made: &shared}} {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			text = append(append(text, line...), '\n')
		}
		record := filepath.Join(state, "r"+recordSuffix)
		if err := os.WriteFile(record, append(text, c.tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(record)
		if err == nil && c.lives {
			err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Clear(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		_ = file.Close()
		if _, err := os.Lstat(folder); (err == nil) != c.folder {
			t.Errorf("%s: the folder: %v", c.name, err)
		}
		if _, err := os.Lstat(clock); (err == nil) != c.processStays {
			t.Errorf("%s: what libfaketime has of the process: %v", c.name, err)
		}
		if _, err := os.Lstat(filepath.Dir(folder)); err != nil {
			t.Errorf("%s: a folder that is not named as ours was cleared", c.name)
		}
		if _, err := os.Lstat(record); (err == nil) != c.record {
			t.Errorf("%s: the record: %v", c.name, err)
		}
		if aliveNow(sleeper.PID()) != c.processStays {
			t.Errorf("%s: the process is alive: %v", c.name, !c.processStays)
		}
		_ = os.Remove(record)
	}
}

func aliveNow(pid int) bool {
	s, err := readStat(pid)
	return err == nil && s.state != 'Z'
}

// TestClearKeepsFoldersWithUnknownMounts checks that a folder is not removed if it contains a mount that no record
// names.
func TestClearKeepsFoldersWithUnknownMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped engine: mounts: run as root")
	}
	folder := filepath.Join(t.TempDir(), "stroppy-x")
	inside := filepath.Join(folder, "with a blank")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", inside, "tmpfs", 0, ""); err != nil {
		t.Skip("skipped engine: mounts: run as root: " + err.Error())
	}
	if was, err := removeFolder(folder); err == nil || was {
		t.Error("a folder was removed with somebody's mount in it")
	}
	if was, err := unmount(inside); err != nil || !was {
		t.Errorf("unmount: %v, %v", was, err)
	}
	if was, err := unmount(inside); err != nil || was {
		t.Errorf("a second unmount: %v, %v", was, err)
	}
	if was, err := removeFolder(folder); err != nil || !was {
		t.Errorf("remove the folder: %v, %v", was, err)
	}
}
