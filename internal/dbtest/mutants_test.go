package dbtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check/checktest"
	voltdbcluster "stroppy/internal/cluster/voltdb"
	"stroppy/internal/db/memory"
	"stroppy/internal/report"
	"stroppy/internal/tier"
)

// verdict is the result of a run of the program. It is empty if the program printed no result.
type verdict struct {
	report.Result
	dir string
}

// status returns the status of a check.
func (v verdict) status(check string) string {
	for _, c := range v.Checks {
		if c.Name == check {
			return c.Status
		}
	}
	return "missing"
}

// program runs `stroppy run` with a workload in this process. It returns the exit code, the result and standard
// error. It skips the test if this machine lacks a package, a right or a device for the run.
func program(t *testing.T, workload string, args ...string) (code int, v verdict, complaints string) {
	t.Helper()
	v = verdict{report.Result{Drive: &report.Drive{}}, runDir(t)}
	code, stdout, complaints := stroppy(append([]string{"run", workload, "--json", "--out", v.dir}, args...)...)
	lacks := func(what string) bool { return strings.Contains(complaints, what) }
	needs := []string{"install the Debian package", "no Debian package has", "-tags ", "/dev/fuse", voltdbcluster.Variable}
	if code == 3 && slices.ContainsFunc(needs, lacks) || code == 2 && lacks("run as root") {
		t.Skip("skipped engine: " + lastLine(complaints))
	}
	if stdout != "" {
		r, err := report.Parse([]byte(stdout))
		if err != nil {
			t.Fatalf("stroppy run %s %v: exit code %d, %v\n%s", workload, args, code, err, complaints)
		}
		v.Result = *r
	}
	return code, v, complaints
}

// twentyThousand returns arguments for at least 20,000 committed transactions. With the default mix 8 % of the
// transactions are inquiries or rejected.
func twentyThousand(url string, seed int) []string {
	return []string{"--db", url, "--clients", "64", "--count", "23000", "--accounts", "1000", "--seed", fmt.Sprint(seed)}
}

// seeds returns the seeds of a test. `make seeds` runs all n seeds; other runs use a tenth of them, at least two.
// Short tests and the race detector use fewer.
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

// cases returns the cases to run. Under the race detector it returns only the first, because the other cases run the
// same code.
func cases[T any](list ...T) []T {
	if raceEnabled {
		return list[:1]
	}
	return list
}

// TestBankFindsPlantedBugs checks that each planted bug, at a rate of 0.001, is found by its own check. `make seeds`
// runs 20 seeds. Other runs have one seed, and two seeds for phantoms, which can occur in two ways.
func TestBankFindsPlantedBugs(t *testing.T) {
	t.Parallel()
	for _, m := range cases(memory.Mutants()...) {
		for _, seed := range seeds(20) {
			if checktest.Factor() == 0 && seed > 1 && m.Name != "phantom" {
				continue
			}
			t.Run(fmt.Sprintf("%s/seed=%d", m.Name, seed), func(t *testing.T) {
				t.Parallel()
				args := twentyThousand(fmt.Sprintf("memory:?mutant=%s&rate=0.001&seed=%d", m.Name, seed), seed)
				if m.Name == "phantom" {
					args = append(args, "--count", "30000", "--opening-share", "0.2", "--predicate-share", "0.05")
					if seed%2 == 0 {
						args = append(args, "--low-balance-share", "0.2")
					}
				}
				code, v, why := program(t, "bank", args...)
				if code != 1 || v.Verdict != "invalid" || v.status(m.Check) != "invalid" {
					t.Errorf("exit code %d, verdict %s, %s is %s: %+v\n%s", code, v.Verdict, m.Check, v.status(m.Check), v.Checks, why)
				}
				if v.Drive.Committed < 20000 {
					t.Errorf("only %d transactions were committed", v.Drive.Committed)
				}
				books := []string{"swap", "phantom-money", "overdraft"} // whose time is known only if somebody read the balance
				if c := v.Cause; c == nil || c.FromSeconds == nil && !slices.Contains(books, m.Name) {
					t.Errorf("the time of the violations is missing: %+v", c)
				}
			})
		}
	}
}

// TestReferenceIsValid checks that the in-memory reference is valid for 200 seeds, also if it aborts transactions and
// loses answers.
func TestReferenceIsValid(t *testing.T) {
	tier.SkipUnderRace(t)
	t.Parallel()
	for _, seed := range seeds(200) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			url := []string{
				"memory:?seed=%d", "memory:?abort=0.01&unknown=0.01&seed=%d",
			}[seed%2]
			code, v, why := program(t, "bank", twentyThousand(fmt.Sprintf(url, seed), seed)...)
			if code != 0 || v.Verdict != "valid" {
				t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
			}
		})
	}
}

// TestReferenceIsValidUnderContention checks the in-memory reference with few accounts and a skewed distribution, so
// that many transactions conflict.
func TestReferenceIsValidUnderContention(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(10) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			args := append(twentyThousand(fmt.Sprintf("memory:?unknown=0.05&seed=%d", seed), seed), "--zipfian")
			args[slices.Index(args, "1000")] = "20"
			args[slices.Index(args, "23000")] = fmt.Sprint(counted(23000))
			code, v, why := program(t, "bank", args...)
			if code != 0 || v.Verdict != "valid" {
				t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
			}
		})
	}
}
