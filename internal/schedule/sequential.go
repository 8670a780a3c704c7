package schedule

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
