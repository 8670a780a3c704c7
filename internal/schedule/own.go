package schedule

import "slices"

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
