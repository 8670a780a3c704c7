package schedule

import "slices"

// rounds is how often a schedule is run whose transactions follow each other: what one of
// them does not see depends on time and place.
const rounds = 20

// inTurn is the variant whose transactions follow each other. Only an old snapshot, as of
// a replica that is behind, brings the anomaly there.
const inTurn = "one after the other"

// oneAfterTheOther are the schedules whose transactions do not overlap.
func oneAfterTheOther() []Schedule {
	return []Schedule{
		{
			Anomaly: G1a, Variant: "after a refused commit", Rounds: rounds,
			Steps: []Step{t1.read(1, 3), t1.write(1, 101), t1.insert(3, 30), t1.commit(), t2.read(1).as("T2"), t2.commit()},
			seen: func(o *observed) string {
				if o.committed(2) && !o.committed(1) && o.saw("T2", Row{1, 101}) {
					return "T2 read 1=101 of T1, whose commit was refused"
				}
				return ""
			},
		},
		{
			Anomaly: P4, Variant: inTurn, Rounds: rounds,
			Steps: []Step{t1.read(1).as("T1"), t1.write(1, 11), t1.commit(), t2.read(1).as("T2"), t2.write(1, 12), t2.commit()},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.saw("T1", Row{1, 10}) && o.saw("T2", Row{1, 10}) {
					return "T2 read 1=10 after T1 had overwritten it and committed, and overwrote what T1 wrote"
				}
				return ""
			},
		},
		{
			Anomaly: GSingle, Variant: inTurn, Rounds: rounds,
			Steps: []Step{t1.read(1, 2), t1.write(1, 12), t1.write(2, 18), t1.commit(), t2.read(1, 2).as("T2"), t2.commit()},
			seen: func(o *observed) string {
				if o.committed(1, 2) && (o.found("T2", Row{1, 12}, Row{2, 20}) || o.found("T2", Row{1, 10}, Row{2, 18})) {
					return "T2 read one row from before T1 and the other from after T1"
				}
				return ""
			},
		},
		forkedReaders(),
		{
			Anomaly: G2Item, Variant: inTurn, Rounds: rounds,
			Steps: []Step{
				t1.read(1, 2).as("T1"), t1.write(1, 11), t1.commit(), t2.read(1, 2).as("T2"), t2.write(2, 21), t2.commit(),
			},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.found("T1", initial()...) && o.found("T2", initial()...) {
					return "T2 read both rows from before T1, which had committed, and each wrote one of them"
				}
				return ""
			},
		},
		{
			Anomaly: G2, Variant: inTurn, Predicate: true, Rounds: rounds,
			Steps: []Step{
				t1.read(1), t1.find(30, 60).as("T1"), t1.write(1, 11), t1.insert(3, 30), t1.commit(),
				t2.find(30, 60).as("T2"), t2.insert(4, 42), t2.commit(),
			},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.found("T1") && o.found("T2") {
					return "T2 did not find the row that T1 had inserted and committed, and each inserted one that the other looked for"
				}
				return ""
			},
		},
		staleRead(),
	}
}

func staleRead() Schedule {
	return Schedule{
		Anomaly: StaleRead, Variant: byKey, Rounds: rounds,
		Steps: []Step{t1.write(1, 11), t1.commit(), t2.read(1).as("T2"), t2.commit()},
		seen: func(o *observed) string {
			if o.committed(1, 2) && slices.Contains(o.rows("T2"), Row{1, 10}) {
				return "T2 began after T1 had committed, and read row 1 from before T1"
			}
			return ""
		},
	}
}

// forkedReaders may be on two replicas, each of which has one of the commits first.
func forkedReaders() Schedule {
	return Schedule{
		Anomaly: LongFork, Variant: "readers that begin after both commits", Rounds: rounds,
		Steps: []Step{
			t1.write(1, 11), t2.write(2, 22), t1.commit(), t2.commit(),
			t3.read(1, 2).as("T3"), t4.read(1, 2).as("T4"), t3.commit(), t4.commit(),
		},
		seen: func(o *observed) string {
			first, second := []Row{{1, 11}, {2, 20}}, []Row{{1, 10}, {2, 22}}
			apart := o.found("T3", first...) && o.found("T4", second...) || o.found("T3", second...) && o.found("T4", first...)
			if o.committed(1, 2, 3, 4) && apart {
				return "T3 and T4 each saw one of T1 and T2, and not the same one"
			}
			return ""
		},
	}
}
