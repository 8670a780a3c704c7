package dbtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/lists"
	"stroppy/internal/tier"
	"stroppy/internal/workload"
	"stroppy/internal/workload/appends"
)

// appendMix holds arguments with many clients on few lists, so that transactions conflict.
var appendMix = []string{"--clients", "6", "--lists", "10", "--seed", "5"}

// appendOn runs `stroppy run append`.
func appendOn(t *testing.T, args ...string) (int, verdict, string) {
	t.Helper()
	return program(t, appends.Name, slices.Concat(appendMix, args)...)
}

// detail returns the detail of a check, or an empty string if there is no such check.
func (v verdict) detail(check string) string {
	for _, c := range v.Checks {
		if c.Name == check {
			return c.Detail
		}
	}
	return ""
}

// appendCell returns a cell that runs append as a command. The command gets the further arguments.
func appendCell(isolation string, count int, more ...string) cell {
	return cell{name: strings.Join(append([]string{"append", isolation}, more...), " "), run: func(t *testing.T, open opener) {
		_, address := open(t)
		code, v, why := appendOn(t, appendArgs(address, isolation, count, more...)...)
		if code != 0 || v.Verdict != "valid" {
			t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
		}
	}}
}

// appendArgs returns the arguments of `stroppy run append` for a database, an isolation level and a number of
// transactions.
func appendArgs(address, isolation string, count int, more ...string) []string {
	args := append([]string{"--db", address, "--count", fmt.Sprint(count)}, more...)
	if isolation != "" {
		args = append(args, "--isolation", isolation)
	}
	return args
}

// accesses lists every way in which SQL finds a list.
var accesses = []string{appends.Upsert, appends.Primary, appends.Secondary, appends.Rows, appends.Predicate}

// appendCells returns a cell for each access, with the two modes in turn.
func appendCells(isolation string, count int) (list []cell) {
	for i, access := range accesses {
		mode := []string{workload.Pipelined, workload.Interactive}[i%2]
		list = append(list, appendCell(isolation, count, "--access", access, "--mode", mode))
	}
	return list
}

// appendShows returns a cell that expects the claimed isolation level to hold and serializability to fail. The check
// of serializability must name one anomaly of some, and no anomaly of none.
func appendShows(isolation, access string, some, none []string) cell {
	return cell{name: strings.Join([]string{"append", isolation, access, "shows", some[0]}, " "), run: func(t *testing.T, open opener) {
		_, address := open(t)
		code, v, why := appendOn(t, appendArgs(address, isolation, 1500, "--access", access, "--mode", workload.Interactive)...)
		if code != 0 {
			t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
		}
		detail := v.detail(check.Serializable)
		has := func(name string) bool { return strings.Contains(detail, name) }
		if v.status(check.Serializable) != "invalid" || !slices.ContainsFunc(some, has) {
			t.Errorf("serializable is %s, and should show one of %q: %s", v.status(check.Serializable), some, detail)
		}
		if slices.ContainsFunc(none, has) {
			t.Errorf("serializable shows one of %q: %s", none, detail)
		}
	}}
}

// appendOnPostgres returns the cells of append for PostgreSQL at its three isolation levels.
func appendOnPostgres() []cell {
	list := appendCells("serializable", 500)
	single := []string{"(G-single)", "(G-nonadjacent)"}
	for _, access := range []string{appends.Upsert, appends.Predicate} {
		list = append(list,
			appendShows("read committed", access, single, []string{"(G0)", "(G1a)", "(G1b)", "(G1c)"}),
			appendShows("repeatable read", access, []string{"(G2-item)", "(G2)"}, append(single, "(G0)", "(G1a)", "(G1b)", "(G1c)")))
	}
	return list
}

// TestAppendFindsPlantedBugs checks that each planted bug which lists can show is found by its own check.
func TestAppendFindsPlantedBugs(t *testing.T) {
	t.Parallel()
	type mutant struct {
		mutant string
		checks []string // at least one of them must be invalid
	}
	for _, c := range cases([]mutant{
		{"lost-update", []string{check.Serializable}}, {"read-skew", []string{check.Serializable}},
		{"write-skew", []string{check.Serializable}}, {"long-fork", []string{check.Serializable}},
		// If every reader sees the elements of aborted transactions, no two lists contradict each other.
		{"dirty-read", []string{lists.Lists, check.Serializable}}, {"stale-read", []string{check.Strict}},
		{"lost-ack", []string{check.Durable}}, {"ghost", []string{check.NoGhost}}, {"torn", []string{check.Durable}},
		{"false-ack-on-crash", []string{check.Durable}},
	}...) {
		for _, seed := range seeds(2) {
			t.Run(fmt.Sprintf("%s/%s/seed=%d", c.mutant, c.checks[0], seed), func(t *testing.T) {
				t.Parallel()
				address := fmt.Sprintf("memory:?mutant=%s&rate=0.002&seed=%d", c.mutant, seed)
				code, v, why := appendOn(t, "--db", address, "--count", "8000", "--clients", "16", "--lists", "64")
				found := slices.ContainsFunc(c.checks, func(name string) bool { return v.status(name) == "invalid" })
				if code != 1 || v.Verdict != "invalid" || !found {
					t.Errorf("exit code %d, verdict %s, %v: %+v\n%s", code, v.Verdict, c.checks, v.Checks, why)
				}
				if v.Cause == nil || v.Cause.FromSeconds == nil {
					t.Errorf("the time of the violations is missing: %+v", v.Cause)
				}
			})
		}
	}
}

// TestAppendIsInvalidOnlyIfClaimForbidsBug checks the verdict for planted bugs under several claims. The claim
// read-atomic is left out: lost-update returns one old list beside current lists, which may or may not be a fractured
// read.
func TestAppendIsInvalidOnlyIfClaimForbidsBug(t *testing.T) {
	tier.SkipUnderRace(t)
	t.Parallel()
	type claim struct {
		mutant, claim string
		forbidden     bool
	}
	for _, c := range cases([]claim{
		{"lost-update", "repeatable-read", true}, {"lost-update", "read-committed", false}, {"lost-update", "snapshot-isolation", true},
		{"dirty-read", "read-uncommitted", false}, {"dirty-read", "read-committed", true},
	}...) {
		t.Run(c.mutant+"/"+c.claim, func(t *testing.T) {
			t.Parallel()
			address := fmt.Sprintf("memory:?mutant=%s&rate=0.002&seed=1", c.mutant)
			code, v, why := appendOn(t, "--db", address, "--count", "8000", "--clients", "16", "--lists", "64", "--expect", c.claim)
			if c.forbidden != (code == 1) || !c.forbidden && code != 0 {
				t.Errorf("exit code %d, verdict %s: %+v\n%s", code, v.Verdict, v.Checks, why)
			}
		})
	}
}

// TestAppendRefusesInvalidSettings checks that invalid settings end the command before the run, with a reason.
func TestAppendRefusesInvalidSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--mode", "procedure"}, "this workload has no mode procedure"},
		{[]string{"--db", "memory:", "--access", "rows"}, "access is rows, and a key-value store has its lists under their keys alone"},
		{[]string{"--read-share", "0", "--read-only-share", "0"}, "without reads no violation shows"},
		{[]string{"--range", "3"}, "access is not predicate"},
		{[]string{"--operations", "1000"}, "operations"},
	} {
		code, _, why := appendOn(t, c.args...)
		if code != 2 || !strings.Contains(why, c.want) {
			t.Errorf("stroppy run append %v: exit code %d: %s", c.args, code, why)
		}
	}
}
