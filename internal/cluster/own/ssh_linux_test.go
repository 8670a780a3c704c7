package own

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
)

// TestCommandsRunBySSH checks that a command of a node runs at its place by the ssh of the system, with its quotes. A
// failure and the end of its time are reported. The server is a real sshd on this machine.
func TestCommandsRunBySSH(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	place := startSSH(t)
	c := &Cluster{inventory: inventory{timeout: 20 * time.Second}, last: map[string]string{}}
	n := &node{cluster: c, number: 2, name: "it's", on: place}
	out, err := c.run(t.Context(), &command{key: kill, text: `echo "$SSH_CONNECTION" | cut -d' ' -f1; echo '{name}' two`}, n, false)
	if err == nil || !strings.Contains(err.Error(), "kill of n2 (it's)") {
		t.Errorf("an open quote: %q, %v", out.Answer, err)
	}
	out, err = c.run(t.Context(), &command{key: kill, text: `echo "$SSH_CONNECTION" | cut -d' ' -f1; echo "{name}  two"`}, n, false)
	if out.Answer != "127.0.0.1\nit's  two" || err != nil {
		t.Errorf("the answer is %q, %v", out.Answer, err)
	}
	if _, err = c.run(t.Context(), &command{key: kill, text: "echo broken >&2; exit 7"}, n, false); err == nil || !strings.Contains(err.Error(), "exit status 7: broken") {
		t.Errorf("a command that fails: %v", err)
	}
	c.timeout = 300 * time.Millisecond
	if _, err = c.run(t.Context(), &command{key: kill, text: "sleep 100"}, n, false); err == nil || !strings.Contains(err.Error(), "it had 300ms") {
		t.Errorf("a command that hangs: %v", err)
	}
}

// startSSH starts sshd, and puts an ssh on PATH that uses its keys. It returns the place of its commands.
func startSSH(t *testing.T) (place string) {
	t.Helper()
	ssh, errClient := exec.LookPath("ssh")
	sshd, errServer := exec.LookPath("sshd")
	if errClient != nil || errServer != nil {
		t.Skip("skipped engine: ssh: install the Debian package openssh-server")
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	port, err := host.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, key := range []string{"host", "id"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(key)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	files := map[string]string{
		"sshd_config": fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nUsePAM no\nStrictModes no\nPidFile none\nPermitRootLogin yes\n", port, in("host"), in("id.pub")),
		"ssh_config":  fmt.Sprintf("IdentityFile %s\nUserKnownHostsFile %s\nStrictHostKeyChecking accept-new\nLogLevel ERROR\n", in("id"), in("known")),
		"ssh":         fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, in("ssh_config")),
	}
	for name, text := range files {
		if err := os.WriteFile(in(name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	server, err := host.StartProcess(exec.Command(sshd, "-D", "-e", "-f", in("sshd_config")), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
	})
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	place = fmt.Sprintf("ssh://%s@127.0.0.1:%d", me.Username, port)
	prefix, err := remote(place)
	if err == nil {
		err = wait.Until(t.Context(), time.Minute, func() error {
			out, err := exec.Command("sh", "-c", prefix+" true").CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return place
}
