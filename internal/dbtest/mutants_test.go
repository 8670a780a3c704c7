package dbtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check/checktest"
	"stroppy/internal/cli"
	"stroppy/internal/db/memory"
	"stroppy/internal/tier"
)

// verdict is what these tests read of result.json.
type verdict struct {
	Verdict string
	Drive   struct{ Committed uint64 }
	Checks  []struct{ Name, Status, Detail string }
}

func (v verdict) status(check string) string {
	for _, c := range v.Checks {
		if c.Name == check {
			return c.Status
		}
	}
	return "missing"
}

// bankOn runs the whole program on a database and returns its exit code and
// what it found.
func bankOn(t *testing.T, url string, args ...string) (int, verdict) {
	t.Helper()
	var out, complaints bytes.Buffer
	args = append([]string{"run", "bank", "--json", "--db", url, "--out", runDir(t)}, args...)
	code := cli.Main(args, nil, strings.NewReader(""), &out, &complaints)
	var v verdict
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatalf("stroppy %v: exit code %d, %v\n%s", args, code, err, complaints.String())
	}
	return code, v
}

// twentyThousand is a run of at least 20,000 transfers: 8 % of the transactions of the
// default mix are inquiries or rejected.
func twentyThousand(seed int) []string {
	return []string{"--clients", "64", "--count", "23000", "--accounts", "1000", "--seed", fmt.Sprint(seed)}
}

// seeds are the seeds of a test that has to hold for the first n, all of which `make seeds`
// asks for. The run of all tests takes a tenth, or two where that is less; in short tests, and under the race detector,
// which looks for something else, few will do.
func seeds(n int) []int {
	switch {
	case raceEnabled || testing.Short():
		n = max(1, n/40)
	case checktest.Factor() == 0:
		n = max(min(n, 2), n/10)
	}
	list := make([]int, n)
	for i := range list {
		list[i] = i + 1
	}
	return list
}

// cases are what a test runs of cases that share their code but for a line. Under the
// race detector, which looks for something else, one is enough.
func cases[T any](list ...T) []T {
	if raceEnabled {
		return list[:1]
	}
	return list
}

// TestMutants: every planted bug, at one in a thousand, is found by the check
// meant for it, for 20 seeds of 20. The run of all tests has one of them, and of phantoms, which
// come up in two ways, two.
func TestMutants(t *testing.T) {
	t.Parallel()
	for _, m := range cases(memory.Mutants()...) {
		for _, seed := range seeds(20) {
			if checktest.Factor() == 0 && seed > 1 && m.Name != "phantom" {
				continue
			}
			t.Run(fmt.Sprintf("%s/seed=%d", m.Name, seed), func(t *testing.T) {
				t.Parallel()
				args := twentyThousand(seed)
				if m.Name == "phantom" {
					args = append(args, "--count", "30000", "--opening-share", "0.2", "--predicate-share", "0.05")
					if seed%2 == 0 {
						args = append(args, "--low-balance-share", "0.2")
					}
				}
				code, v := bankOn(t, fmt.Sprintf("memory:?mutant=%s&rate=0.001&seed=%d", m.Name, seed), args...)
				if code != 1 || v.Verdict != "invalid" || v.status(m.Check) != "invalid" {
					t.Errorf("exit code %d, verdict %s, %s is %s: %+v", code, v.Verdict, m.Check, v.status(m.Check), v.Checks)
				}
				if v.Drive.Committed < 20000 {
					t.Errorf("only %d transactions were committed", v.Drive.Committed)
				}
			})
		}
	}
}

// TestReference: the healthy reference stays valid for 200 seeds of 200, also
// when it aborts at random and leaves clients in doubt.
func TestReference(t *testing.T) {
	tier.SkipUnderRace(t)
	t.Parallel()
	for _, seed := range seeds(200) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			url := []string{
				"memory:?seed=%d", "memory:?abort=0.01&unknown=0.01&seed=%d",
			}[seed%2]
			code, v := bankOn(t, fmt.Sprintf(url, seed), twentyThousand(seed)...)
			if code != 0 || v.Verdict != "valid" {
				t.Errorf("exit code %d, verdict %s: %+v", code, v.Verdict, v.Checks)
			}
		})
	}
}

// TestReferenceUnderContention: the same with few accounts and popular ones, so
// that many transactions meet.
func TestReferenceUnderContention(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(10) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			args := append(twentyThousand(seed), "--zipfian")
			args[slices.Index(args, "1000")] = "20"
			args[slices.Index(args, "23000")] = fmt.Sprint(counted(23000))
			code, v := bankOn(t, fmt.Sprintf("memory:?unknown=0.05&seed=%d", seed), args...)
			if code != 0 || v.Verdict != "valid" {
				t.Errorf("exit code %d, verdict %s: %+v", code, v.Verdict, v.Checks)
			}
		})
	}
}
