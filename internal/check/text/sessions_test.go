package text

import (
	"reflect"
	"testing"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

func TestSessionClauses(t *testing.T) {
	one, two, three := fact.Member{ID: 1, Name: "T1"}, fact.Member{ID: 2, Name: "T2"}, fact.Member{ID: 3, Name: "T3"}
	const x, y = fact.Object("register x"), fact.Object("register y")
	replaced := fact.SessionReplaced{First: one, Second: two, Object: x, Value: "1", Made: "2"}
	overwrote := fact.SessionOverwrote{Reader: two, Writer: one, Object: y, Value: "nil", Made: "3"}
	cycle := fact.SessionCycle{By: one, Length: 2, Why: []fact.Fact{replaced, overwrote}}
	const cycleText = "T1 wrote 1 to register x, and T2 wrote 2 over it; T2 read nil from register y, and T1 wrote 3 over it. So each must come before the other"
	clauses := []clause{
		{fact.SessionRead{Reader: one, Object: x, Value: "7", Wrong: fact.ThinAir}, "T1 read 7 from register x, which nobody wrote"},
		{fact.SessionRead{Reader: one, Object: x, Value: "7", Wrong: fact.OfAborted},
			"T1 read 7 from register x, which only an aborted transaction wrote"},
		{fact.SessionRead{Reader: one, Object: x, Value: "7", Wrong: fact.Intermediate, Writer: &two},
			"T1 read 7 from register x, which T2 overwrote before it committed"},
		{fact.SessionRead{Reader: one, Object: x, Value: "7", Wrong: fact.FutureOwn},
			"T1 read 7 from register x before it wrote that value itself"},
		{fact.SessionRead{Reader: one, Object: x, Value: "7", Wrong: fact.OwnMissed, Own: "8"},
			"T1 read 7 from register x after it had written 8 there itself"},
		{fact.SessionMissed{Reader: two, Object: x, Value: "nil", Missed: "1", By: one, AlsoObject: y, AlsoValue: "4", Length: 2},
			"T2 read nil from register x (which nobody wrote) and missed 1 (written by T1), although it also read 4 of T1 from register y"},
		{fact.SessionMissed{Reader: two, Object: x, Value: "5", Writer: &three, Missed: "1", By: one, Session: true},
			"T2 read 5 from register x (written by T3) and missed 1 (written by T1), although T1 comes before T2 in their session"},
		{fact.SessionMissed{Reader: two, Object: x, Value: "5", Writer: &three, Missed: "1", By: one, Length: 3},
			"T2 read 5 from register x (written by T3) and missed 1 (written by T1), although T1 comes before T2 through the reads of others; this leads to a cycle of 3 transactions"},
		{fact.SessionCircle{By: one}, "T1 must come before itself, by its reads"},
		{fact.SessionCircle{By: one, Order: fact.OfSessions}, "T1 must come before itself, by its reads and the order of sessions"},
		{fact.SessionCircle{By: one, Order: fact.OfRealTime}, "T1 must come before itself, by its reads and real time"},
		{fact.SessionLostUpdate{First: one, Second: two, Object: x, Value: "nil"}, "T1 and T2 both read nil from register x and wrote it"},
		{cycle, cycleText},
		{fact.SessionCycle{By: one, Length: 4}, "T1 must come before itself, through 4 dependencies"},
		{fact.SessionEitherOrder{Cycle: cycle, Object: x, Earlier: "5", Later: "6"}, cycleText},
		{fact.SessionEitherOrder{Cycle: cycle, Object: x, Earlier: "value 5", Later: "6", Forced: true, More: 1, Otherwise: []fact.Fact{
			fact.SessionReadOf{Writer: one, Reader: two, Object: x, Value: "1"}, replaced}},
			cycleText + ". Value 5 was written to register x before 6, because otherwise: T2 read 1 of T1 from register x; T1 wrote 1 to register x, and T2 wrote 2 over it. The order of 1 more pair of writes changes nothing"},
		{fact.SessionEitherOrder{Cycle: cycle, Object: x, Earlier: "5", Later: "6", Otherwise: []fact.Fact{overwrote}},
			cycleText + ". This follows if 5 was written to register x before 6. Otherwise: T2 read nil from register y, and T1 wrote 3 over it"},
		{fact.SessionNoOrder{Pairs: 40}, "every order of 40 pairs of writes leads to a cycle"},
		{fact.SessionInitial{Second: one}, "the initial state comes before T1"},
		{fact.SessionTime{First: one, Second: two, Order: fact.OfSessions}, "T1 comes before T2 in their session"},
		{fact.SessionTime{First: one, Second: two, Order: fact.OfRealTime}, "T1 ended before T2 began"},
		{fact.SessionTime{First: one, Second: two, Order: fact.OfRealTime, Apart: 5 * time.Microsecond}, "T1 ended 5 µs before T2 began"},
		{fact.SessionReadOf{Writer: one, Reader: two, Object: x, Value: "1"}, "T2 read 1 of T1 from register x"},
		{overwrote, "T2 read nil from register y, and T1 wrote 3 over it"},
		{replaced, "T1 wrote 1 to register x, and T2 wrote 2 over it"},
		{fact.SessionBefore{First: one, Second: two}, "T1 comes before T2"},
		{fact.SessionHolds{Level: "causal"}, "the transactions have an order that causal allows"},
		{fact.SessionBroken{At: "causal"}, "broken by what breaks causal"},
		{fact.SessionBroken{Anomaly: "lost update (P4)", At: "causal"}, "broken by the lost update (P4) at causal"},
		{fact.SessionWritesOpen{},
			"the reads do not show the order of some writes, and the search for an order reached its bound"},
		{fact.SessionNoTimes{}, "the history has no start and end times of transactions"},
	}
	wantClauses(t, Speaker{check.Words{One: "transaction"}}, clauses)
	tested := map[string]bool{}
	for _, c := range clauses {
		tested[reflect.TypeOf(c.fact).Name()] = true
	}
	wantTested(t, "sessions.go", tested)
}
