//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/report"
)

// pasted runs a command in dir as a shell would.
func pasted(dir, command string, variables ...string) (code int, stderr string) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(variables, "PATH="+os.Getenv("PATH"), "TMPDIR="+os.TempDir())
	var said strings.Builder
	cmd.Stderr = &said
	_ = cmd.Run() // ProcessState reports how it ended
	return cmd.ProcessState.ExitCode(), said.String()
}

// after returns the rest of the line after the text what.
func after(t *testing.T, text, what string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, what)
	if !found {
		t.Fatalf("%q is not in %s", what, text)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// testPaste checks that the printed commands of pay can be pasted. A password from a flag must be inserted first;
// without it the command is refused with an explanation. A password from the variable needs no change.
func testPaste(t *testing.T, url string) {
	dir := t.TempDir()
	const secret = "Tr0ub4dor-3"
	variable := "STROPPY_DB=" + url
	if code, _, stderr := call(t, "pop", "--db", url, "--accounts", "100"); code != 0 {
		t.Fatal(stderr)
	}
	for _, c := range []struct {
		name, call, lead string
		variables        []string
	}{
		{"flag", "stroppy pay --count 100 --out flag --db " + "'" + url + "'", "once xxxxx is the secret again, check it with: ", nil},
		{"variable", "stroppy pay --count 100 --out variable", "\ncheck it with: ", []string{variable}},
	} {
		code, said := pasted(dir, c.call, c.variables...)
		if code != 0 || strings.Contains(said, secret) {
			t.Fatalf("%s: %d, %s", c.name, code, said)
		}
		recorded, err := report.Read(filepath.Join(dir, c.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{recorded.Command, after(t, said, c.lead)} {
			if c.name == "flag" {
				code, said := pasted(dir, command)
				refused(t, code, 2, said, "--db is ", "where xxxxx stands for a password: put the password back")
				command = strings.Replace(command, "xxxxx", secret, 1)
			} else if !strings.Contains(command, `--db "$STROPPY_DB"`) {
				t.Errorf("%s", command)
			}
			want := 0
			if strings.HasPrefix(command, "stroppy check") {
				want = 4 // the other run on this bank is not given
			}
			if code, said := pasted(dir, command, c.variables...); code != want || strings.Contains(said, secret) {
				t.Errorf("%s: %s: %d, %s", c.name, command, code, said)
			}
		}
	}
}
