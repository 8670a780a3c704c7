package schedule

import (
	"cmp"
	"fmt"
	"slices"
)

const (
	t1 tx = iota + 1
	t2
	t3
	t4
)

// These texts end the names of variants: the way in which rows are found.
const (
	byKey   = "by key"
	absent  = "absent rows by key"
	byIndex = "by a predicate, with an index"
	byScan  = "by a predicate, without an index"
)

// byAmount returns how a predicate is evaluated.
func byAmount(index bool) string {
	if index {
		return byIndex
	}
	return byScan
}

// Schedules returns all schedules, in the order of their anomalies.
func Schedules() []Schedule {
	list := slices.Concat(
		dirty(), predicates(), lost(), skewed(), phantoms(), oneAfterTheOther(), betweenReads(), ownWrites(), behindALock(),
	)
	slices.SortStableFunc(list, func(a, b Schedule) int { return int(a.Anomaly) - int(b.Anomaly) })
	return list
}

// dirty returns the schedules in which a transaction may see another one that has not ended.
func dirty() []Schedule {
	rolledBack := shownIf("T2 read 1=101 of T1, which was rolled back",
		commits(2), not(commits(1)), oneOf(saw("first", Row{1, 101}), saw("again", Row{1, 101})))
	overwritten := shown("T2 read 1=101, which T1 had overwritten when it committed",
		oneOf(saw("first", Row{1, 101}), saw("again", Row{1, 101})))
	list := []Schedule{{
		Anomaly: G0, Variant: byKey, Leaves: true,
		Steps: []Step{t1.write(1, 11), t2.write(1, 12), t2.write(2, 22), t1.write(2, 21), t1.commit(), t2.commit()},
		seen: shown("each of T1 and T2 wrote rows 1 and 2, and ${left} is left, one row of each",
			oneOf(left(Row{1, 11}, Row{2, 22}), left(Row{1, 12}, Row{2, 21}))),
	}, {
		Anomaly: G1c, Variant: byKey,
		Steps: []Step{t1.write(1, 11), t2.write(2, 22), t1.read(2).as("T1"), t2.read(1).as("T2"), t1.commit(), t2.commit()},
		seen:  shown("T1 read what T2 wrote and T2 what T1 wrote", saw("T1", Row{2, 22}), saw("T2", Row{1, 11})),
	}, {
		Anomaly: OTV, Variant: byKey,
		Steps: []Step{
			t1.write(1, 11), t1.write(2, 19), t2.write(1, 12), t1.commit(),
			t3.read(1, 2).as("both"), t2.write(2, 18), t3.read(2).as("second"), t2.commit(),
			t3.read(2), t3.read(1), t3.commit(),
		},
		seen: shown("T3 read row 1 as T2 left it and, not before that, row 2 as it was before T2",
			saw("both", Row{1, 12}), oneOf(saw("both", Row{2, 19}), saw("second", Row{2, 19}))),
	}}
	for _, read := range []struct {
		variant      string
		first, again Step
	}{
		{byKey, t2.read(1).as("first"), t2.read(1).as("again")},
		{byIndex, t2.find(100, 200).as("first"), t2.find(101, 102).as("again")},
	} {
		list = append(list, Schedule{
			Anomaly: G1a, Variant: read.variant, Index: read.variant == byIndex, seen: rolledBack,
			Steps: []Step{t1.write(1, 101), read.first, t1.rollback(), read.again, t2.commit()},
		}, Schedule{
			Anomaly: G1b, Variant: read.variant, Index: read.variant == byIndex, seen: overwritten,
			Steps: []Step{t1.write(1, 101), read.first, t1.write(1, 11), t1.commit(), read.again, t2.commit()},
		})
	}
	return list
}

// predicates returns the schedules in which a predicate is not evaluated at one point.
func predicates() []Schedule {
	read := func(variant string, first, again Step) Schedule {
		return Schedule{
			Anomaly: PMP, Variant: "read, " + variant, Index: variant == byIndex, Predicate: variant != absent,
			Steps: []Step{first.as("first"), t2.insert(3, 30), t2.commit(), again.as("again"), t1.commit()},
			seen: shown("T1 found no row 3 at first, and 3=30 of T2 then",
				did("first"), not(saw("first", Row{3, 30})), saw("again", Row{3, 30})),
		}
	}
	write := func(index bool) Schedule {
		first := allOf(found("found", Row{1, 20}), left(Row{2, 30}))  // T1 before T2
		second := allOf(found("found", Row{2, 20}), left(Row{1, 20})) // T2 before T1
		return Schedule{
			Anomaly: PMP, Variant: "write, " + byAmount(index), Index: index, Leaves: true,
			Steps: []Step{
				t1.addAll(10), t2.find(20, 21).as("found"), t2.deleteWhere(20), t1.commit(), t2.find(20, 21), t2.commit(),
			},
			seen: shown("T2 found ${found} with amount = 20 and deleted all such rows, T1 added 10 to all, "+
				"and ${left} is left",
				did("found"), not(found("found")), not(first), not(second)),
		}
	}
	return []Schedule{
		read(absent, t1.read(3), t1.read(3)),
		read(byIndex, t1.find(30, 31), t1.find(30, 60)),
		read(byScan, t1.find(30, 31), t1.find(30, 60)),
		write(true), write(false),
	}
}

// lost returns the schedules of the lost update.
func lost() []Schedule {
	update := func(variant string, first, second Step) Schedule {
		return Schedule{
			Anomaly: P4, Variant: variant, Index: variant == byIndex,
			Steps: []Step{first.as("T1"), second.as("T2"), t1.write(1, 11), t2.write(1, 12), t1.commit(), t2.commit()},
			seen: shown("T1 and T2 both read 1=10 and wrote row 1, and ${left} is left",
				saw("T1", Row{1, 10}), saw("T2", Row{1, 10})),
		}
	}
	return []Schedule{update(byKey, t1.read(1), t2.read(1)), update(byIndex, t1.find(10, 11), t2.find(10, 11))}
}

// skewed returns the schedules in which a transaction reads at more than one point.
func skewed() []Schedule {
	return []Schedule{{
		Anomaly: GSingle, Variant: byKey,
		Steps: []Step{
			t1.read(1).as("first"), t2.read(1), t2.read(2), t2.write(1, 12), t2.write(2, 18), t2.commit(),
			t1.read(2).as("second"), t1.commit(),
		},
		seen: shown("T1 read row 1 from before T2 and row 2 from after T2",
			saw("first", Row{1, 10}), saw("second", Row{2, 18})),
	}, {
		Anomaly: GSingle, Variant: byIndex, Index: true, Predicate: true,
		Steps: []Step{t1.find(0, 100).as("first"), t2.write(1, 12), t2.commit(), t1.find(12, 13).as("second"), t1.commit()},
		seen:  shown("T1 found 1=10, and 1=12 by another predicate", saw("first", Row{1, 10}), saw("second", Row{1, 12})),
	}, {
		Anomaly: GSingle, Variant: "by a predicate of a write", Leaves: true,
		Steps: []Step{
			t1.read(1).as("first"), t2.read(1, 2), t2.write(1, 12), t2.write(2, 18), t2.commit(),
			t1.deleteWhere(20).as("deleted"), t1.read(2), t1.commit(),
		},
		seen: shown("T1 read row 1 from before T2, and its DELETE of amount = 20 did not find row 2, as after T2",
			saw("first", Row{1, 10}), changed("deleted", 0), leaves(Row{2, 18})),
	}, {
		Anomaly: GSingle, Variant: "by the expression of a write", Leaves: true,
		Steps: []Step{t1.read(1).as("first"), t2.write(1, 12), t2.commit(), t1.addAll(10), t1.read(1), t1.commit()},
		seen: shown("T1 read row 1 from before T2, and its UPDATE added to row 1 from after T2",
			saw("first", Row{1, 10}), leaves(Row{1, 22})),
	}, {
		Anomaly: LongFork, Variant: byKey,
		Steps: []Step{
			t3.read(2).as("T3 row 2"), t4.read(1).as("T4 row 1"), t1.write(1, 11), t1.commit(), t2.write(2, 22), t2.commit(),
			t3.read(1).as("T3 row 1"), t4.read(2).as("T4 row 2"), t3.commit(), t4.commit(),
		},
		seen: shown("T3 saw T1 and not T2, and T4 saw T2 and not T1",
			saw("T3 row 2", Row{2, 20}), saw("T3 row 1", Row{1, 11}),
			saw("T4 row 1", Row{1, 10}), saw("T4 row 2", Row{2, 22})),
	}}
}

// phantoms returns the schedules of a cycle of anti-dependencies.
func phantoms() []Schedule {
	inserts := func(a Anomaly, variant string, first, second Step) Schedule {
		return Schedule{
			Anomaly: a, Variant: variant, Index: variant == byIndex, Predicate: a == G2,
			Steps: []Step{first.as("T1"), second.as("T2"), t1.insert(3, 30), t2.insert(4, 42), t1.commit(), t2.commit()},
			seen:  shown("T1 and T2 found no row, and each inserted one that the other looked for", found("T1"), found("T2")),
		}
	}
	// The read-only transaction anomaly of Fekete, O'Neil and O'Neil (SIGMOD Record 33(3), 2004),
	// in the shape of Hermitage.
	twoEdges := func(a Anomaly, variant string, first, third Step) Schedule {
		return Schedule{
			Anomaly: a, Variant: "beside a reader, " + variant, Index: variant == byIndex, Predicate: a == G2,
			Steps: []Step{
				first.as("T1"), t2.write(2, 25), t2.commit(), third.as("T3"), t3.commit(), t1.write(1, 0), t1.commit(),
			},
			seen: shown("T1 did not see T2, which T3 saw, and T3 did not see T1: no order has all three",
				saw("T1", Row{2, 20}), saw("T3", Row{2, 25}), saw("T3", Row{1, 10})),
		}
	}
	both := Schedule{
		Anomaly: G2Item, Variant: byKey,
		Steps: []Step{
			t1.read(1, 2).as("T1"), t2.read(1, 2).as("T2"), t1.write(1, 11), t2.write(2, 21), t1.commit(), t2.commit(),
		},
		seen: shown("T1 and T2 read both rows, and each wrote one of them",
			found("T1", initial()...), found("T2", initial()...)),
	}
	return []Schedule{
		both,
		inserts(G2Item, absent, t1.read(3, 4), t2.read(3, 4)),
		twoEdges(G2Item, byKey, t1.read(1, 2), t3.read(1, 2)),
		inserts(G2, byIndex, t1.find(30, 60), t2.find(30, 60)),
		inserts(G2, byScan, t1.find(30, 60), t2.find(30, 60)),
		twoEdges(G2, byIndex, t1.find(0, 100), t3.find(0, 100)),
	}
}

// betweenReads returns the schedules of a transaction that writes or locks between its reads. It
// has a snapshot. Then its write, or its locking read, meets a row that another transaction has
// changed meanwhile, and it reads a further row of that transaction.
//
// Such a transaction sees one write of another and not the next. Monotonic atomic view forbids
// that, and the analysis of MySQL 8.0.34 found it at REPEATABLE READ (Alvaro and Kingsbury,
// https://jepsen.io/analyses/mysql-8.0.34).
func betweenReads() (list []Schedule) {
	before := []Step{t1.read(1), t2.write(2, 25), t2.write(3, 35), t2.commit()}
	reader := func(variant, text string, own bool, again []Step, conditions ...condition) {
		list = append(list, Schedule{
			Anomaly: OTV, Variant: variant, Own: own, Start: []Row{{1, 10}, {2, 20}, {3, 30}},
			Steps: slices.Concat(before, again, []Step{t1.commit()}),
			seen:  shown(text+", and then read 3=30, from before T2", conditions...),
		})
	}
	third, old := t1.read(3).as("third"), saw("third", Row{3, 30})
	all := t1.find(0, 100).as("all")
	reader("a reader that updates a row, by key", "T1 added 10 to row 2 and read 2=35, in which T2's 25 is", true,
		[]Step{t1.add(2, 10), t1.read(2).as("second"), third}, saw("second", Row{2, 35}), old)
	for _, index := range []bool{true, false} {
		first, by := len(list), ", "+byAmount(index)
		reader("a reader that updates"+by, "T1 updated row 2 because T2 had set it to 25", true,
			[]Step{t1.addWhere(25, 26, 10), all}, saw("all", Row{2, 35}), saw("all", Row{3, 30}))
		list = append(list, Schedule{
			Anomaly: OTV, Variant: "a reader that updates an inserted row" + by, Own: true,
			Steps: []Step{
				t1.read(2), t2.insert(3, 30), t2.write(1, 12), t2.commit(), t1.addWhere(30, 31, 10), all, t1.commit(),
			},
			seen: shown("T1 updated row 3, which T2 had inserted, and then read 1=10, from before T2",
				saw("all", Row{3, 40}), saw("all", Row{1, 10})),
		})
		reader("a reader that deletes"+by, "T1 deleted row 2 because T2 had set it to 25", false,
			[]Step{t1.deleteWhere(25).as("deleted"), third}, changed("deleted", 1), old)
		for _, l := range locks {
			reader(fmt.Sprintf("a reader that locks %s%s", l.name, by), "T1 read 2=25 of T2 "+l.name, false,
				[]Step{t1.findLocked(l, 25, 26).as("locked"), third}, saw("locked", Row{2, 25}), old)
		}
		for i := range list[first:] {
			list[first+i].Index = index
		}
	}
	return list
}

// lock is a way to lock the rows that are read.
type lock struct {
	kind Kind
	name string
}

var locks = []lock{{FindUpdate, "for update"}, {FindShare, "for share"}}

func (t tx) findLocked(l lock, low, high int64) Step {
	return t.do(Operation{Kind: l.kind, Low: low, High: high})
}

// ownWrites returns the schedules of a transaction that reads again what it has read or written,
// after others have committed.
func ownWrites() (list []Schedule) {
	// own adds a schedule whose step of the label own must show the step of the label write.
	own := func(variant string, index bool, seen func(*observed) string, steps ...Step) {
		list = append(list, Schedule{
			Anomaly: Internal, Variant: variant, Index: index, Every: true, Own: true, seen: seen,
			Steps: append(steps, t1.commit()),
		})
	}
	wrote := t1.write(1, 11).as("write")
	own("own update, by key", false, missed(Row{1, 11}, "T1 wrote"),
		t1.read(1), wrote, t2.write(1, 12), t2.commit(), t1.read(1).as("own"))
	own("own update beside another's, by key", false, missed(Row{1, 11}, "T1 wrote"),
		t1.read(1), wrote, t2.write(2, 22), t2.commit(), t1.read(1, 2).as("own"))
	own("own deletion, by key", false, missing("T1 deleted row 1", found("own")),
		t1.read(1), t1.delete(1).as("write"), t2.write(2, 22), t2.commit(), t1.read(1).as("own"))
	list = append(list,
		Schedule{
			Anomaly: Internal, Variant: "a row that was read, updated and read again", Own: true,
			Steps: []Step{
				t1.read(2).as("first"), t2.write(2, 25), t2.commit(), t1.add(2, 10), t1.read(2).as("again"), t1.commit(),
			},
			seen: shown("T1 read 2=20, added 10 to row 2 and read 2=35, in which T2's 25 is",
				saw("first", Row{2, 20}), saw("again", Row{2, 35})),
		},
		readAgain("a row that was read, by key"),
		readAgain("a row that was read, after a write of another, by key", t1.write(2, 21)),
	)
	for _, index := range []bool{true, false} {
		own("own insertion, "+byAmount(index), index, missed(Row{3, 30}, "T1 inserted"),
			t1.find(30, 60), t1.insert(3, 30).as("write"), t2.insert(4, 42), t2.commit(), t1.find(30, 60).as("own"))
		// The update moves a row from one predicate to another.
		own("own update, "+byAmount(index), index, missed(Row{1, 100}, "T1 added 90 to 1=10, which makes"),
			t1.find(0, 200), t1.addWhere(10, 11, 90).as("write"), t2.insert(3, 30), t2.commit(), t1.find(0, 200).as("own"))
	}
	return list
}

// missed returns a Schedule.seen: the step of the label own did not find a row that the step of
// the label write had written.
func missed(row Row, text string) func(o *observed) string {
	return missing(text+" "+row.String(), saw("own", row))
}

// missing returns a Schedule.seen: the step of the label own does not show the step of the label
// write. A session on a node that is behind may have found no row to write.
func missing(text string, shows condition) func(o *observed) string {
	return shownIf(text+" and then read ${own}", commits(1), wroteRow("write"), did("own"), not(shows))
}

// readAgain returns the fuzzy read, P2 of Berenson and others, with steps before the second read.
func readAgain(variant string, between ...Step) Schedule {
	return Schedule{
		Anomaly: Internal, Variant: variant,
		Steps: slices.Concat([]Step{t1.read(1).as("first"), t2.write(1, 12), t2.commit()}, between,
			[]Step{t1.read(1).as("again"), t1.commit()}),
		seen: shown("T1 read 1=10 and then 1=12, which T2 had committed meanwhile",
			saw("first", Row{1, 10}), saw("again", Row{1, 12})),
	}
}

// rounds is the number of runs of a schedule whose transactions follow each other. A missing read depends on
// time and place there.
const rounds = 20

// inTurn is the variant whose transactions follow each other. Only an old snapshot, such as one of a replica
// that is behind, shows the anomaly there.
const inTurn = "one after the other"

// oneAfterTheOther returns the schedules whose transactions do not overlap.
func oneAfterTheOther() []Schedule {
	first, second := []Row{{1, 11}, {2, 20}}, []Row{{1, 10}, {2, 22}}
	return []Schedule{{
		Anomaly: G1a, Variant: "after a refused commit", Rounds: rounds,
		Steps: []Step{t1.read(1, 3), t1.write(1, 101), t1.insert(3, 30), t1.commit(), t2.read(1).as("T2"), t2.commit()},
		seen: shownIf("T2 read 1=101 of T1, whose commit was refused",
			commits(2), not(commits(1)), saw("T2", Row{1, 101})),
	}, {
		Anomaly: P4, Variant: inTurn, Rounds: rounds,
		Steps: []Step{t1.read(1).as("T1"), t1.write(1, 11), t1.commit(), t2.read(1).as("T2"), t2.write(1, 12), t2.commit()},
		seen: shown("T2 read 1=10 after T1 had overwritten it and committed, and overwrote what T1 wrote",
			saw("T1", Row{1, 10}), saw("T2", Row{1, 10})),
	}, {
		Anomaly: GSingle, Variant: inTurn, Rounds: rounds,
		Steps: []Step{t1.read(1, 2), t1.write(1, 12), t1.write(2, 18), t1.commit(), t2.read(1, 2).as("T2"), t2.commit()},
		seen: shown("T2 read one row from before T1 and the other from after T1",
			oneOf(found("T2", Row{1, 12}, Row{2, 20}), found("T2", Row{1, 10}, Row{2, 18}))),
	}, {
		// The readers may be on two replicas, and each replica has another commit first.
		Anomaly: LongFork, Variant: "readers that begin after both commits", Rounds: rounds,
		Steps: []Step{
			t1.write(1, 11), t2.write(2, 22), t1.commit(), t2.commit(),
			t3.read(1, 2).as("T3"), t4.read(1, 2).as("T4"), t3.commit(), t4.commit(),
		},
		seen: shown("T3 and T4 each saw one of T1 and T2, and not the same one", oneOf(
			allOf(found("T3", first...), found("T4", second...)), allOf(found("T3", second...), found("T4", first...)))),
	}, {
		Anomaly: G2Item, Variant: inTurn, Rounds: rounds,
		Steps: []Step{
			t1.read(1, 2).as("T1"), t1.write(1, 11), t1.commit(), t2.read(1, 2).as("T2"), t2.write(2, 21), t2.commit(),
		},
		seen: shown("T2 read both rows from before T1, which had committed, and each wrote one of them",
			found("T1", initial()...), found("T2", initial()...)),
	}, {
		Anomaly: G2, Variant: inTurn, Predicate: true, Rounds: rounds,
		Steps: []Step{
			t1.read(1), t1.find(30, 60).as("T1"), t1.write(1, 11), t1.insert(3, 30), t1.commit(),
			t2.find(30, 60).as("T2"), t2.insert(4, 42), t2.commit(),
		},
		seen: shown("T2 did not find the row that T1 had inserted and committed, "+
			"and each inserted one that the other looked for",
			found("T1"), found("T2")),
	}, staleRead()}
}

func staleRead() Schedule {
	return Schedule{
		Anomaly: StaleRead, Variant: byKey, Rounds: rounds,
		Steps: []Step{t1.write(1, 11), t1.commit(), t2.read(1).as("T2"), t2.commit()},
		seen:  shown("T2 began after T1 had committed, and read row 1 from before T1", saw("T2", Row{1, 10})),
	}
}

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

// move is a change by T1 of a row under the predicate of T2's statement.
type move struct {
	name      string
	step      Step
	low, high int64  // the predicate
	row       Row    // the row before T1
	left      string // the change, as the witness has it
	// after are the rows that the predicate selects after T1. Before T1 it selects row 1.
	after []Row
}

var moves = []move{
	{"a row that moves away", t1.write(1, 99), 10, 11, Row{1, 10}, "set it to 99", nil},
	{"a row that is deleted", t1.delete(1), 10, 11, Row{1, 10}, "deleted it", nil},
	{"a row that moves in", t1.write(2, 10), 10, 11, Row{2, 20}, "set it to 10", []Row{{1, 10}, {2, 10}}},
	{"a row that changes", t1.write(1, 12), 0, 15, Row{1, 10}, "set it to 12", []Row{{1, 12}}},
}

// statement is a statement of T2 with a predicate.
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
