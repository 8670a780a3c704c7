package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/matrix"
	"stroppy/internal/schedule"
)

// published is a row of the table that Hermitage publishes
// (https://github.com/ept/hermitage, README.md): per anomaly ✓ prevented, — not
// prevented, or in some cases.
type published struct {
	product  string // by Hermitage's name
	versions string // that it was run with
	database string // ours
	level    string
	marks    string // one each of the columns
}

// columns are the anomalies of Hermitage's table, in its order.
var columns = []schedule.Anomaly{
	schedule.G0, schedule.G1a, schedule.G1b, schedule.G1c, schedule.OTV, schedule.PMP, schedule.P4, schedule.GSingle, schedule.G2Item, schedule.G2,
}

func hermitage() []published {
	const all = "✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓"
	return []published{
		{"PostgreSQL", "9.3.5", "PostgreSQL", "read committed", "✓ ✓ ✓ ✓ ✓ — — — — —"},
		{"PostgreSQL", "9.3.5", "PostgreSQL", "repeatable read", "✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ — —"},
		{"PostgreSQL", "9.3.5", "PostgreSQL", "serializable", all},
		{"MySQL/InnoDB", "5.6.21", "MariaDB", "read uncommitted", "✓ — — — — — — — — —"},
		{"MySQL/InnoDB", "5.6.21", "MariaDB", "read committed", "✓ ✓ ✓ ✓ ✓ — — — — —"},
		{"MySQL/InnoDB", "5.6.21", "MariaDB", "repeatable read", "✓ ✓ ✓ ✓ ✓ R/O — R/O — —"},
		{"MySQL/InnoDB", "5.6.21", "MariaDB", "serializable", all},
		{"CockroachDB", "23.2.0-beta.1", "CockroachDB", "serializable", all},
		{"FDB SQL Layer", "2.0.2", "FoundationDB", "serializable", all},
	}
}

// ordinary reports whether the database was set up as it comes.
func ordinary(m *matrix.Matrix) bool {
	return !slices.ContainsFunc([]string{"snapshot=on", "--followers", "--nemesis"}, func(part string) bool { return strings.Contains(m.Command, part) })
}

// differences are the cells in which a level is not as published.
func (p published) differences(l *matrix.Level) (list []string) {
	for i, mark := range strings.Fields(p.marks) {
		ours := l.Anomalies[columns[i].String()].Mark()
		same := mark == "✓" && ours == "✓" || mark == "—" && (ours == "seen" || ours == "some") || mark == "R/O" && ours == "some"
		if !same {
			list = append(list, fmt.Sprintf("%s is %s there and %s here", columns[i], mark, ours))
		}
	}
	return list
}

// compared is the comparison with what Hermitage publishes.
func compared(t *bytes.Buffer, list []*matrix.Matrix) {
	t.WriteString("\n## Beside Hermitage\n\nHermitage publishes a table of the same kind, made by hand. Its ✓ is ours, its — is *seen* or *some*, its R/O is *some*.\n\n" +
		"| there | here | level | |\n|---|---|---|---|\n")
	for _, p := range hermitage() {
		for _, m := range list {
			i := slices.IndexFunc(m.Levels, func(l matrix.Level) bool { return l.Name == p.level })
			if m.Database != p.database || i < 0 || !ordinary(m) {
				continue
			}
			verdict := "the same in all columns"
			if apart := p.differences(&m.Levels[i]); len(apart) > 0 {
				verdict = strings.Join(apart, "; ")
			}
			fmt.Fprintf(t, "| %s %s | %s %s%s | %s | %s |\n", p.product, p.versions, m.Database, m.Version, setUp(m), p.level, verdict)
		}
	}
	t.WriteString("\nThe level read uncommitted of PostgreSQL is its read committed, as its manual says. " +
		"CockroachDB's read committed and repeatable read came with version 23.2: the version here has serializable alone. " +
		"FoundationDB is asked here by keys, there through its SQL layer.\n")
}
