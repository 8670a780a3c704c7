package schedule

import "fmt"

// three are the rows of a schedule that needs one more than initial has.
func three() []Row { return []Row{{1, 10}, {2, 20}, {3, 30}} }

// betweenReads returns the schedules of a transaction that writes or locks between its reads. It
// has a snapshot. Then its write, or its locking read, meets a row that another transaction has
// changed meanwhile, and it reads a further row of that transaction.
//
// Such a transaction sees one write of another and not the next. That is what monotonic atomic
// view forbids, and the analysis of MySQL 8.0.34 found it at REPEATABLE READ (Alvaro and
// Kingsbury, https://jepsen.io/analyses/mysql-8.0.34).
func betweenReads() (list []Schedule) {
	list = append(list, Schedule{
		Anomaly: OTV, Variant: "a reader that updates a row, by key", Own: true, Start: three(),
		Steps: []Step{
			t1.read(1), t2.write(2, 25), t2.write(3, 35), t2.commit(),
			t1.add(2, 10), t1.read(2).as("second"), t1.read(3).as("third"), t1.commit(),
		},
		seen: func(o *observed) string {
			if o.committed(1, 2) && o.saw("second", Row{2, 35}) && o.saw("third", Row{3, 30}) {
				return "T1 added 10 to row 2 and read 2=35, in which T2's 25 is, and then read 3=30, from before T2"
			}
			return ""
		},
	})
	for _, index := range []bool{true, false} {
		list = append(list, updatingReader(index), phantomReader(index), deletingReader(index))
		for _, lock := range locks {
			list = append(list, lockingReader(lock, index))
		}
	}
	return list
}

// byAmount names how a predicate is evaluated.
func byAmount(index bool) string {
	if index {
		return byIndex
	}
	return byScan
}

func updatingReader(index bool) Schedule {
	return Schedule{
		Anomaly: OTV, Variant: "a reader that updates, " + byAmount(index), Index: index, Own: true, Start: three(),
		Steps: []Step{
			t1.read(1), t2.write(2, 25), t2.write(3, 35), t2.commit(),
			t1.addWhere(25, 26, 10), t1.find(0, 100).as("all"), t1.commit(),
		},
		seen: func(o *observed) string {
			if o.committed(1, 2) && o.saw("all", Row{2, 35}) && o.saw("all", Row{3, 30}) {
				return "T1 updated row 2 because T2 had set it to 25, and then read 3=30, from before T2"
			}
			return ""
		},
	}
}

// phantomReader updates a row that another transaction inserted.
func phantomReader(index bool) Schedule {
	return Schedule{
		Anomaly: OTV, Variant: "a reader that updates an inserted row, " + byAmount(index), Index: index, Own: true,
		Steps: []Step{
			t1.read(2), t2.insert(3, 30), t2.write(1, 12), t2.commit(),
			t1.addWhere(30, 31, 10), t1.find(0, 100).as("all"), t1.commit(),
		},
		seen: func(o *observed) string {
			if o.committed(1, 2) && o.saw("all", Row{3, 40}) && o.saw("all", Row{1, 10}) {
				return "T1 updated row 3, which T2 had inserted, and then read 1=10, from before T2"
			}
			return ""
		},
	}
}

func deletingReader(index bool) Schedule {
	return Schedule{
		Anomaly: OTV, Variant: "a reader that deletes, " + byAmount(index), Index: index, Start: three(),
		Steps: []Step{
			t1.read(1), t2.write(2, 25), t2.write(3, 35), t2.commit(),
			t1.deleteWhere(25).as("deleted"), t1.read(3).as("third"), t1.commit(),
		},
		seen: func(o *observed) string {
			if o.committed(1, 2) && o.affected("deleted", 1) && o.saw("third", Row{3, 30}) {
				return "T1 deleted row 2 because T2 had set it to 25, and then read 3=30, from before T2"
			}
			return ""
		},
	}
}

// lock is a way to lock what is read.
type lock struct {
	kind Kind
	name string
}

var locks = []lock{{FindUpdate, "for update"}, {FindShare, "for share"}}

func (t tx) findLocked(l lock, low, high int64) Step {
	return t.do(Operation{Kind: l.kind, Low: low, High: high})
}

func lockingReader(l lock, index bool) Schedule {
	return Schedule{
		Anomaly: OTV, Variant: fmt.Sprintf("a reader that locks %s, %s", l.name, byAmount(index)), Index: index,
		Start: three(),
		Steps: []Step{
			t1.read(1), t2.write(2, 25), t2.write(3, 35), t2.commit(),
			t1.findLocked(l, 25, 26).as("locked"), t1.read(3).as("third"), t1.commit(),
		},
		seen: func(o *observed) string {
			if o.committed(1, 2) && o.saw("locked", Row{2, 25}) && o.saw("third", Row{3, 30}) {
				return fmt.Sprintf("T1 read 2=25 of T2 %s, and then read 3=30, from before T2", l.name)
			}
			return ""
		},
	}
}
