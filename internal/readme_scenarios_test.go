package internal_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The first two lines of a scenario say which verdict is expected, and which
// database is to be given where the scenario names none.
var scenarioHead = regexp.MustCompile(`^# verdict: (valid|invalid)\n# database: (sqlite|postgres|etcd|memory|cluster|infinisql)\n(?:# brief: (.*)\n)?(?:# only: make (?:versions|seeds)\n)?#\n# [A-Za-z]`)

var (
	scenarioWorkload = regexp.MustCompile(`(?m)^workload: "?(\w+)`)
	scenarioRate     = regexp.MustCompile(`(?m)^(?:rate|think):`)
	scenarioAccounts = regexp.MustCompile(`(?m)^accounts: \d{1,4}$|--(accounts|scale-down) `)
)

// tryScenarios runs each scenario, shortened, and wants the verdict that it
// names. Those that need a server share it, so that they run one after the other.
// Of a study's scenario without a brief form it holds the head and the row alone.
func tryScenarios(t *testing.T, stroppy string, server *sharedPostgres) {
	shared := newShell(t, stroppy, server)
	files, err := filepath.Glob("../scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no scenario: %v", err)
	}
	studies, err := filepath.Glob("../scenarios/study/*.yaml")
	if err != nil || len(studies) == 0 {
		t.Fatalf("there is no scenario of a study: %v", err)
	}
	cookbook := read(t, "../docs/cookbook.md")
	for _, path := range slices.Concat(files, studies) {
		name := strings.TrimPrefix(path, "../scenarios/")
		t.Run(name, func(t *testing.T) {
			head := scenarioHead.FindStringSubmatch(read(t, path))
			if head == nil {
				t.Fatal("a scenario begins with the lines `# verdict: valid` or invalid, `# database: NAME`, `#`, and says what it shows")
			}
			row := regexp.MustCompile(fmt.Sprintf(`\| \[[a-z0-9/-]+\]\(\.\./scenarios/%s\) \| [A-Za-z]+ \| %s \|`, regexp.QuoteMeta(name), head[1]))
			if !row.MatchString(cookbook) {
				t.Errorf("docs/cookbook.md has no row for it with the verdict %s", head[1])
			}
			if head[3] == "" && slices.Contains(studies, path) {
				t.Skip("without a brief form it takes machines as the study had")
			}
			sh := shared
			if head[2] != "postgres" && head[2] != "etcd" {
				t.Parallel()
				sh = newShell(t, stroppy, server)
			}
			tryScenario(t, sh, path, head)
		})
	}
}

// tryScenario runs the scenario of a file with the given head.
func tryScenario(t *testing.T, sh *shell, path string, head []string) {
	text, workload := read(t, path), "bank"
	if other := scenarioWorkload.FindStringSubmatch(text); other != nil {
		workload = other[1]
	}
	short := longer
	if head[3] != "" {
		short = " " + head[3]
	}
	if workload == "bank" && !scenarioAccounts.MatchString(text) {
		short += fewer
	}
	line := "stroppy run " + workload + " --scenario " + strings.TrimPrefix(path, "../") + short
	switch head[2] {
	case "postgres", "etcd":
		address, missing := sh.servers.address(t, head[2]+"://bank@localhost")
		if missing != "" {
			t.Skip(missing)
		}
		line += " --db '" + address + "'"
	case "cluster": // its faults take longer than a brief run
		line += provide(t, sh, text)
		if !strings.Contains(short, "--clients") {
			line += " --clients 4"
		}
		if strings.Contains(short, "--nemesis") && !scenarioRate.MatchString(text) {
			line += moderate
		}
	}
	code, stdout, stderr := sh.run(t, line)
	if why := stderr; code == 2 && strings.Contains(why, "run as root") || code == 3 && (strings.Contains(why, "install the Debian package") || strings.Contains(why, "no Debian package has it") || strings.Contains(why, "is of MariaDB") || strings.Contains(why, "-tags ") || strings.Contains(why, "/dev/fuse")) {
		t.Skip("skipped engine: cluster: " + strings.TrimSpace(why))
	}
	want := map[string]int{"valid": 0, "invalid": 1}[head[1]]
	if verdict, _, _ := strings.Cut(stdout, " "); strings.ToLower(verdict) != head[1] || code != want {
		t.Errorf("the verdict is %s and the exit code %d; the scenario says %s\n%s\n%s", verdict, code, head[1], stdout, stderr)
	}
}
