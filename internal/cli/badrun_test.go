//go:build unix

package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stroppy/internal/history"
	"stroppy/internal/report"
)

// recorded returns the directory of a valid run.
func recorded(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	code, _, stderr := call(t, "run", "--db", "memory:", "--accounts", "100", "--clients", "4", "--count", "3000", "--audits", "0", "--seed", "4", "--out", dir)
	if code != 0 {
		t.Fatal(stderr)
	}
	return dir
}

// alter changes the bytes of a file.
func alter(t *testing.T, path string, change func(data []byte) []byte) {
	t.Helper()
	if err := os.WriteFile(path, change([]byte(read(t, path))), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedRunHasNoVerdict checks that damage is reported with its file and place.
func TestDamagedRunHasNoVerdict(t *testing.T) {
	t.Parallel()
	flip := func(data []byte) []byte { data[len(data)/2] ^= 0x10; return data }
	const transactions = "history/transactions.bin"
	for _, test := range []struct {
		name, file string
		change     func(data []byte) []byte
		code       int
		says       []string
	}{
		{"a byte of the history", transactions, flip, 4, []string{transactions, "altered or damaged at offset"}},
		{"a byte of the ledger", "history/end-ledger.bin", flip, 4, []string{"history/end-ledger.bin", "altered or damaged at offset"}},
		{"a byte of the accounts", "history/end-objects.bin", flip, 4, []string{"history/end-objects.bin", "altered or damaged at offset"}},
		{"half a history", transactions, func(data []byte) []byte { return data[:len(data)/2] }, 4, []string{"The run was cut off"}},
		{"bytes added", transactions, func(data []byte) []byte { return append(data, "more"...) }, 4, []string{transactions, "altered or damaged at offset", "4 bytes were added behind its end"}},
		{"another file", transactions, func([]byte) []byte { return []byte("This is no history, but text of some length.") }, 3, []string{transactions, "not a file of Stroppy"}},
		{"an empty file", transactions, func([]byte) []byte { return nil }, 3, []string{transactions, "cut off before its first record"}},
		{"a newer history", transactions, func(data []byte) []byte { data[8] = 99; return data }, 3, []string{transactions, "format 99", "use a newer Stroppy"}},
		{"a newer result", report.FileName, func(data []byte) []byte {
			return []byte(strings.Replace(string(data), `"schema": 1`, `"schema": 7`, 1))
		}, 3, []string{report.FileName, "schema 7 and this stroppy reads schema 1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := recorded(t)
			alter(t, filepath.Join(dir, test.file), test.change)
			before := read(t, filepath.Join(dir, test.file))
			code, stdout, stderr := call(t, "check", dir)
			refused(t, code, test.code, stderr, test.says...)
			if strings.HasPrefix(stdout, "VALID") || test.code == 3 && stdout != "" {
				t.Errorf("it printed %s", stdout)
			}
			if test.code == 3 && read(t, filepath.Join(dir, test.file)) != before {
				t.Errorf("%s was written over", test.file)
			}
		})
	}
}

// TestDamagedResultIsRefused checks that a damaged result.json is named and not overwritten. Without it, the history
// decides.
func TestDamagedResultIsRefused(t *testing.T) {
	t.Parallel()
	const altered = "altered or damaged since it was written: its checksum is wrong"
	for _, test := range []struct {
		what   string
		change func(string) string
	}{
		{"no result of stroppy", func(text string) string { return text[:len(text)/2] }},
		{altered, strings.NewReplacer(`"verdict": "valid"`, `"verdict": "perfect"`).Replace},
		{altered, strings.NewReplacer(`"verdict": "valid"`, `"verdict": "invalid"`).Replace},
		{altered, strings.NewReplacer(`"committed": 2`, `"committed": 9`).Replace},
	} {
		dir := recorded(t)
		path := filepath.Join(dir, report.FileName)
		alter(t, path, func(data []byte) []byte { return []byte(test.change(string(data))) })
		before := read(t, path)
		code, stdout, stderr := call(t, "check", dir)
		refused(t, code, 3, stderr, report.FileName, test.what, "restore it from a copy, or remove it")
		if stdout != "" || read(t, path) != before {
			t.Errorf("it printed %q, and %s was written over: %t", stdout, report.FileName, read(t, path) != before)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if code, stdout, stderr := call(t, "check", dir); code != 0 || !strings.HasPrefix(stdout, "VALID") {
			t.Errorf("without it the check ended with %d: %s%s", code, stderr, stdout)
		}
	}
}

// TestIncompleteEndStateIsNone checks that one of the two files is no end state.
func TestIncompleteEndStateIsNone(t *testing.T) {
	t.Parallel()
	dir := recorded(t)
	if err := os.Remove(filepath.Join(dir, "history", "end-ledger.bin")); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, "check", dir)
	refused(t, code, 4, stderr, "history/end-ledger.bin", "download the end state again")
}

// TestUnsavedVerdictIsShown checks that a verdict that cannot be saved is shown, and is no success.
func TestUnsavedVerdictIsShown(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--db", "memory:", "--accounts", "100", "--clients", "4", "--count", "600", "--rate", "400", "--audits", "0", "--out", "run")
	result := filepath.Join(p.dir, "run", report.FileName)
	p.goesOn(t, func() bool { return os.Remove(result) == nil })
	if err := os.MkdirAll(filepath.Join(result, "in the way"), 0o777); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := p.wait(t)
	refused(t, code, 3, stderr, "the verdict could not be kept: write run/result.json: ", "`stroppy check` finds it again")
	if !strings.HasPrefix(stdout, "VALID") {
		t.Errorf("it printed %s", stdout)
	}
	if err := os.RemoveAll(result); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := call(t, "check", filepath.Join(p.dir, "run")); code != 0 || !strings.HasPrefix(stdout, "VALID") {
		t.Errorf("its check: %d: %s%s", code, stderr, stdout)
	}
}

// onFullDisk is a shell script for a disk with room for one megabyte. If it cannot mount such a disk, it limits the
// size of files to half of that.
const onFullDisk = `
if mount -t tmpfs -o size=1m none small 2>/dev/null; then touch mounted; else ulimit -f 1024; fi
stroppy run --db memory: --accounts 100 --clients 4 --duration 10m --audits 0 --out small/run >out 2>err
echo $? >code
cp -r small/run copy
if [ -e mounted ]; then cat /dev/zero >small/more 2>/dev/null; fi
stroppy check small/run >out2 2>err2
echo $? >code2
`

// TestFullDiskEndsTheRun checks that a full disk ends the run with one sentence, and that the recording can be
// checked.
func TestFullDiskEndsTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "small"), 0o777); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", onFullDisk)
	if _, err := exec.LookPath("unshare"); err == nil && exec.Command("unshare", "-m", "true").Run() == nil {
		shell = exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", onFullDisk) // the mount ends with the shell
	}
	shell.Dir = dir
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file := func(name string) string { return read(t, filepath.Join(dir, name)) }
	var code, code2 int
	for name, to := range map[string]*int{"code": &code, "code2": &code2} {
		if err := json.Unmarshal([]byte(file(name)), to); err != nil {
			t.Fatal(err)
		}
	}
	_, err := os.Stat(filepath.Join(dir, "mounted"))
	mounted, stderr := err == nil, file("err")
	why := "no space left on device: free some space there"
	if !mounted {
		why = "file too large: see to that file and its disk"
	}
	refused(t, code, 3, stderr, "record the history in small/run/history/transactions.bin: "+why)
	if strings.Count(stderr, "record the history") != 1 {
		t.Errorf("it is reported more than once: %s", stderr)
	}
	refused(t, code2, 4, file("err2"), "The run was cut off")
	if mounted && !strings.Contains(file("err2"), "the verdict could not be kept: write small/run/result.json: ") {
		t.Errorf("the check does not report that it could not write: %s", file("err2"))
	}
	if !strings.HasPrefix(file("out2"), "UNKNOWN") {
		t.Errorf("the check on the full disk prints %s", file("out2"))
	}

	copied := filepath.Join(dir, "copy")
	h, err := history.Open(filepath.Join(copied, "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	records := 0
	for _, err := range h.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		records++
	}
	if records < 1000 || h.Complete() {
		t.Errorf("%d transactions can be read", records)
	}
	code, _, stderr = call(t, "check", copied)
	refused(t, code, 4, stderr, "The run was cut off")
	if code, stdout, stderr := call(t, "report", copied); code != 0 || !strings.HasPrefix(stdout, "UNKNOWN") {
		t.Errorf("its report: %d: %s%s", code, stderr, stdout)
	}
}
