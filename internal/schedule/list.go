package schedule

import (
	"cmp"
	"fmt"
	"slices"
)

// These texts end the names of variants: the way in which rows are found.
const (
	byKey   = "by key"
	absent  = "absent rows by key"
	byIndex = "by a predicate, with an index"
	byScan  = "by a predicate, without an index"
)

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
	dirtyRead := oneOf(saw("first", Row{1, 101}), saw("again", Row{1, 101}))
	rolledBack := shownIf("T2 read 1=101 of T1, which was rolled back", commits(2), not(commits(1)), dirtyRead)
	overwritten := shown("T2 read 1=101, which T1 had overwritten when it committed", dirtyRead)
	list := []Schedule{{
		Anomaly: G0, Variant: byKey, Leaves: true, Steps: script("w1(1=11) w2(1=12) w2(2=22) w1(2=21) c1 c2"),
		seen: shown("each of T1 and T2 wrote rows 1 and 2, and ${left} is left, one row of each",
			oneOf(found("left", Row{1, 11}, Row{2, 22}), found("left", Row{1, 12}, Row{2, 21}))),
	}, {
		Anomaly: G1c, Variant: byKey, Steps: script("w1(1=11) w2(2=22) r1(2):T1 r2(1):T2 c1 c2"),
		seen: shown("T1 read what T2 wrote and T2 what T1 wrote", saw("T1", Row{2, 22}), saw("T2", Row{1, 11})),
	}, {
		Anomaly: OTV, Variant: byKey,
		Steps: script("w1(1=11) w1(2=19) w2(1=12) c1 r3(1,2):both w2(2=18) r3(2):second c2 r3(2) r3(1) c3"),
		seen: shown("T3 read row 1 as T2 left it and, not before that, row 2 as it was before T2",
			saw("both", Row{1, 12}), oneOf(saw("both", Row{2, 19}), saw("second", Row{2, 19}))),
	}}
	for _, read := range []struct{ variant, first, again string }{
		{byKey, " r2(1):first ", " r2(1):again c2"}, {byIndex, " r2(100..200):first ", " r2(101..102):again c2"},
	} {
		list = append(list, Schedule{
			Anomaly: G1a, Variant: read.variant, Index: read.variant == byIndex, seen: rolledBack,
			Steps: script("w1(1=101)" + read.first + "a1" + read.again),
		}, Schedule{
			Anomaly: G1b, Variant: read.variant, Index: read.variant == byIndex, seen: overwritten,
			Steps: script("w1(1=101)" + read.first + "w1(1=11) c1" + read.again),
		})
	}
	return list
}

// predicates returns the schedules in which a predicate is not evaluated at one point.
func predicates() []Schedule {
	read := func(variant, first, again string) Schedule {
		return Schedule{
			Anomaly: PMP, Variant: "read, " + variant, Index: variant == byIndex, Predicate: variant != absent,
			Steps: script(first + ":first i2(3=30) c2 " + again + ":again c1"),
			seen: shown("T1 found no row 3 at first, and 3=30 of T2 then",
				did("first"), not(saw("first", Row{3, 30})), saw("again", Row{3, 30})),
		}
	}
	write := func(variant string) Schedule {
		first := allOf(found("found", Row{1, 20}), found("left", Row{2, 30}))  // T1 before T2
		second := allOf(found("found", Row{2, 20}), found("left", Row{1, 20})) // T2 before T1
		return Schedule{
			Anomaly: PMP, Variant: "write, " + variant, Index: variant == byIndex, Leaves: true,
			Steps: script("u1(*+10) r2(20..21):found d2(20..21) c1 r2(20..21) c2"),
			seen: shown("T2 found ${found} with amount = 20 and deleted all such rows, T1 added 10 to all, and ${left} is left",
				did("found"), not(found("found")), not(first), not(second)),
		}
	}
	return []Schedule{
		read(absent, "r1(3)", "r1(3)"), read(byIndex, "r1(30..31)", "r1(30..60)"), read(byScan, "r1(30..31)", "r1(30..60)"),
		write(byIndex), write(byScan),
	}
}

// lost returns the schedules of the lost update.
func lost() []Schedule {
	update := func(variant, first, second string) Schedule {
		return Schedule{
			Anomaly: P4, Variant: variant, Index: variant == byIndex,
			Steps: script(first + ":T1 " + second + ":T2 w1(1=11) w2(1=12) c1 c2"),
			seen: shown("T1 and T2 both read 1=10 and wrote row 1, and ${left} is left",
				saw("T1", Row{1, 10}), saw("T2", Row{1, 10})),
		}
	}
	return []Schedule{update(byKey, "r1(1)", "r2(1)"), update(byIndex, "r1(10..11)", "r2(10..11)")}
}

// skewed returns the schedules in which a transaction reads at more than one point.
func skewed() []Schedule {
	return []Schedule{{
		Anomaly: GSingle, Variant: byKey, Steps: script("r1(1):first r2(1) r2(2) w2(1=12) w2(2=18) c2 r1(2):second c1"),
		seen: shown("T1 read row 1 from before T2 and row 2 from after T2",
			saw("first", Row{1, 10}), saw("second", Row{2, 18})),
	}, {
		Anomaly: GSingle, Variant: byIndex, Index: true, Predicate: true,
		Steps: script("r1(0..100):first w2(1=12) c2 r1(12..13):second c1"),
		seen:  shown("T1 found 1=10, and 1=12 by another predicate", saw("first", Row{1, 10}), saw("second", Row{1, 12})),
	}, {
		Anomaly: GSingle, Variant: "by a predicate of a write", Leaves: true,
		Steps: script("r1(1):first r2(1,2) w2(1=12) w2(2=18) c2 d1(20..21):deleted r1(2) c1"),
		seen: shown("T1 read row 1 from before T2, and its DELETE of amount = 20 did not find row 2, as after T2",
			saw("first", Row{1, 10}), changed("deleted", 0), saw("left", Row{2, 18})),
	}, {
		Anomaly: GSingle, Variant: "by the expression of a write", Leaves: true,
		Steps: script("r1(1):first w2(1=12) c2 u1(*+10) r1(1) c1"),
		seen: shown("T1 read row 1 from before T2, and its UPDATE added to row 1 from after T2",
			saw("first", Row{1, 10}), saw("left", Row{1, 22})),
	}, {
		Anomaly: LongFork, Variant: byKey,
		Steps: script("r3(2):T3-2 r4(1):T4-1 w1(1=11) c1 w2(2=22) c2 r3(1):T3-1 r4(2):T4-2 c3 c4"),
		seen: shown("T3 saw T1 and not T2, and T4 saw T2 and not T1",
			saw("T3-2", Row{2, 20}), saw("T3-1", Row{1, 11}), saw("T4-1", Row{1, 10}), saw("T4-2", Row{2, 22})),
	}}
}

// phantoms returns the schedules of a cycle of anti-dependencies.
func phantoms() []Schedule {
	inserts := func(a Anomaly, variant, first, second string) Schedule {
		return Schedule{
			Anomaly: a, Variant: variant, Index: variant == byIndex, Predicate: a == G2,
			Steps: script(first + ":T1 " + second + ":T2 i1(3=30) i2(4=42) c1 c2"),
			seen:  shown("T1 and T2 found no row, and each inserted one that the other looked for", found("T1"), found("T2")),
		}
	}
	// The read-only transaction anomaly of Fekete, O'Neil and O'Neil (SIGMOD Record 33(3), 2004),
	// in the shape of Hermitage.
	twoEdges := func(a Anomaly, variant, first, third string) Schedule {
		return Schedule{
			Anomaly: a, Variant: "beside a reader, " + variant, Index: variant == byIndex, Predicate: a == G2,
			Steps: script(first + ":T1 w2(2=25) c2 " + third + ":T3 c3 w1(1=0) c1"),
			seen: shown("T1 did not see T2, which T3 saw, and T3 did not see T1: no order has all three",
				saw("T1", Row{2, 20}), saw("T3", Row{2, 25}), saw("T3", Row{1, 10})),
		}
	}
	return []Schedule{
		{
			Anomaly: G2Item, Variant: byKey, Steps: script("r1(1,2):T1 r2(1,2):T2 w1(1=11) w2(2=21) c1 c2"),
			seen: shown("T1 and T2 read both rows, and each wrote one of them",
				found("T1", initial()...), found("T2", initial()...)),
		},
		inserts(G2Item, absent, "r1(3,4)", "r2(3,4)"),
		twoEdges(G2Item, byKey, "r1(1,2)", "r3(1,2)"),
		inserts(G2, byIndex, "r1(30..60)", "r2(30..60)"),
		inserts(G2, byScan, "r1(30..60)", "r2(30..60)"),
		twoEdges(G2, byIndex, "r1(0..100)", "r3(0..100)"),
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
	reader := func(variant, by, text string, own bool, steps string, conditions ...condition) {
		list = append(list, Schedule{
			Anomaly: OTV, Variant: variant + ", " + by, Index: by == byIndex, Own: own, Start: []Row{{1, 10}, {2, 20}, {3, 30}},
			Steps: script("r1(1) w2(2=25) w2(3=35) c2 " + steps + " c1"),
			seen:  shown(text+", and then read 3=30, from before T2", conditions...),
		})
	}
	old := saw("third", Row{3, 30})
	reader("a reader that updates a row", byKey, "T1 added 10 to row 2 and read 2=35, in which T2's 25 is", true,
		"u1(2+10) r1(2):second r1(3):third", saw("second", Row{2, 35}), old)
	for _, by := range []string{byIndex, byScan} {
		reader("a reader that updates", by, "T1 updated row 2 because T2 had set it to 25", true,
			"u1(25..26+10) r1(0..100):all", saw("all", Row{2, 35}), saw("all", Row{3, 30}))
		list = append(list, Schedule{
			Anomaly: OTV, Variant: "a reader that updates an inserted row, " + by, Index: by == byIndex, Own: true,
			Steps: script("r1(2) i2(3=30) w2(1=12) c2 u1(30..31+10) r1(0..100):all c1"),
			seen: shown("T1 updated row 3, which T2 had inserted, and then read 1=10, from before T2",
				saw("all", Row{3, 40}), saw("all", Row{1, 10})),
		})
		reader("a reader that deletes", by, "T1 deleted row 2 because T2 had set it to 25", false,
			"d1(25..26):deleted r1(3):third", changed("deleted", 1), old)
		for _, lock := range [][2]string{{"for update", "l1"}, {"for share", "s1"}} {
			reader("a reader that locks "+lock[0], by, "T1 read 2=25 of T2 "+lock[0], false,
				lock[1]+"(25..26):locked r1(3):third", saw("locked", Row{2, 25}), old)
		}
	}
	return list
}

// ownWrites returns the schedules of a transaction that reads again what it has read or written,
// after others have committed.
func ownWrites() (list []Schedule) {
	// own adds a schedule whose step of the label own must show the step of the label write.
	own := func(variant, by, steps string, seen func(*observed) string) {
		list = append(list, Schedule{
			Anomaly: Internal, Variant: variant + ", " + by, Index: by == byIndex, Every: true, Own: true, seen: seen,
			Steps: script(steps + " c1"),
		})
	}
	wrote := missed(Row{1, 11}, "T1 wrote")
	own("own update", byKey, "r1(1) w1(1=11):write w2(1=12) c2 r1(1):own", wrote)
	own("own update beside another's", byKey, "r1(1) w1(1=11):write w2(2=22) c2 r1(1,2):own", wrote)
	own("own deletion", byKey, "r1(1) d1(1):write w2(2=22) c2 r1(1):own", missing("T1 deleted row 1", found("own")))
	list = append(list,
		Schedule{
			Anomaly: Internal, Variant: "a row that was read, updated and read again", Own: true,
			Steps: script("r1(2):first w2(2=25) c2 u1(2+10) r1(2):again c1"),
			seen: shown("T1 read 2=20, added 10 to row 2 and read 2=35, in which T2's 25 is",
				saw("first", Row{2, 20}), saw("again", Row{2, 35})),
		},
		readAgain("a row that was read, by key", ""),
		readAgain("a row that was read, after a write of another, by key", "w1(2=21) "),
	)
	for _, by := range []string{byIndex, byScan} {
		own("own insertion", by, "r1(30..60) i1(3=30):write i2(4=42) c2 r1(30..60):own", missed(Row{3, 30}, "T1 inserted"))
		// The update moves a row from one predicate to another.
		own("own update", by, "r1(0..200) u1(10..11+90):write i2(3=30) c2 r1(0..200):own",
			missed(Row{1, 100}, "T1 added 90 to 1=10, which makes"))
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
func readAgain(variant, between string) Schedule {
	return Schedule{
		Anomaly: Internal, Variant: variant, Steps: script("r1(1):first w2(1=12) c2 " + between + "r1(1):again c1"),
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
		Steps: script("r1(1,3) w1(1=101) i1(3=30) c1 r2(1):T2 c2"),
		seen: shownIf("T2 read 1=101 of T1, whose commit was refused",
			commits(2), not(commits(1)), saw("T2", Row{1, 101})),
	}, {
		Anomaly: P4, Variant: inTurn, Rounds: rounds, Steps: script("r1(1):T1 w1(1=11) c1 r2(1):T2 w2(1=12) c2"),
		seen: shown("T2 read 1=10 after T1 had overwritten it and committed, and overwrote what T1 wrote",
			saw("T1", Row{1, 10}), saw("T2", Row{1, 10})),
	}, {
		Anomaly: GSingle, Variant: inTurn, Rounds: rounds, Steps: script("r1(1,2) w1(1=12) w1(2=18) c1 r2(1,2):T2 c2"),
		seen: shown("T2 read one row from before T1 and the other from after T1",
			oneOf(found("T2", Row{1, 12}, Row{2, 20}), found("T2", Row{1, 10}, Row{2, 18}))),
	}, {
		// The readers may be on two replicas, and each replica has another commit first.
		Anomaly: LongFork, Variant: "readers that begin after both commits", Rounds: rounds,
		Steps: script("w1(1=11) w2(2=22) c1 c2 r3(1,2):T3 r4(1,2):T4 c3 c4"),
		seen: shown("T3 and T4 each saw one of T1 and T2, and not the same one", oneOf(
			allOf(found("T3", first...), found("T4", second...)), allOf(found("T3", second...), found("T4", first...)))),
	}, {
		Anomaly: G2Item, Variant: inTurn, Rounds: rounds, Steps: script("r1(1,2):T1 w1(1=11) c1 r2(1,2):T2 w2(2=21) c2"),
		seen: shown("T2 read both rows from before T1, which had committed, and each wrote one of them",
			found("T1", initial()...), found("T2", initial()...)),
	}, {
		Anomaly: G2, Variant: inTurn, Predicate: true, Rounds: rounds,
		Steps: script("r1(1) r1(30..60):T1 w1(1=11) i1(3=30) c1 r2(30..60):T2 i2(4=42) c2"),
		seen: shown("T2 did not find the row that T1 had inserted and committed, "+
			"and each inserted one that the other looked for",
			found("T1"), found("T2")),
	}, staleRead()}
}

func staleRead() Schedule {
	return Schedule{
		Anomaly: StaleRead, Variant: byKey, Rounds: rounds, Steps: script("w1(1=11) c1 r2(1):T2 c2"),
		seen: shown("T2 began after T1 had committed, and read row 1 from before T1", saw("T2", Row{1, 10})),
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
	for _, by := range []string{byIndex, byScan} {
		for _, s := range statements {
			for _, m := range moves {
				list = append(list, waiting(s, m, by))
			}
		}
	}
	return list
}

// move is a change by T1 of a row under the predicate of T2's statement.
type move struct {
	name, step, predicate string

	row  Row    // the row before T1
	left string // the change, as the witness has it
	// after are the rows that the predicate selects after T1. Before T1 it selects row 1.
	after []Row
}

var moves = []move{
	{"a row that moves away", "w1(1=99)", "10..11", Row{1, 10}, "set it to 99", nil},
	{"a row that is deleted", "d1(1)", "10..11", Row{1, 10}, "deleted it", nil},
	{"a row that moves in", "w1(2=10)", "10..11", Row{2, 20}, "set it to 10", []Row{{1, 10}, {2, 10}}},
	{"a row that changes", "w1(1=12)", "0..15", Row{1, 10}, "set it to 12", []Row{{1, 12}}},
}

// statement is a statement of T2, with %s for its predicate.
type statement struct{ name, step string }

var statements = []statement{
	{"update", "u2(%s+1)"}, {"delete", "d2(%s)"}, {"read for update", "l2(%s)"}, {"read for share", "s2(%s)"},
}

func waiting(s statement, m move, by string) Schedule {
	does := fmt.Sprintf(s.step, m.predicate)
	steps := script("r2(1,2):before " + m.step + ":T1 " + does + ":statement c1 r2(1,2):after c2")
	kind := steps[2].Kind
	made := Schedule{
		Anomaly: GSingle, Variant: fmt.Sprintf("%s, %s, %s", s.name, m.name, by), Index: by == byIndex,
		Leaves: len(m.after) == 1 && kind.writes(), Steps: steps,
	}
	text := fmt.Sprintf("T2 read %s; T1 %s and committed; T2", m.row, m.left)
	first := allOf(saw("before", m.row), m.cameFirst(kind))
	if kind == DeleteWhere && len(m.after) == 1 {
		// Whatever version it went by, T2 deleted a row that T1 had changed since T2 read it.
		made.Anomaly = P4
		made.seen = shown(fmt.Sprintf("%s deleted row %d, and T1's update is lost", text, m.row.ID), first)
		return made
	}
	text += "'s " + s.name + " used the rows that T1 left"
	once := shown(text, first)
	again := shown(fmt.Sprintf("%s; then T2 read %s again", text, m.row), first, saw("after", m.row))
	made.seen = func(o *observed) string { return cmp.Or(again(o), once(o)) }
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
		return allOf(wroteRow("T1"), changed("statement", 1), found("left", Row{2, 20}))
	}
	return saw("left", Row{m.after[0].ID, m.after[0].Amount + 1})
}
