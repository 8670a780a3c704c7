package schedule

import (
	"fmt"
	"slices"
)

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
