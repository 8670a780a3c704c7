package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"stroppy/internal/isolation"
	"stroppy/internal/matrix"
	"stroppy/internal/report"
	"stroppy/internal/schedule"
)

//go:embed head.md
var head string

// sources name the definition of each anomaly, and of its schedules beyond Hermitage.
var sources = map[schedule.Anomaly]string{
	schedule.OTV:       "Bailis and others 2014; readers that write between their reads: [analysis of MySQL 8.0.34](https://jepsen.io/analyses/mysql-8.0.34)",
	schedule.PMP:       "Bailis and others 2014",
	schedule.Internal:  "Cerone, Bernardi and Gotsman 2015 (axiom Int); that a transaction reads its own last write: Adya, Liskov and O'Neil, ICDE 2000, section 4.2",
	schedule.P4:        "Berenson and others, SIGMOD 1995",
	schedule.GSingle:   "Adya 1999; waits under a predicate: [MDEV-40092](https://jira.mariadb.org/browse/MDEV-40092)",
	schedule.LongFork:  "Sovran and others, SOSP 2011",
	schedule.StaleRead: "Daudjee and Salem 2004, of strong snapshot isolation",
}

// page is docs/tables/isolation.md.
func page(list []*matrix.Matrix) []byte {
	var t bytes.Buffer
	t.WriteString(head)
	t.WriteString("## The anomalies\n\n| anomaly | what it is | source | forbidden by |\n|---|---|---|---|\n")
	for _, a := range schedule.Anomalies() {
		by := strings.TrimPrefix(isolation.ForbiddenBy(matrix.Forbidden(a)...), "forbidden by ")
		fmt.Fprintf(&t, "| %s | %s | %s | %s |\n", a, a.Text(), cmp.Or(sources[a], "Adya 1999"), by)
	}
	t.WriteString("\nA transaction that misses its own last write violates every level. If an anti-dependency of a cycle is by a predicate, PL-2.99 and read atomic allow the cycle. " +
		"Most schedules go back to [Hermitage](https://github.com/ept/hermitage).\n")
	levels(&t, list)
	summary(&t, list)
	compared(&t, list)
	for _, m := range list {
		details(&t, m)
	}
	return t.Bytes()
}

// levels writes the table of the literature's levels, and which vendors' levels claim each.
func levels(t *bytes.Buffer, list []*matrix.Matrix) {
	t.WriteString("\n## The levels\n\nThe literature and the vendors use the same words for different levels. This project names the literature's levels as in the first column, " +
		"`--expect` takes the second, and a vendor's level is named with the database.\n\n" +
		"| level | `--expect` | forbids, beyond the weaker levels | source | claimed here for |\n|---|---|---|---|---|\n")
	for _, l := range isolation.Levels() {
		by := strings.Join(claimants(list, l), "; ")
		fmt.Fprintf(t, "| %s | `%s` | %s | %s | %s |\n", l.Literature(), l, l.Forbids(), l.Source(), by)
	}
	t.WriteString("\nAdya 1999: Weak Consistency, PhD thesis, MIT. Bailis and others 2014: Highly Available Transactions, VLDB. " +
		"Cerone, Bernardi and Gotsman 2015: A Framework for Transactional Consistency Models with Atomic Visibility, CONCUR. " +
		"Daudjee and Salem 2004: Lazy Database Replication with Ordering Guarantees, ICDE. " +
		"Herlihy and Wing 1990: Linearizability, TOPLAS, here over whole transactions.\n")
}

// claimants returns the databases and their levels that claim a level.
func claimants(list []*matrix.Matrix, level isolation.Level) (names []string) {
	of := map[string][]string{}
	var databases []string
	for _, m := range list {
		name := m.Database
		for i := range m.Levels {
			l := &m.Levels[i]
			if l.Claims != level || slices.Contains(of[name], l.Name) {
				continue
			}
			if !slices.Contains(databases, name) {
				databases = append(databases, name)
			}
			of[name] = append(of[name], l.Name)
		}
	}
	for _, name := range databases {
		names = append(names, name+": "+strings.Join(of[name], ", "))
	}
	return names
}

// summary is the table of all databases and levels.
func summary(t *bytes.Buffer, list []*matrix.Matrix) {
	t.WriteString("\n## All databases\n\n| database | recorded | level | claims | upper bound | transactions | schedules |")
	for _, a := range schedule.Anomalies() {
		fmt.Fprintf(t, " %s |", a)
	}
	t.WriteString("\n|---|---|---|---|---|--:|--:|" + strings.Repeat(":-:|", len(schedule.Anomalies())) + "\n")
	for _, m := range list {
		for i := range m.Levels {
			l := &m.Levels[i]
			name, day := "", ""
			if i == 0 {
				name, day = m.Database+" "+m.Version+setUp(m), recorded(m)
			}
			star := ""
			if l.Default {
				star = " ★"
			}
			if l.Verdict == "invalid" {
				star += " ✗"
			}
			fmt.Fprintf(t, "| %s | %s | %s%s | %s | %s | %s | %d |",
				name, day, l.Name, star, l.Claims.Short(), l.Bound(), report.Group(l.Transactions), l.Schedules)
			for _, a := range schedule.Anomalies() {
				fmt.Fprintf(t, " %s |", l.Anomalies[a.String()].Label())
			}
			t.WriteString("\n")
		}
	}
	t.WriteString("\n★ the default. ✗ an anomaly was seen that the claim forbids. † recorded before today's schedules: readers that write between their reads, " +
		"waits under a predicate, and reads of own writes were not tested, and a load that found an anomaly is not counted. " +
		"Each cell is shown again by the command of its database below, and one level alone with `--level`. " +
		"`FOLDER` is the folder that `scripts/versions.sh` prints.\n")
}

// recorded returns the day of a matrix, with a mark if it lacks schedules of today.
func recorded(m *matrix.Matrix) string {
	day, _, _ := strings.Cut(m.Started, "T")
	if at, err := time.Parse(time.RFC3339, m.Started); err == nil {
		day = at.Format(time.DateOnly)
	}
	if m.Earlier() {
		day += " †"
	}
	return day
}

// details says of one database how each anomaly was prevented, or what was seen of it.
func details(t *bytes.Buffer, m *matrix.Matrix) {
	fmt.Fprintf(t, "\n## %s %s%s\n\n`%s`\n\n%s\n", m.Database, m.Version, setUp(m), m.Command, m.Reason)
	if m.Earlier() {
		fmt.Fprintf(t, "\nRecorded on %s, before today's schedules.\n", strings.TrimSuffix(recorded(m), " †"))
	}
	if m.NoSchedules != "" {
		fmt.Fprintf(t, "No schedule applies: %s.\n", m.NoSchedules)
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		fmt.Fprintf(t, "\n### %s: %s\n\nClaims %s (%s). %s%s\n\n| anomaly | | how, or what was seen |\n|---|:-:|---|\n",
			m.Database, l.Name, l.Claims.Literature(), l.Source, l.Summary, l.Unseen())
		for _, a := range schedule.Anomalies() {
			c := l.Anomalies[a.String()]
			if c.Mark() == "n/a" {
				continue
			}
			text := c.Sentence()
			if len(c.Witnesses) > 0 {
				text = strings.TrimPrefix(text, "in the schedule")
				text = witnesses(c) + "; " + strings.TrimPrefix(text, "; ")
			}
			text = strings.ReplaceAll(strings.TrimSuffix(text, "; "), "|", "\\|")
			fmt.Fprintf(t, "| %s | %s | %s |\n", a, c.Label(), text)
		}
	}
}

// witnesses returns the first witness of an anomaly, and how many more variants of its schedules
// showed it.
func witnesses(c *matrix.Cell) string {
	more := -1
	for _, o := range c.Variants {
		if o.State == schedule.Seen {
			more++
		}
	}
	if more <= 0 {
		return c.Witnesses[0]
	}
	return c.Witnesses[0] + "; and in " + report.Counted(uint64(more), "more variant")
}

// given matches what a command says of how the database is set up.
var given = regexp.MustCompile(` --cluster '?([^ ']+)|[?&](reads=[a-z]+)`)

// programs matches the parameter that says where the programs of a cluster are, and noParameter
// what is left in front of no parameter.
var (
	programs    = regexp.MustCompile(`([?&])bin=[^&' ]*&?`)
	noParameter = regexp.MustCompile(`[?&]( |$)`)
)

// withoutPrograms leaves that parameter out of text without quotes: the version says which
// programs they are.
func withoutPrograms(text string) string {
	return noParameter.ReplaceAllString(programs.ReplaceAllString(text, "$1"), "$1")
}

// setUp returns how the database is set up, in brackets.
func setUp(m *matrix.Matrix) string {
	found := given.FindStringSubmatch(m.Command)
	if found == nil {
		return ""
	}
	text := withoutPrograms(found[1]) + found[2]
	if strings.Contains(m.Command, " --followers") {
		text += ", reads on followers"
	}
	if strings.Contains(m.Command, " --nemesis") {
		text += ", under faults"
	}
	return " (" + text + ")"
}
