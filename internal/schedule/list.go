package schedule

import "slices"

const (
	t1 tx = iota + 1
	t2
	t3
	t4
)

// These texts end the variants: they say how rows are found.
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
