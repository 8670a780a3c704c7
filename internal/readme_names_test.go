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
	verdict, databases, workloads := read(t, "../docs/reading-a-verdict.md"), read(t, "../docs/databases.md"), read(t, "../docs/workloads.md")
	// Those of the bank and of faults come first, then those of each other workload.
	for i, part := range strings.Split(list("list checks"), "\nOf the workload ") {
		name, document := "docs/reading-a-verdict.md", verdict
		if i > 0 {
			workload, _, _ := strings.Cut(part, ":")
			_, section, _ := strings.Cut(workloads, "\n## "+workload+":")
			section, _, _ = strings.Cut(section, "\n## ")
			name, document = "docs/workloads.md on "+workload, section
		}
		for _, m := range first.FindAllStringSubmatch(part, -1) {
			if !strings.Contains(document, "\n| `"+m[1]+"` | ") {
				t.Errorf("%s has no row for the check %s", name, m[1])
			}
		}
	}
	for _, m := range scheme.FindAllStringSubmatch(list("list databases"), -1) {
		if !strings.Contains(databases, "\n`"+m[1]+":") {
			t.Errorf("docs/databases.md has no section on %s:", m[1])
		}
	}
	for _, m := range memory.Mutants() {
		if !strings.Contains(databases, fmt.Sprintf("\n| `%s` | %s | `%s` |\n", m.Name, m.Bug, m.Check)) {
			t.Errorf("docs/databases.md does not have the row of the mutant %s as it is", m.Name)
		}
	}
	tryFlags(t, list)
}

// forUsers are the pages that a user reads. All flags that they name have to be there.
var forUsers = []string{
	"README.md", "docs/getting-started.md", "docs/cookbook.md", "docs/reading-a-verdict.md", "docs/method.md",
	"docs/track-record.md", "docs/faq.md", "docs/workloads.md",
}

var scenarioName = regexp.MustCompile(`(?m)--scenario ([a-z][a-z0-9/-]*)(?:[^a-z0-9/.-]|$)`)

// tryFlags holds that no page names a flag or a scenario that does not exist.
func tryFlags(t *testing.T, list func(args string) string) {
	help := ""
	for _, name := range []string{"run", "pop", "pay", "check", "report", "sweep", "compare", "history", "isolation"} {
		help += list(name + " --help")
	}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)  `).FindAllStringSubmatch(list("list workloads"), -1) {
		help += list("run " + m[1] + " --help")
	}
	known, scenarios := flagName.FindAllString(help, -1), list("list scenarios")
	for _, page := range forUsers {
		text := read(t, "../"+page)
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

// TestReadmeIsShort holds that README.md can be read in some minutes: what is more stands in
// docs.
func TestReadmeIsShort(t *testing.T) {
	if words := len(strings.Fields(read(t, "../README.md"))); words > 1500 {
		t.Errorf("README.md has %d words, and may have 1,500: move something to docs", words)
	}
}
