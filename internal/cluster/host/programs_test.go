package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster/wait"
)

func TestFindUsesPathOrNewestVersion(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"9", "15", "14"} {
		bin := filepath.Join(dir, version, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o755)
		if version == "9" {
			mode = 0o644 // not a program
		}
		if err := os.WriteFile(filepath.Join(bin, "server"), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Find("server", "some-package", dir+"/*/bin")
	if want := filepath.Join(dir, "15", "bin", "server"); err != nil || got != want {
		t.Errorf("Find = %s, %v, want %s", got, err, want)
	}
	if got, err := Find("sh", "dash", dir+"/*/bin"); err != nil || !strings.HasSuffix(got, "/sh") {
		t.Errorf("Find on PATH = %s, %v", got, err)
	}
	_, err = Find("no-such-server", "some-package", dir+"/*/bin")
	if want := (MissingError{Program: "no-such-server", Package: "some-package"}); !errors.Is(err, want) {
		t.Errorf("Find of nothing: %v, want %v", err, want)
	}
}

func TestFreePortIsBelowEphemeralPorts(t *testing.T) {
	for range 20 {
		if port, err := FreePort(t.Context()); err != nil || port < 1024 || port >= 32768 {
			t.Fatalf("FreePort = %d, %v", port, err)
		}
	}
}

// poll waits until ready returns true.
func poll(ctx context.Context, ready func() bool) error {
	return wait.Retry(ctx, func() error {
		if !ready() {
			return errors.New("it is not ready")
		}
		return nil
	})
}

// TestKillEndsDetachedGrandchildren checks that a kill also ends a grandchild that has left the process group and
// ignores every signal that can be ignored.
func TestKillEndsDetachedGrandchildren(t *testing.T) {
	for _, paused := range []bool{false, true} {
		// The signals are ignored before there is a grandchild.
		p, err := StartProcess(exec.Command("sh", "-c", `sh -c 'trap "" TERM INT HUP; while :; do sleep 100; done' & wait`), syscall.SIGKILL)
		if err != nil {
			t.Fatal(err)
		}
		err = poll(t.Context(), func() bool {
			children, err := childrenOf([]int{p.PID()})
			if err != nil || len(children) == 0 {
				return false
			}
			grandchildren, err := childrenOf([]int{children[0].pid})
			return err == nil && len(grandchildren) > 0
		})
		if err != nil {
			t.Fatal(err)
		}
		tree, err := freeze(p.id())
		if err != nil || len(tree) < 3 {
			t.Fatalf("the tree is %v, %v, want two shells and a sleep at least", tree, err)
		}
		if !paused {
			if err := p.Resume(); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, id := range tree {
			if id.alive() {
				t.Errorf("process %d survived", id.pid)
			}
		}
		if p.Err() == nil {
			t.Error("a killed process ended without an error")
		}
		if err := p.Kill(); err != nil {
			t.Errorf("a second Kill: %v", err)
		}
	}
}

// TestErrorContainsLastLinesOfOutput checks that an error contains a limited number of the last lines of a
// program's output.
func TestErrorContainsLastLinesOfOutput(t *testing.T) {
	long, half := strings.Repeat("é", 2000), strings.Repeat("h", 250)
	etcd := `{"level":"warn","ts":"2026-11-29T02:00:00.1Z","caller":"rafthttp/probing_status.go:68","msg":"prober detected unhealthy status","round-tripper-name":"RAFT_MESSAGE","rtt":"0s","error":"dial tcp 10.0.0.3:2380: connection refused"}`
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                 {"", ""},
		"five lines":              {"1\n2\n3\n4\n5\n6\n\n", "2 | 3 | 4 | 5 | 6"},
		"one long line":           {"before\n" + long, strings.Repeat("é", 399) + "…"},
		"a long line before":      {long + "\nlast", "last"},
		"whole lines":             {half + "\n" + half, half},
		"etcd's JSON":             {`{"level":"info","msg":"starting"}` + "\n" + etcd, "info: starting | warn: prober detected unhealthy status: dial tcp 10.0.0.3:2380: connection refused"},
		"MongoDB's JSON":          {`{"t":{"$date":"2026"},"s":"E","c":"NETWORK","id":1,"msg":"Failed to listen","attr":{"error":{"code":9001}}}`, "E: Failed to listen: map[code:9001]"},
		"JSON without a level":    {`{"msg":"starting"}`, "starting"},
		"JSON that is no line":    {`{"code":3,"message":"no"}`, `{"code":3,"message":"no"}`},
		"JSON that does not end":  {`{"level":"warn","msg":"sta`, `{"level":"warn","msg":"sta`},
		"a line in JSON and text": {etcd[:20] + "\nkilled", etcd[:20] + " | killed"},
	} {
		if got := LastLines([]byte(c.text)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestUnknownVersionErrorContainsOutput checks that the error for a program without a version contains its output.
// Child processes of the program must not delay the answer.
func TestUnknownVersionErrorContainsOutput(t *testing.T) {
	for text, want := range map[string]struct{ said, problem string }{
		"echo 1.2":                    {"1.2", ""},
		"sleep 20 & echo 1.2":         {"1.2", ""},
		"exit 3":                      {"", "for its version: exit status 3"},
		"echo no such module; exit 3": {"", "for its version: exit status 3: no such module"},
		"sleep 20; echo 1.2":          {"", "for its version: context deadline exceeded"},
	} {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		limit := 10 * time.Second
		if strings.HasPrefix(text, "sleep 20;") {
			limit = 200 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		began := time.Now()
		said, err := VersionOf(ctx, program)
		if said != want.said || (err == nil) != (want.problem == "") || err != nil && err.Error() != "ask "+program+" "+want.problem {
			t.Errorf("%s: %q, %v, want %q", text, said, err, want)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s took %v", text, took)
		}
	}
}
