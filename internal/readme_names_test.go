package internal_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db/memory"
)

var (
	flagName = regexp.MustCompile(`--[a-z][a-z-]*`)
	scheme   = regexp.MustCompile(`(?m)^([a-z]+):`)
	first    = regexp.MustCompile(`(?m)^([a-z-]+) `)
)

// tryNames holds that the documents name all checks, databases and mutants, and
// no flag that does not exist.
func tryNames(t *testing.T, sh *shell) {
	list := func(args string) string {
		code, stdout, stderr := sh.run(t, "stroppy "+args)
		if code != 0 {
			t.Fatalf("stroppy %s ended with %d: %s", args, code, stderr)
		}
		return stdout
	}
	checks, databases := read(t, "../docs/reference/checks.md"), ""
	for _, path := range documents(t) {
		if strings.HasPrefix(path, "../docs/databases/") {
			databases += read(t, path)
		}
	}
	// The checks of the bank and of faults come first, then the checks of each other workload.
	for i, part := range strings.Split(list("list checks"), "\nOf the workload ") {
		workload := "bank"
		if i > 0 {
			workload, _, _ = strings.Cut(part, ":")
		}
		_, section, _ := strings.Cut(checks, "\n## "+workload)
		section, _, _ = strings.Cut(section, "\n## ")
		for _, m := range first.FindAllStringSubmatch(part, -1) {
			if !strings.Contains(section, "\n| `"+m[1]+"` | ") {
				t.Errorf("docs/reference/checks.md has no row for the check %s of %s", m[1], workload)
			}
		}
	}
	for _, m := range scheme.FindAllStringSubmatch(list("list databases"), -1) {
		if !strings.Contains(databases, "\n`"+m[1]+":") {
			t.Errorf("docs/databases has no page on %s:", m[1])
		}
	}
	for _, m := range memory.Mutants() {
		if !strings.Contains(databases, fmt.Sprintf("\n| `%s` | %s | `%s` |\n", m.Name, m.Bug, m.Check)) {
			t.Errorf("docs/databases/memory.md does not have the row of the mutant %s as it is", m.Name)
		}
	}
	tryFlags(t, list)
}

// otherFlags are pages that name flags of other programs, such as helm, and generated pages.
var otherFlags = regexp.MustCompile(`/(CHANGELOG|CONTRIBUTING|releases|run-in-kubernetes|kubernetes|cockroachdb|etcd|mongodb|commands)\.md$|/tables/|/decisions/`)

// ofUsers matches commands of users, which have flags of other programs.
var ofUsers = regexp.MustCompile(`exec '[^'\n]*'`)

var scenarioName = regexp.MustCompile(`(?m)--scenario ([a-z][a-z0-9/-]*)(?:[^a-z0-9/.-]|$)`)

// tryFlags holds that no page names a flag or a scenario that does not exist.
func tryFlags(t *testing.T, list func(args string) string) {
	help := ""
	for _, name := range []string{"run", "load", "drive", "probe", "check", "report", "init", "sweep", "compare", "history", "isolation", "export", "worker"} {
		all := ""
		if name == "run" || name == "sweep" {
			all = "-all"
		}
		help += list(name + " --help" + all)
	}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)  `).FindAllStringSubmatch(list("list workloads"), -1) {
		help += list("run " + m[1] + " --help-all")
	}
	known, scenarios := flagName.FindAllString(help, -1), list("list scenarios")
	for _, page := range documents(t) {
		if otherFlags.MatchString(page) {
			continue
		}
		text := ofUsers.ReplaceAllString(read(t, page), "")
		for _, name := range flagName.FindAllString(text, -1) {
			if !slices.Contains(known, name) {
				t.Errorf("%s names the flag %s, which no command has", page, name)
			}
		}
		for _, m := range scenarioName.FindAllStringSubmatch(text, -1) {
			if !strings.Contains("\n"+scenarios, "\n"+m[1]+" ") {
				t.Errorf("%s names the scenario %s, which is not in the binary", page, m[1])
			}
		}
	}
}

// TestReadmeIsShort checks that README.md has at most 900 words.
func TestReadmeIsShort(t *testing.T) {
	if words := len(strings.Fields(read(t, "../README.md"))); words > 900 {
		t.Errorf("README.md has %d words, and may have 900: move something to docs", words)
	}
}
