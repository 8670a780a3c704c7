package internal_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// finding is a script that shows a finding of docs/track-record.md on a server of this machine. Its exit code is 1 if
// the finding shows. The script itself checks what must be right beside it, and reports that by another exit code.
type finding struct {
	needs    []string // programs and libraries
	packages string   // of Debian, that have them
	says     []string // what the track record says of it
}

var findings = map[string]finding{
	"galera-halves-packet.sh": {
		needs: []string{"mariadbd", "rsync", "/usr/lib/galera/libgalera_smm.so"}, packages: "mariadb-server, galera-4 and rsync",
		says: []string{
			"in one packet: acknowledged, and the balances are 100 and 2\n",
			"in one packet, with COMMIT alone left: acknowledged, and the balances are 100 and 0\n",
		},
	},
	"patroni-overwrites-leader.sh": {
		needs: []string{"etcd", "patroni", "/usr/lib/python3/dist-packages/etcd"}, packages: "patroni, python3-etcd and etcd-server",
		says: []string{"the leader key is of n1; n0 goes on and updates its lock: True; the key is of n0\n"},
	},
}

// TestScriptsShowFindings runs those scripts that need no other server than the tests do.
func TestScriptsShowFindings(t *testing.T) {
	needDocuments(t)
	for name, f := range findings {
		t.Run(name, func(t *testing.T) {
			for _, needed := range f.needs {
				if _, err := exec.LookPath(needed); err != nil && !there(needed) {
					t.Skipf("skipped engine: %s: install the Debian packages %s", name, f.packages)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "../scripts/"+name)
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it stops its servers
			cmd.WaitDelay = time.Minute
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v, not with exit code 1\n%s", err, out)
			}
			for _, says := range f.says {
				if !strings.Contains(string(out), says) {
					t.Errorf("it does not say %q\n%s", says, out)
				}
			}
		})
	}
}

func there(path string) bool {
	_, err := os.Stat(path)
	return filepath.IsAbs(path) && err == nil
}

// TestFindingsHaveCommands checks that every bug of docs/track-record.md has a command that shows it again. Scripts
// must exist and be executable.
func TestFindingsHaveCommands(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "../docs/track-record.md"), "\n## Bugs\n")
	bugs, _, _ := strings.Cut(text, "\n## ")
	entries := strings.Split(bugs, "\n### ")[1:]
	if len(entries) < 5 {
		t.Fatalf("docs/track-record.md has %d bugs", len(entries))
	}
	for _, entry := range entries {
		title, body, _ := strings.Cut(entry, "\n")
		_, after, found := strings.Cut(body, "**Command**")
		if !found || !regexp.MustCompile("\n\n  `(?:stroppy|\\./scripts/)[^`]+`").MatchString(after) {
			t.Errorf("%s has no command that shows it again", title)
		}
	}
	scripts := regexp.MustCompile("`\\./(scripts/[a-z-]+\\.sh)").FindAllStringSubmatch(text, -1)
	if len(scripts) < 4 {
		t.Errorf("docs/track-record.md names %d scripts", len(scripts))
	}
	for _, script := range scripts {
		path := "../" + script[1]
		must(t, "sh", "-n", path)
		if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be run: %v", path, err)
		}
	}
}
