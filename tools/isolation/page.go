package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"stroppy/internal/matrix"
	"stroppy/internal/schedule"
)

const head = `# What isolation levels give

<!-- written by tools/isolation from docs/isolation.json -->

` + "`stroppy isolation`" + ` tries each isolation level of a database and says what it really gives.
It runs scripted schedules: a few transactions whose steps come in one fixed order, so that an anomaly shows unless the database prevents it. A step that waits for a lock is left alone, and the others go on.
Without ` + "`--schedules-only`" + ` it also runs the bank at each level, whose transfers write what they have read and whose openings of accounts and low balances are reads by predicate where the database can, and ` + "`append`" + `, and takes the anomalies that their checks name; with ` + "`--nemesis`" + ` the same under faults.
With ` + "`--cluster KIND:N --schedules-only --followers`" + ` the transactions that only read are carried out on the nodes that do not lead, each of which answers from what it has; they are not compared with what is claimed of real time.

` + "```sh" + `
stroppy isolation --schedules-only
stroppy isolation --schedules-only --db memory: --json
stroppy isolation --schedules-only --db 'memory:?mutant=read-skew&rate=1'  # exit code 1: a claim is not kept
` + "```" + `

The exit code is 0 if each level gives at least what the database claims, 1 if an anomaly was seen that a claim forbids, 4 if something could not be decided.

What a ✓ means: the schedules did not show the anomaly, and load, where it looked, did not either. It is no proof that it cannot happen. *seen* means that it happened. *some* means that it happened in one form and not in another, such as in a transaction that writes and not in one that only reads.

- A level *amounts to* the strongest levels of which nothing forbidden was seen. Only load looks for real time, so that schedules alone never amount to strict serializability.
- A key-value store has no index. Where its transactions read no ranges, predicates are read by all keys that a row could have, absent ones included. A database whose transactions are calls of procedures, such as VoltDB, has no schedules: no step of another transaction comes between theirs.
- There is no cursor, so that cursor stability is not distinguished from read committed.
- Of a load whose check named one anomaly, the others count as not looked for.
- n/a: nothing looked for it. That does not lower what a level amounts to.

## The anomalies

| anomaly | what it is |
|---|---|
`

// page is docs/isolation.md.
func page(list []*matrix.Matrix) []byte {
	var t bytes.Buffer
	t.WriteString(head)
	for _, a := range schedule.Anomalies() {
		fmt.Fprintf(&t, "| %s | %s |\n", a, a.Text())
	}
	t.WriteString("\nTheir definitions are those of Adya (Weak Consistency, MIT 1999), OTV and PMP of Bailis and others (Highly Available Transactions, VLDB 2013), P4 of Berenson and others (A Critique of ANSI SQL Isolation Levels, SIGMOD 1995). Most schedules go back to [Hermitage](https://github.com/ept/hermitage).\n")
	summary(&t, list)
	compared(&t, list)
	for _, m := range list {
		details(&t, m)
	}
	return t.Bytes()
}

// summary is the table of all databases and levels.
func summary(t *bytes.Buffer, list []*matrix.Matrix) {
	t.WriteString("\n## All databases\n\n| database | level | claims | amounts to |")
	for _, a := range schedule.Anomalies() {
		fmt.Fprintf(t, " %s |", a)
	}
	t.WriteString("\n|---|---|---|---|" + strings.Repeat(":-:|", len(schedule.Anomalies())) + "\n")
	for _, m := range list {
		for i := range m.Levels {
			l := &m.Levels[i]
			name := ""
			if i == 0 {
				name = m.Database + " " + m.Version + setUp(m)
			}
			star := ""
			if l.Default {
				star = " ★"
			}
			fmt.Fprintf(t, "| %s | %s%s | %s | %s |", name, l.Name, star, l.Claims, l.AmountsTo)
			for _, a := range schedule.Anomalies() {
				fmt.Fprintf(t, " %s |", l.Anomalies[a.String()].Mark())
			}
			t.WriteString("\n")
		}
	}
	t.WriteString("\n★ the default. Each cell is shown again by the command of its database below, and one level alone with `--level`.\n")
}

// details says of one database how each anomaly was prevented, or what was seen of it.
func details(t *bytes.Buffer, m *matrix.Matrix) {
	fmt.Fprintf(t, "\n## %s %s%s\n\n`%s`\n\n%s\n", m.Database, m.Version, setUp(m), m.Command, m.Reason)
	if m.NoSchedules != "" {
		fmt.Fprintf(t, "No schedule applies: %s.\n", m.NoSchedules)
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		fmt.Fprintf(t, "\n### %s: %s\n\nClaims %s (%s).%s\n\n| anomaly | | how, or what was seen |\n|---|:-:|---|\n", m.Database, l.Name, l.Claims, l.Source, besides(l))
		for _, a := range schedule.Anomalies() {
			c := l.Anomalies[a.String()]
			if c.Mark() == "n/a" {
				continue
			}
			text := c.Sentence()
			if len(c.Witnesses) > 0 {
				text = strings.TrimPrefix(text, "in the schedule")
				text = c.Witnesses[0] + "; " + strings.TrimPrefix(text, "; ")
			}
			fmt.Fprintf(t, "| %s | %s | %s |\n", a, c.Mark(), strings.ReplaceAll(strings.TrimSuffix(text, "; "), "|", "\\|"))
		}
	}
}

func besides(l *matrix.Level) string {
	if len(l.Besides) == 0 {
		return ""
	}
	return " Beyond what it amounts to, it showed no " + strings.Join(l.Besides, ", no ") + "."
}

// given is what a command says of how the database is set up.
var given = regexp.MustCompile(` --cluster '?([^ ']+)|[?&](reads=[a-z]+)`)

// setUp is that, in brackets.
func setUp(m *matrix.Matrix) string {
	found := given.FindStringSubmatch(m.Command)
	if found == nil {
		return ""
	}
	text := found[1] + found[2]
	if strings.Contains(m.Command, " --followers") {
		text += ", reads on followers"
	}
	if strings.Contains(m.Command, " --nemesis") {
		text += ", under faults"
	}
	return " (" + text + ")"
}
