package graph

import "stroppy/internal/check"

// TimesOf returns the times of the transactions in the order. The times of each history are exact. Histories on
// one clock have common times too, with the latest possible ends and the earliest possible beginnings.
// Different clocks are not compared. A transaction without a reply has no end.
func TimesOf(e *check.Evidence) []Times {
	list := []Times{timesOf(e, func(source uint16) (group uint32, clock check.Clock, ok bool) {
		return uint32(source), check.Clock{}, true
	})}
	on, first := map[string]int{}, map[string]uint32{}
	shared := false
	for source, c := range e.Clocks {
		if on[c.ID]++; on[c.ID] == 1 {
			first[c.ID] = uint32(source)
		}
		shared = shared || on[c.ID] > 1
	}
	if shared {
		list = append(list, timesOf(e, func(source uint16) (group uint32, clock check.Clock, ok bool) {
			clock = e.Clocks[source]
			return first[clock.ID], clock, on[clock.ID] > 1
		}))
	}
	return list
}

// timesOf returns the times of the sources in groups, shifted by their clocks.
func timesOf(e *check.Evidence, group func(source uint16) (group uint32, clock check.Clock, ok bool)) Times {
	times := Times{Begin: make([]int64, len(e.Txns.List)), End: make([]int64, len(e.Txns.List))}
	if len(e.Clocks) > 1 {
		times.Group = make([]uint32, len(e.Txns.List))
	}
	for i := range e.Txns.List {
		t := &e.Txns.List[i]
		times.Begin[i], times.End[i] = -Never, Never
		if t.Source == check.FromLedger || !t.Counts() {
			continue
		}
		of, clock, ok := group(t.Source)
		if !ok {
			continue
		}
		if times.Begin[i] = t.Try + clock.From; t.Answered() {
			times.End[i] = t.End + clock.To
		}
		if times.Group != nil {
			times.Group[i] = of
		}
	}
	return times
}

// DoubtOf counts the cases in which real time may contradict the order within the clock errors.
func (g *Graph) DoubtOf(e *check.Evidence) check.Doubt {
	if e.Uncertainty() == 0 {
		return check.Doubt{}
	}
	middle := timesOf(e, func(source uint16) (group uint32, clock check.Clock, ok bool) {
		clock = e.Clocks[source]
		clock.From, clock.To = clock.Middle(), clock.Middle()
		return uint32(source), clock, true
	})
	t := Uncertain{Begin: middle.Begin, End: middle.End, Group: middle.Group}
	for _, c := range e.Clocks {
		t.Error = append(t.Error, c.Error())
	}
	return g.Doubt(t)
}
