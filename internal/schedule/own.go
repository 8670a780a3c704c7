package schedule

import "fmt"

// ownWrites returns the schedules of a transaction that reads again what it has read or written,
// after others have committed.
func ownWrites() []Schedule {
	list := []Schedule{
		{
			Anomaly: Internal, Variant: "own update, by key", Every: true, Own: true,
			Steps: []Step{
				t1.read(1), t1.write(1, 11).as("write"), t2.write(1, 12), t2.commit(), t1.read(1).as("own"), t1.commit(),
			},
			seen: missed(Row{1, 11}, "T1 wrote"),
		},
		{
			Anomaly: Internal, Variant: "own update beside another's, by key", Every: true, Own: true,
			Steps: []Step{
				t1.read(1), t1.write(1, 11).as("write"), t2.write(2, 22), t2.commit(), t1.read(1, 2).as("own"), t1.commit(),
			},
			seen: missed(Row{1, 11}, "T1 wrote"),
		},
		{
			Anomaly: Internal, Variant: "own deletion, by key", Every: true, Own: true,
			Steps: []Step{
				t1.read(1), t1.delete(1).as("write"), t2.write(2, 22), t2.commit(), t1.read(1).as("own"), t1.commit(),
			},
			seen: func(o *observed) string {
				if o.committed(1) && o.wrote("write") && o.did("own") && !o.found("own") {
					return fmt.Sprintf("T1 deleted row 1 and then read %s", texts(o.rows("own")))
				}
				return ""
			},
		},
		{
			Anomaly: Internal, Variant: "a row that was read, updated and read again", Own: true,
			Steps: []Step{
				t1.read(2).as("first"), t2.write(2, 25), t2.commit(), t1.add(2, 10), t1.read(2).as("again"), t1.commit(),
			},
			seen: func(o *observed) string {
				if o.committed(1, 2) && o.saw("first", Row{2, 20}) && o.saw("again", Row{2, 35}) {
					return "T1 read 2=20, added 10 to row 2 and read 2=35, in which T2's 25 is"
				}
				return ""
			},
		},
		readAgain("a row that was read, by key"),
		readAgain("a row that was read, after a write of another, by key", t1.write(2, 21)),
	}
	for _, index := range []bool{true, false} {
		list = append(list, ownRow(index), ownMove(index))
	}
	return list
}

// missed returns what is seen if the step of the label own did not bring a row that the step of
// the label write had written. A session on a node that is behind may have found no row to write.
func missed(row Row, wrote string) func(o *observed) string {
	return func(o *observed) string {
		if o.committed(1) && o.wrote("write") && o.did("own") && !o.saw("own", row) {
			return fmt.Sprintf("%s %s and then read %s", wrote, row, texts(o.rows("own")))
		}
		return ""
	}
}

// readAgain is the fuzzy read, P2 of Berenson and others, with steps before the second read.
func readAgain(variant string, between ...Step) Schedule {
	steps := []Step{t1.read(1).as("first"), t2.write(1, 12), t2.commit()}
	steps = append(steps, between...)
	return Schedule{
		Anomaly: Internal, Variant: variant,
		Steps: append(steps, t1.read(1).as("again"), t1.commit()),
		seen: func(o *observed) string {
			if o.committed(1, 2) && o.saw("first", Row{1, 10}) && o.saw("again", Row{1, 12}) {
				return "T1 read 1=10 and then 1=12, which T2 had committed meanwhile"
			}
			return ""
		},
	}
}

func ownRow(index bool) Schedule {
	return Schedule{
		Anomaly: Internal, Variant: "own insertion, " + byAmount(index), Index: index, Every: true, Own: true,
		Steps: []Step{
			t1.find(30, 60), t1.insert(3, 30).as("write"), t2.insert(4, 42), t2.commit(),
			t1.find(30, 60).as("own"), t1.commit(),
		},
		seen: missed(Row{3, 30}, "T1 inserted"),
	}
}

// ownMove moves a row from one predicate to another.
func ownMove(index bool) Schedule {
	return Schedule{
		Anomaly: Internal, Variant: "own update, " + byAmount(index), Index: index, Every: true, Own: true,
		Steps: []Step{
			t1.find(0, 200), t1.addWhere(10, 11, 90).as("write"), t2.insert(3, 30), t2.commit(),
			t1.find(0, 200).as("own"), t1.commit(),
		},
		seen: missed(Row{1, 100}, "T1 added 90 to 1=10, which makes"),
	}
}
