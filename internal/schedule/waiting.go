package schedule

import (
	"cmp"
	"fmt"
)

// behindALock returns the schedules of a statement with a predicate that waits for a row. T2 has
// read rows 1 and 2. T1 changes a row and has not committed when T2's statement comes to that
// row. T2's statement goes on when T1 commits.
//
// If the statement uses the rows that T1 left, T2 comes after T1; by its reads T2 comes before T1. That
// is read skew: a cycle with one anti-dependency, which is on a row that T2 read by its key. A
// statement that passes over a row which left its predicate is MDEV-40092
// (https://jira.mariadb.org/browse/MDEV-40092).
func behindALock() (list []Schedule) {
	for _, index := range []bool{true, false} {
		for _, s := range statements {
			for _, m := range moves {
				list = append(list, waiting(s, m, index))
			}
		}
	}
	return list
}

// move is what T1 does to a row under the predicate of T2's statement.
type move struct {
	name      string
	step      Step
	low, high int64  // the predicate
	row       Row    // the row before T1
	left      string // what T1 did, in the witness
	// after are the rows that the predicate selects after T1. Before T1 it selects row 1.
	after []Row
}

var moves = []move{
	{"a row that moves away", t1.write(1, 99), 10, 11, Row{1, 10}, "set it to 99", nil},
	{"a row that is deleted", t1.delete(1), 10, 11, Row{1, 10}, "deleted it", nil},
	{"a row that moves in", t1.write(2, 10), 10, 11, Row{2, 20}, "set it to 10", []Row{{1, 10}, {2, 10}}},
	{"a row that changes", t1.write(1, 12), 0, 15, Row{1, 10}, "set it to 12", []Row{{1, 12}}},
}

// statement is what T2 does with a predicate.
type statement struct {
	name string
	make func(low, high int64) Step
}

var statements = []statement{
	{"update", func(low, high int64) Step { return t2.addWhere(low, high, 1) }},
	{"delete", func(low, high int64) Step { return t2.do(Operation{Kind: DeleteWhere, Low: low, High: high}) }},
	{"read for update", func(low, high int64) Step { return t2.findLocked(locks[0], low, high) }},
	{"read for share", func(low, high int64) Step { return t2.findLocked(locks[1], low, high) }},
}

func waiting(s statement, m move, index bool) Schedule {
	step := s.make(m.low, m.high)
	made := Schedule{
		Anomaly: GSingle, Variant: fmt.Sprintf("%s, %s, %s", s.name, m.name, byAmount(index)), Index: index,
		Leaves: len(m.after) == 1 && step.Kind.writes(),
		Steps: []Step{
			t2.read(1, 2).as("before"), m.step.as("T1"), step.as("statement"), t1.commit(),
			t2.read(1, 2).as("after"), t2.commit(),
		},
	}
	if step.Kind == DeleteWhere && len(m.after) == 1 {
		// Whatever version it went by, T2 deleted a row that T1 had changed since T2 read it.
		made.Anomaly = P4
	}
	text := fmt.Sprintf("T2 read %s; T1 %s and committed; T2's %s used the rows that T1 left", m.row, m.left, s.name)
	if made.Anomaly == P4 {
		text = fmt.Sprintf("T2 read %s; T1 %s and committed; T2 deleted row %d, and T1's update is lost", m.row, m.left, m.row.ID)
	}
	before, first := saw("before", m.row), m.cameFirst(step.Kind)
	made.seen = shown(text, before, first)
	if made.Anomaly != P4 {
		again := shown(fmt.Sprintf("%s; then T2 read %s again", text, m.row), before, first, saw("after", m.row))
		once := made.seen
		made.seen = func(o *observed) string { return cmp.Or(again(o), once(o)) }
	}
	return made
}

// cameFirst holds if a statement of this kind used the rows that T1 left.
func (m *move) cameFirst(kind Kind) condition {
	switch {
	case kind.locks():
		return found("statement", m.after...)
	case len(m.after) != 1:
		return changed("statement", int64(len(m.after)))
	case kind == DeleteWhere:
		return allOf(wroteRow("T1"), changed("statement", 1), left(Row{2, 20}))
	}
	return leaves(Row{m.after[0].ID, m.after[0].Amount + 1})
}
