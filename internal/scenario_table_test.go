package internal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const scenarioTable = "../docs/tables/scenarios.md"

// firstSentence matches the first sentence behind the head of a scenario.
var firstSentence = regexp.MustCompile(`(?s)^(.+?[.:])(?:\s|$)`)

// TestScenarioTableHasEachScenario checks that the page of scenarios has a row for each, made from its head.
func TestScenarioTableHasEachScenario(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Scenarios\n\n<!-- written by go test ./internal -run TestScenarioTableHasEachScenario -update -->\n\n" +
		"`stroppy run --scenario NAME` runs a scenario ([how](../how-to/repeat-known-runs.md)). " +
		"The tests check the verdicts, except for `study/…`.\n\n" +
		"| scenario | database | verdict | first sentence |\n|---|---|---|---|\n")
	for _, pattern := range []string{"../scenarios/*.yaml", "../scenarios/study/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("there is no %s: %v", pattern, err)
		}
		slices.Sort(files)
		for _, path := range files {
			text := read(t, path)
			h, err := parseHead(text)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			name := strings.TrimSuffix(strings.TrimPrefix(path, "../scenarios/"), ".yaml")
			fmt.Fprintf(&b, "| [%s](../../scenarios/%s.yaml) | %s | %s | %s |\n", name, name, scenarioEngine(h, text), h.verdict, scenarioSentence(text))
		}
	}
	if *update {
		if err := os.WriteFile(scenarioTable, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, scenarioTable) != b.String() {
		t.Errorf("%s is not what the scenarios say: go test ./internal -run TestScenarioTableHasEachScenario -update", scenarioTable)
	}
}

// scenarioEngine returns the cluster's kind of a scenario, or else its database.
func scenarioEngine(h head, text string) string {
	if m := regexp.MustCompile(`(?m)^cluster: "?(\w+)`).FindStringSubmatch(text); m != nil {
		return "`" + m[1] + "`"
	}
	return "`" + h.database + "`"
}

// scenarioSentence returns the first sentence of a scenario's comment.
func scenarioSentence(text string) string {
	_, rest, _ := strings.Cut("\n"+text, "\n#\n")
	var lines []string
	for line := range strings.Lines(rest) {
		line, comment := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !comment {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	comment := strings.Join(lines, " ")
	if m := firstSentence.FindStringSubmatch(comment); m != nil {
		comment = strings.TrimSuffix(m[1], ":") + strings.Repeat(".", strings.Count(m[1][len(m[1])-1:], ":"))
	}
	return strings.ReplaceAll(comment, "|", `\|`)
}
