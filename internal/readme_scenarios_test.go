package internal_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scenarioHead is what a scenario begins with, in this order.
var scenarioHead = regexp.MustCompile(`^# verdict: (valid|invalid)\n# database: (sqlite|postgres|etcd|memory|cluster|infinisql)\n(?:# brief: (.*)\n)?(?:# only: make (?:versions|seeds)\n)?((?:# says: \S.*\n)*)#\n# [A-Za-z]`)

// head is what the comment says that a scenario begins with.
type head struct {
	verdict  string           // that is expected
	database string           // to be given where the scenario names none
	brief    string           // flags that make the run a short one
	says     []*regexp.Regexp // what the report has to say, with one space where it has several or a line ends
}

func parseHead(text string) (h head, err error) {
	parts := scenarioHead.FindStringSubmatch(text)
	if parts == nil {
		return h, errors.New("a scenario begins with the lines `# verdict: valid` or invalid, `# database: NAME`, if need be `# brief: FLAGS`, `# only: make versions` or seeds and `# says: REGEXP` once or more, then `#`, and says what it shows")
	}
	h = head{verdict: parts[1], database: parts[2], brief: parts[3]}
	for line := range strings.Lines(parts[4]) {
		expression := strings.TrimSpace(strings.TrimPrefix(line, "# says: "))
		pattern, err := regexp.Compile(expression)
		if err != nil {
			return h, fmt.Errorf("`# says: %s`: %w", expression, err)
		}
		if pattern.MatchString("") {
			return h, fmt.Errorf("`# says: %s` is in every report", expression)
		}
		h.says = append(h.says, pattern)
	}
	return h, nil
}

// unsaid returns the patterns that a report, whose lines are broken anywhere, does not match.
func (h head) unsaid(report string) (missing []string) {
	report = strings.Join(strings.Fields(report), " ")
	for _, pattern := range h.says {
		if !pattern.MatchString(report) {
			missing = append(missing, pattern.String())
		}
	}
	return missing
}

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
			h, err := parseHead(read(t, path))
			if err != nil {
				t.Fatal(err)
			}
			row := regexp.MustCompile(fmt.Sprintf(`\| \[[a-z0-9/-]+\]\(\.\./scenarios/%s\) \| [A-Za-z]+ \| %s \|`, regexp.QuoteMeta(name), h.verdict))
			if !row.MatchString(cookbook) {
				t.Errorf("docs/cookbook.md has no row for it with the verdict %s", h.verdict)
			}
			if h.brief == "" && slices.Contains(studies, path) {
				t.Skip("without a brief form it takes machines as the study had")
			}
			sh := shared
			if h.database != "postgres" && h.database != "etcd" {
				t.Parallel()
				sh = newShell(t, stroppy, server)
			}
			tryScenario(t, sh, path, h)
		})
	}
}

// tryScenario runs the scenario of a file with the given head.
func tryScenario(t *testing.T, sh *shell, path string, h head) {
	text, workload := read(t, path), "bank"
	if other := scenarioWorkload.FindStringSubmatch(text); other != nil {
		workload = other[1]
	}
	short := longer
	if h.brief != "" {
		short = " " + h.brief
	}
	if workload == "bank" && !scenarioAccounts.MatchString(text) {
		short += fewer
	}
	line := "stroppy run " + workload + " --scenario " + strings.TrimPrefix(path, "../") + short
	switch h.database {
	case "postgres", "etcd":
		address, missing := sh.servers.address(t, h.database+"://bank@localhost")
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
	want := map[string]int{"valid": 0, "invalid": 1}[h.verdict]
	if verdict, _, _ := strings.Cut(stdout, " "); strings.ToLower(verdict) != h.verdict || code != want {
		t.Errorf("the verdict is %s and the exit code %d; the scenario says %s\n%s\n%s", verdict, code, h.verdict, stdout, stderr)
	}
	for _, pattern := range h.unsaid(stdout) {
		t.Errorf("the report does not say %q\n%s", pattern, stdout)
	}
}

// TestScenarioHeads holds the head of every scenario, those too that a tier leaves out, and that
// nothing else is taken for one.
func TestScenarioHeads(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../scenarios/*.yaml", "../scenarios/study/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	says := 0
	for _, path := range files {
		h, err := parseHead(read(t, path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		says += len(h.says)
	}
	if says == 0 {
		t.Error("no head has a pattern")
	}
	const begin, end = "# verdict: invalid\n# database: cluster\n# brief: --duration 4s\n", "#\n# It shows.\n"
	for middle, problem := range map[string]string{
		"":                                    "",
		"# says: a+ lost\n# says: first: 1\n": "",
		"# only: make seeds\n# says: a\n":     "",
		"# says: a\n# only: make seeds\n":     "a scenario begins with",
		"# say: a\n":                          "a scenario begins with",
		"# says:\n":                           "a scenario begins with",
		"# says: a(\n":                        "missing closing )",
		"# says: \\d*\n":                      "is in every report",
	} {
		_, err := parseHead(begin + middle + end)
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v; want %q", middle, err, problem)
		}
	}
	h, err := parseHead(begin + "# says: [1-9]\\d* transfers? lost\n# says: for \\d+ ms\n" + end)
	if err != nil || h.verdict != "invalid" || h.database != "cluster" || h.brief != "--duration 4s" {
		t.Fatalf("%+v: %v", h, err)
	}
	for text, missing := range map[string]int{"12 transfers\n      lost, for 8 ms": 0, "1 transfer lost for a while": 1, "0 transfers lost": 2} {
		if got := h.unsaid(text); len(got) != missing {
			t.Errorf("%q: not said is %q; want %d", text, got, missing)
		}
	}
}
