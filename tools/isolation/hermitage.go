package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/isolation"
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
		{"MySQL/InnoDB", "5.6.21", "MySQL", "read uncommitted", "✓ — — — — — — — — —"},
		{"MySQL/InnoDB", "5.6.21", "MySQL", "read committed", "✓ ✓ ✓ ✓ ✓ — — — — —"},
		{"MySQL/InnoDB", "5.6.21", "MySQL", "repeatable read", "✓ ✓ ✓ ✓ ✓ R/O — R/O — —"},
		{"MySQL/InnoDB", "5.6.21", "MySQL", "serializable", all},
		{"CockroachDB", "23.2.0-beta.1", "CockroachDB", "serializable", all},
		{"FDB SQL Layer", "2.0.2", "FoundationDB", "serializable", all},
	}
}

// comparable reports whether a level was set up as it comes, and is one that Hermitage had:
// InnoDB had no snapshot isolation.
func comparable(m *matrix.Matrix, l *matrix.Level) bool {
	if l.Name == "repeatable read" && m.Database == "MariaDB" && l.Claims == isolation.SnapshotIsolation {
		return false
	}
	return !slices.ContainsFunc([]string{"snapshot=on", "--followers", "--nemesis"}, func(part string) bool { return strings.Contains(m.Command, part) })
}

// difference is a cell that is not as published.
type difference struct {
	anomaly     schedule.Anomaly
	there, here string
}

func (d difference) String() string {
	return fmt.Sprintf("%s is %s there and *%s* here", d.anomaly, d.there, d.here)
}

// differences returns the cells of a level that are not as published.
func (p published) differences(l *matrix.Level) (list []difference) {
	for i, mark := range strings.Fields(p.marks) {
		ours := l.Anomalies[columns[i].String()].Mark()
		same := mark == "✓" && ours == "✓" || mark == "—" && (ours == "seen" || ours == "some") || mark == "R/O" && ours == "some"
		if !same {
			list = append(list, difference{columns[i], mark, ours})
		}
	}
	return list
}

// compared writes the comparison with what Hermitage publishes.
func compared(t *bytes.Buffer, list []*matrix.Matrix) {
	t.WriteString("\n## Beside Hermitage\n\nHermitage publishes a table of the same kind, made by hand. Its ✓ is *(✓)* or *✓* here, its — is *seen* or *some*, its R/O is *some*.\n\n" +
		"| there | here | level | |\n|---|---|---|---|\n")
	for _, p := range hermitage() {
		for _, m := range list {
			i := slices.IndexFunc(m.Levels, func(l matrix.Level) bool { return l.Name == p.level })
			if m.Database != p.database || i < 0 || !comparable(m, &m.Levels[i]) {
				continue
			}
			verdict := "the same in all columns"
			if apart := p.differences(&m.Levels[i]); len(apart) > 0 {
				verdict = strings.Trim(fmt.Sprint(apart), "[]")
			}
			fmt.Fprintf(t, "| %s %s | %s %s%s | %s | %s |\n", p.product, p.versions, m.Database, m.Version, setUp(m), p.level, verdict)
		}
	}
	t.WriteString("\nOTV differs at repeatable read of MariaDB and MySQL because Hermitage has no reader that writes between its reads. " +
		"The [analysis of MySQL 8.0.34](https://jepsen.io/analyses/mysql-8.0.34) reports the same anomaly.\n\n" +
		"Repeatable read of MariaDB with `innodb_snapshot_isolation=ON` is not compared: Hermitage's InnoDB had no such setting. " +
		"PostgreSQL's read uncommitted is its read committed, as its manual says, and is not in Hermitage's table. " +
		"CockroachDB's read committed and repeatable read came with version 23.2: the version here has serializable alone. " +
		"FoundationDB is asked here by keys, there through its SQL layer.\n")
}
