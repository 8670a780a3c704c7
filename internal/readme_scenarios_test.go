package internal_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/fault"
	"stroppy/internal/report"
)

// scenarioHead matches the first lines of a scenario.
var scenarioHead = regexp.MustCompile(`^# verdict: (valid|invalid)\n# database: (sqlite|postgres|etcd|memory|cluster|infinisql)\n(?:# brief: (.*)\n)?(?:# only: make (?:versions|seeds)\n)?(?:# cause: (\S+ \S+)\n)?((?:# says: \S.*\n)*)(?:# divided: (\S.*)\n)?#\n# [A-Za-z]`)

// head holds the values of the comment at the top of a scenario.
type head struct {
	verdict  string           // that is expected
	database string           // to be given where the scenario names none
	brief    string           // flags that make the run a short one
	cause    string           // its kind and its culprit, with a space between; empty: whatever they are
	says     []*regexp.Regexp // what the report has to say, with one space where it has several or a line ends
	divided  string           // the fault whose outages are divided between the cluster and the clients
}

func parseHead(text string) (h head, err error) {
	parts := scenarioHead.FindStringSubmatch(text)
	if parts == nil {
		return h, errors.New("a scenario begins with the lines `# verdict: valid` or invalid, `# database: NAME`, if need be `# brief: FLAGS`, `# only: make versions` or seeds, `# cause: KIND CULPRIT`, `# says: REGEXP` once or more and `# divided: FAULT`, then `#`, and says what it shows")
	}
	h = head{verdict: parts[1], database: parts[2], brief: parts[3], cause: parts[4], divided: parts[6]}
	if h.cause != "" && h.verdict == "valid" {
		return h, fmt.Errorf("`# cause: %s` of a scenario that is valid", h.cause)
	}
	for line := range strings.Lines(parts[5]) {
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

// undivided returns why the outages of a fault cannot be divided into the cluster's part and the clients' part. It
// returns "" if they can.
func undivided(faults []fault.Record, name string) string {
	found := false
	for _, f := range faults {
		if f.Fault != name {
			continue
		}
		found = true
		if f.Outage == nil || f.OutageCluster == nil || f.OutageClient == nil {
			return fmt.Sprintf("%s at %.3f s: the outage or a part of it is not known", name, f.At.Seconds())
		}
		whole, cluster, client := *f.Outage, *f.OutageCluster, *f.OutageClient
		if cluster < 0 || client < 0 || cluster+client != whole {
			return fmt.Sprintf("%s at %.3f s: of an outage of %v s %v s are the cluster's and %v s the clients'", name, f.At.Seconds(), whole.Seconds(), cluster.Seconds(), client.Seconds())
		}
	}
	if !found {
		return "there was no fault " + name
	}
	return ""
}

var (
	scenarioWorkload = regexp.MustCompile(`(?m)^workload: "?(\w+)`)
	scenarioRate     = regexp.MustCompile(`(?m)^(?:rate|think):`)
	scenarioAccounts = regexp.MustCompile(`(?m)^accounts: \d{1,4}$|--(accounts|scale-down) `)
)

// tryScenarios runs each scenario, shortened, and wants the verdict that it
// names. Those that need a server share it, so that they run one after the other.
// A study's scenario without a brief form is skipped.
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
	for _, path := range slices.Concat(files, studies) {
		name := strings.TrimPrefix(path, "../scenarios/")
		t.Run(name, func(t *testing.T) {
			h, err := parseHead(read(t, path))
			if err != nil {
				t.Fatal(err)
			}
			skipOtherTier(t, read(t, path))
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
	dir := filepath.Base(path) + "-run"
	code, stdout, stderr := sh.run(t, line+" --out "+dir)
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
	if h.divided == "" && h.cause == "" {
		return
	}
	result, err := report.Read(filepath.Join(sh.dir, dir))
	if err != nil {
		t.Fatal(err)
	}
	if h.cause != "" && (result.Cause == nil || h.cause != result.Cause.Kind+" "+result.Cause.Culprit) {
		t.Errorf("the cause is %+v, not %s\n%s", result.Cause, h.cause, stdout)
	}
	if h.divided == "" {
		return
	}
	if why := undivided(result.Faults, h.divided); why != "" {
		t.Errorf("%s\n%s", why, stdout)
	}
}

// TestEveryScenarioHasAHead checks the head of every scenario, also if a tier leaves it out, and that no other text is
// taken for one.
func TestEveryScenarioHasAHead(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../scenarios/*.yaml", "../scenarios/study/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	says, causes, divided := 0, 0, 0
	for _, path := range files {
		h, err := parseHead(read(t, path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		says += len(h.says)
		if h.cause != "" {
			causes++
		}
		if h.divided != "" {
			divided++
		}
	}
	if says == 0 || causes == 0 || divided == 0 {
		t.Errorf("%d patterns, %d causes, and %d scenarios whose outages are divided", says, causes, divided)
	}
	const begin, end = "# verdict: invalid\n# database: cluster\n# brief: --duration 4s\n", "#\n# It shows.\n"
	for middle, problem := range map[string]string{
		"":                                           "",
		"# says: a+ lost\n# says: first: 1\n":        "",
		"# says: a\n# divided: kill primary\n":       "",
		"# only: make seeds\n# says: a\n":            "",
		"# divided: kill primary\n# says: a\n":       "a scenario begins with",
		"# says: a\n# only: make seeds\n":            "a scenario begins with",
		"# cause: lost-writes database\n# says: a\n": "",
		"# cause: lost-writes\n":                     "a scenario begins with",
		"# says: a\n# cause: lost-writes database\n": "a scenario begins with",
		"# say: a\n":                                 "a scenario begins with",
		"# says:\n":                                  "a scenario begins with",
		"# divided:\n":                               "a scenario begins with",
		"# says: a(\n":                               "missing closing )",
		"# says: \\d*\n":                             "is in every report",
	} {
		_, err := parseHead(begin + middle + end)
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v; want %q", middle, err, problem)
		}
	}
	h, err := parseHead(begin + "# cause: lost-writes database\n# says: [1-9]\\d* transfers? lost\n# says: for \\d+ ms\n# divided: kill primary\n" + end)
	if err != nil || h.verdict != "invalid" || h.database != "cluster" || h.brief != "--duration 4s" || h.cause != "lost-writes database" || h.divided != "kill primary" {
		t.Fatalf("%+v: %v", h, err)
	}
	for text, missing := range map[string]int{"12 transfers\n      lost, for 8 ms": 0, "1 transfer lost for a while": 1, "0 transfers lost": 2} {
		if got := h.unsaid(text); len(got) != missing {
			t.Errorf("%q: not said is %q; want %d", text, got, missing)
		}
	}
}

// TestOutageWithoutTwoParts checks which parts of an outage are refused.
func TestOutageWithoutTwoParts(t *testing.T) {
	record := func(name string, seconds ...float64) (f fault.Record) {
		f.Fault = name
		for i, part := range []**fault.Seconds{&f.Outage, &f.OutageCluster, &f.OutageClient} {
			if i < len(seconds) {
				*part = new(fault.Round(seconds[i]))
			}
		}
		return f
	}
	kill, other := record("kill primary", 0.3, 0.1, 0.2), record("pause primary", 0.3)
	for want, faults := range map[string][]fault.Record{
		"":                                       {other, kill},
		"is not known":                           {kill, record("kill primary", 0.3)},
		"kill primary at 0.000 s: the outage or": {record("kill primary")},
		"of an outage of 0.3 s 0.2 s are":        {record("kill primary", 0.3, 0.2, 0.2)},
		"of an outage of 0.3 s -0.1 s are":       {record("kill primary", 0.3, -0.1, 0.4)},
		"0.4 s are the cluster's and -0.1 s the": {record("kill primary", 0.3, 0.4, -0.1)},
		"there was no fault kill primary":        {other},
	} {
		if got := undivided(faults, "kill primary"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
