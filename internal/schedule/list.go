package schedule

import (
	"fmt"
	"slices"
)

const (
	t1 tx = iota + 1
	t2
	t3
	t4
)

// How rows are found, as variants say it.
const (
	byKey   = "by key"
	absent  = "absent rows by key"
	byIndex = "by a predicate, with an index"
	byScan  = "by a predicate, without an index"
)

// Schedules are all schedules, in the order of their anomalies.
func Schedules() []Schedule {
	list := slices.Concat(
		dirty(), predicates(), lost(), skewed(), phantoms(), oneAfterTheOther(), betweenReads(), ownWrites(), behindALock(),
	)
	slices.SortStableFunc(list, func(a, b Schedule) int { return int(a.Anomaly) - int(b.Anomaly) })
	return list
}

// dirty are the schedules of what no transaction may see of another that is under way.
func dirty() []Schedule {
	return []Schedule{
		{
			Anomaly: G0, Variant: byKey, Leaves: true,
			Steps: []Step{t1.write(1, 11), t2.write(1, 12), t2.write(2, 22), t1.write(2, 21), t1.commit(), t2.commit()},
			seen: func(o *observed) string {
				if o.committed(1, 2) && (o.left(Row{1, 11}, Row{2, 22}) || o.left(Row{1, 12}, Row{2, 21})) {
					return fmt.Sprintf("each of T1 and T2 wrote rows 1 and 2, and %s is left, one row of each", texts(o.final))
				}
				return ""
			},
		},
		abortedRead(byKey, false, t2.read(1), t2.read(1)),
		abortedRead(byIndex, true, t2.find(100, 200), t2.find(101, 102)),
		intermediateRead(byKey, false, t2.read(1), t2.read(1)),
		intermediateRead(byIndex, true, t2.find(100, 200), t2.find(101, 102)),
		{
			Anomaly: G1c, Variant: byKey,
			Steps: []Step{t1.write(1, 11), t2.write(2, 22), t1.read(2).as("T1"), t2.read(1).as("T2"), t1.commit(), t2.commit()},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.saw("T1", Row{2, 22}) && o.saw("T2", Row{1, 11}) {
					return "T1 read what T2 wrote and T2 what T1 wrote"
				}
				return ""
			},
		},
		{
			Anomaly: OTV, Variant: byKey,
			Steps: []Step{
				t1.write(1, 11), t1.write(2, 19), t2.write(1, 12), t1.commit(),
				t3.read(1, 2).as("both"), t2.write(2, 18), t3.read(2).as("second"), t2.commit(),
				t3.read(2), t3.read(1), t3.commit(),
			},
			seen: func(o *observed) string {
				if o.committed(1, 2, 3) && o.saw("both", Row{1, 12}) && (o.saw("both", Row{2, 19}) || o.saw("second", Row{2, 19})) {
					return "T3 read row 1 as T2 left it and, not before that, row 2 as it was before T2"
				}
				return ""
			},
		},
	}
}

func abortedRead(variant string, index bool, first, again Step) Schedule {
	return Schedule{
		Anomaly: G1a, Variant: variant, Index: index,
		Steps: []Step{t1.write(1, 101), first.as("first"), t1.rollback(), again.as("again"), t2.commit()},
		seen: func(o *observed) string {
			if o.committed(2) && !o.committed(1) && (o.saw("first", Row{1, 101}) || o.saw("again", Row{1, 101})) {
				return "T2 read 1=101 of T1, which was rolled back"
			}
			return ""
		},
	}
}

func intermediateRead(variant string, index bool, first, again Step) Schedule {
	return Schedule{
		Anomaly: G1b, Variant: variant, Index: index,
		Steps: []Step{t1.write(1, 101), first.as("first"), t1.write(1, 11), t1.commit(), again.as("again"), t2.commit()},
		seen: func(o *observed) string {
			if o.committed(1, 2) && (o.saw("first", Row{1, 101}) || o.saw("again", Row{1, 101})) {
				return "T2 read 1=101, which T1 had overwritten when it committed"
			}
			return ""
		},
	}
}

// predicates are the schedules of predicates that are not evaluated at one point.
func predicates() []Schedule {
	read := func(variant string, index, predicate bool, first, again Step) Schedule {
		return Schedule{
			Anomaly: PMP, Variant: "read, " + variant, Index: index, Predicate: predicate,
			Steps: []Step{first.as("first"), t2.insert(3, 30), t2.commit(), again.as("again"), t1.commit()},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.did("first") && !o.saw("first", Row{3, 30}) && o.saw("again", Row{3, 30}) {
					return "T1 found no row 3 at first, and 3=30 of T2 then"
				}
				return ""
			},
		}
	}
	write := func(variant string, index bool) Schedule {
		return Schedule{
			Anomaly: PMP, Variant: "write, " + variant, Index: index, Leaves: true,
			Steps: []Step{t1.addAll(10), t2.find(20, 21).as("found"), t2.deleteWhere(20), t1.commit(), t2.find(20, 21).as("after"), t2.commit()},
			seen: func(o *observed) string {
				first := o.found("found", Row{1, 20}) && o.left(Row{2, 30})  // T1 before T2
				second := o.found("found", Row{2, 20}) && o.left(Row{1, 20}) // T2 before T1
				if !o.committed(1, 2) || len(o.rows("found")) == 0 || first || second {
					return ""
				}
				return fmt.Sprintf("T2 found %s with amount = 20 and deleted all such rows, T1 added 10 to all, and %s is left", texts(o.rows("found")), texts(o.final))
			},
		}
	}
	return []Schedule{
		read(absent, false, false, t1.read(3), t1.read(3)),
		read(byIndex, true, true, t1.find(30, 31), t1.find(30, 60)),
		read(byScan, false, true, t1.find(30, 31), t1.find(30, 60)),
		write(byIndex, true), write(byScan, false),
	}
}

// lost are the schedules of the lost update.
func lost() []Schedule {
	update := func(variant string, index bool, first, second Step) Schedule {
		return Schedule{
			Anomaly: P4, Variant: variant, Index: index,
			Steps: []Step{first.as("T1"), second.as("T2"), t1.write(1, 11), t2.write(1, 12), t1.commit(), t2.commit()},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.saw("T1", Row{1, 10}) && o.saw("T2", Row{1, 10}) {
					return fmt.Sprintf("T1 and T2 both read 1=10 and wrote row 1, and %s is left", texts(o.final))
				}
				return ""
			},
		}
	}
	return []Schedule{
		update(byKey, false, t1.read(1), t2.read(1)),
		update(byIndex, true, t1.find(10, 11), t2.find(10, 11)),
	}
}

// skewed are the schedules of reads at more than one point.
func skewed() []Schedule {
	return []Schedule{
		{
			Anomaly: GSingle, Variant: byKey,
			Steps: []Step{
				t1.read(1).as("first"), t2.read(1), t2.read(2), t2.write(1, 12), t2.write(2, 18), t2.commit(),
				t1.read(2).as("second"), t1.commit(),
			},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.saw("first", Row{1, 10}) && o.saw("second", Row{2, 18}) {
					return "T1 read row 1 from before T2 and row 2 from after T2"
				}
				return ""
			},
		},
		{
			Anomaly: GSingle, Variant: byIndex, Index: true, Predicate: true,
			Steps: []Step{t1.find(0, 100).as("first"), t2.write(1, 12), t2.commit(), t1.find(12, 13).as("second"), t1.commit()},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.saw("first", Row{1, 10}) && o.saw("second", Row{1, 12}) {
					return "T1 found 1=10, and 1=12 by another predicate"
				}
				return ""
			},
		},
		{
			Anomaly: GSingle, Variant: "by a predicate of a write", Leaves: true,
			Steps: []Step{
				t1.read(1).as("first"), t2.read(1, 2), t2.write(1, 12), t2.write(2, 18), t2.commit(),
				t1.deleteWhere(20).as("deleted"), t1.read(2), t1.commit(),
			},
			seen: func(o *observed) string {
				passed := o.affected("deleted", 0) && slices.Contains(o.final, Row{2, 18})
				if o.committed(1, 2) && o.saw("first", Row{1, 10}) && passed {
					return "T1 read row 1 from before T2, and its DELETE of amount = 20 did not find row 2, as after T2"
				}
				return ""
			},
		},
		{
			Anomaly: GSingle, Variant: "by the expression of a write", Leaves: true,
			Steps: []Step{
				t1.read(1).as("first"), t2.write(1, 12), t2.commit(), t1.addAll(10), t1.read(1), t1.commit(),
			},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.saw("first", Row{1, 10}) && slices.Contains(o.final, Row{1, 22}) {
					return "T1 read row 1 from before T2, and its UPDATE added to row 1 from after T2"
				}
				return ""
			},
		},
		{
			Anomaly: LongFork, Variant: byKey,
			Steps: []Step{
				t3.read(2).as("T3 row 2"), t4.read(1).as("T4 row 1"), t1.write(1, 11), t1.commit(), t2.write(2, 22), t2.commit(),
				t3.read(1).as("T3 row 1"), t4.read(2).as("T4 row 2"), t3.commit(), t4.commit(),
			},
			seen: func(o *observed) string {
				if o.committed(1, 2, 3, 4) && o.saw("T3 row 2", Row{2, 20}) && o.saw("T3 row 1", Row{1, 11}) &&
					o.saw("T4 row 1", Row{1, 10}) && o.saw("T4 row 2", Row{2, 22}) {
					return "T3 saw T1 and not T2, and T4 saw T2 and not T1"
				}
				return ""
			},
		},
	}
}

// phantoms are the schedules of anti-dependencies in a cycle.
func phantoms() []Schedule {
	return []Schedule{
		{
			Anomaly: G2Item, Variant: byKey,
			Steps: []Step{t1.read(1, 2).as("T1"), t2.read(1, 2).as("T2"), t1.write(1, 11), t2.write(2, 21), t1.commit(), t2.commit()},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.found("T1", initial()...) && o.found("T2", initial()...) {
					return "T1 and T2 read both rows, and each wrote one of them"
				}
				return ""
			},
		},
		inserts(G2Item, absent, false, t1.read(3, 4), t2.read(3, 4)),
		twoEdges(G2Item, byKey, false, t1.read(1, 2), t3.read(1, 2)),
		inserts(G2, byIndex, true, t1.find(30, 60), t2.find(30, 60)),
		inserts(G2, byScan, false, t1.find(30, 60), t2.find(30, 60)),
		twoEdges(G2, byIndex, true, t1.find(0, 100), t3.find(0, 100)),
	}
}

func inserts(a Anomaly, variant string, index bool, first, second Step) Schedule {
	return Schedule{
		Anomaly: a, Variant: variant, Index: index, Predicate: a == G2,
		Steps: []Step{first.as("T1"), second.as("T2"), t1.insert(3, 30), t2.insert(4, 42), t1.commit(), t2.commit()},
		seen: func(o *observed) string {
			if o.committed(1, 2) && o.found("T1") && o.found("T2") {
				return "T1 and T2 found no row, and each inserted one that the other looked for"
			}
			return ""
		},
	}
}

// twoEdges is the read-only transaction anomaly of Fekete, O'Neil and O'Neil (SIGMOD
// Record 33(3), 2004) in the shape that Hermitage has.
func twoEdges(a Anomaly, variant string, index bool, first, third Step) Schedule {
	return Schedule{
		Anomaly: a, Variant: "beside a reader, " + variant, Index: index, Predicate: a == G2,
		Steps: []Step{first.as("T1"), t2.write(2, 25), t2.commit(), third.as("T3"), t3.commit(), t1.write(1, 0), t1.commit()},
		seen: func(o *observed) string {
			if o.committed(1, 2, 3) && o.saw("T1", Row{2, 20}) && o.saw("T3", Row{2, 25}) && o.saw("T3", Row{1, 10}) {
				return "T1 did not see T2, which T3 saw, and T3 did not see T1: no order has all three"
			}
			return ""
		},
	}
}
