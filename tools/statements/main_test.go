package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// newCampaign returns a campaign whose verifier is a program of docs/examples or another one.
func newCampaign(t *testing.T, verifier string) *campaign {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("skipped engine: python3: install the Debian package python3")
	}
	return &campaign{dir: t.TempDir(), verifier: verifier, call: inProcess, log: io.Discard}
}

// TestStatementsAreRebuiltAndAlteredCopiesAreNotBelieved makes seeded recordings of all mutants. A separate
// program must rebuild each statement of their reports, and no altered copy may accuse or acquit.
func TestStatementsAreRebuiltAndAlteredCopiesAreNotBelieved(t *testing.T) {
	c := newCampaign(t, filepath.Join("..", "..", verifierFile))
	n := 200
	if testing.Short() {
		n = 12
	}
	if err := c.run(n, n, 1); err != nil {
		t.Fatalf("%v\n%s", err, c.summary())
	}
	right, open := 0, 0
	for _, count := range c.right {
		right += count
	}
	for _, count := range c.open {
		open += count
	}
	if right == 0 || c.verdicts[0] == 0 || c.verdicts[1] == 0 || open > right/20 {
		t.Errorf("the campaign shows too little:\n%s", c.summary())
	}
}

// TestACampaignFindsWrongStatements checks that a campaign fails if a recording states a falsehood, if
// a healthy recording is accused, or if an altered recording is believed.
func TestACampaignFindsWrongStatements(t *testing.T) {
	const agrees = `print('{"right": {}, "wrong": [], "not_rebuilt": {}}')`
	for name, test := range map[string]struct {
		verifier string
		call     caller
	}{
		"wrong statement": {`print('{"right": {}, "wrong": [{}], "not_rebuilt": {}}')`, inProcess},
		"no statement":    {`print("")`, inProcess},
		"altered copy is valid": {agrees, func(args []string) (int, string) {
			if args[0] == "check" {
				return 0, ""
			}
			return inProcess(args)
		}},
		"every run is accused": {agrees, func(args []string) (int, string) {
			inProcess(args)
			return 1, ""
		}},
	} {
		t.Run(name, func(t *testing.T) {
			verifier := filepath.Join(t.TempDir(), "verifier.py")
			if err := os.WriteFile(verifier, []byte(test.verifier), 0o666); err != nil {
				t.Fatal(err)
			}
			c := newCampaign(t, verifier)
			c.call = test.call
			if err := c.run(2, 2, 5); err == nil { // both are healthy
				t.Errorf("the campaign has no problem:\n%s", c.summary())
			}
		})
	}
}

// TestTheVerifierRefusesForgedStatements checks that the separate program finds what is not so: it is given
// statements with another transaction, object, count or time than the recording has.
func TestTheVerifierRefusesForgedStatements(t *testing.T) {
	c := newCampaign(t, filepath.Join("..", "..", verifierFile))
	for _, test := range []struct {
		args, from, to string
	}{
		{"events", `"log-lost","fact":{"append":{"id":"1-`, `"log-lost","fact":{"append":{"id":"9-`},
		{"append", `"end":{"length":`, `"end":{"length":1`},
		{"kv --records 5 --read-share 0.2 --update-share 0.8", `"writes":`, `"writes":7`},
		{"tpcb --ratio 1:2:20", `"lost","fact":{"transaction":"1-`, `"lost","fact":{"transaction":"9-`},
		{"bank --accounts 50", `"lost","fact":{"transaction":"1-`, `"lost","fact":{"transaction":"9-`},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		rest := "--db memory:?mutant=lost-ack&rate=0.2 --count 600 --clients 4 --seed 1 -q --out"
		args := slices.Concat([]string{"run"}, strings.Fields(test.args), strings.Fields(rest), []string{dir})
		if code, last := inProcess(args); code != 1 {
			t.Fatalf("%s: exit code %d: %s", test.args, code, last)
		}
		if printed, err := exec.Command("python3", "-B", c.verifier, dir).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", test.args, err, printed)
		}
		file := filepath.Join(dir, "violations.jsonl")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		forged := bytes.Replace(data, []byte(test.from), []byte(test.to), 1)
		if bytes.Equal(forged, data) {
			t.Fatalf("%s: no statement has %s:\n%.500s", test.args, test.from, data)
		}
		if err := os.WriteFile(file, forged, 0o666); err != nil {
			t.Fatal(err)
		}
		if printed, err := exec.Command("python3", "-B", c.verifier, dir).CombinedOutput(); err == nil {
			t.Errorf("%s: the forged statement is right:\n%s", test.args, printed)
		}
	}
}

// TestEachChangeAlters checks that each way to alter a copy changes its bytes.
func TestEachChangeAlters(t *testing.T) {
	c := &campaign{dir: t.TempDir(), call: inProcess, log: io.Discard}
	args := strings.Fields("run bank --accounts 50 --count 200 --clients 2 --db memory:")
	r := &recording{dir: filepath.Join(c.dir, "run"), args: args, seed: 1}
	r.code, _, _ = c.make(r.args, r.seed, r.dir)
	rng := rand.New(rand.NewPCG(1, 47))
	for i, alter := range changes {
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(r.dir)); err != nil {
			t.Fatal(err)
		}
		how := alter(c, rng, r, copied)
		if how == "" && i < 6 {
			t.Errorf("change %d changes nothing", i)
		}
		if how != "" && same(t, r.dir, copied) {
			t.Errorf("%s: nothing is changed", how)
		}
	}
}

// same reports whether two directories have the same files with the same contents.
func same(t *testing.T, one, other string) bool {
	t.Helper()
	contents := func(dir string) map[string]string {
		all := map[string]string{}
		for _, file := range evidence(dir) {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			all[file] = string(data)
		}
		return all
	}
	a, b := contents(one), contents(other)
	for file, text := range a {
		if b[file] != text {
			return false
		}
	}
	return len(a) == len(b)
}
