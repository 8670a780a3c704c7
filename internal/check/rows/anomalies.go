package rows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/graph"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
)

// mostWitnesses limits the described transactions of a long cycle.
const mostWitnesses = 4 * check.Shown

// anomalies returns the findings about the order, without and with real time.
func (c *checker) anomalies() (plain, realtime []check.Finding) {
	c.collect()
	lost := check.Finding{Check: check.Serializable, Anomaly: lostUpdateName, Forbidden: isolation.SnapshotIsolation}
	for _, s := range c.twice {
		if lost.Count == 0 {
			c.describe(&lost, s.object, s.version-1, s.first, s.second, graph.Rw)
		}
		c.find(&lost, s.second, c.Object(s.object), c.sameVersion(s), c.IDOf(s.first))
	}
	c.addLostUpdates(&lost, c.lost)
	for _, f := range append(c.odd[:], lost) {
		if f.Count > 0 {
			plain = append(plain, f)
		}
	}
	slices.SortStableFunc(c.cycles, func(a, b []graph.Step) int { return len(a) - len(b) })
	for _, steps := range c.cycles {
		if _, o, _ := graph.PhenomenonOf(steps); o == graph.Real {
			realtime = c.addCycle(realtime, check.Strict, steps)
		} else {
			plain = c.addCycle(plain, check.Serializable, steps)
		}
	}
	for _, list := range [][]check.Finding{plain, realtime} {
		slices.SortStableFunc(list, func(a, b check.Finding) int { return cmp.Compare(a.Forbidden, b.Forbidden) })
	}
	return plain, realtime
}

// addLostUpdates adds lost updates to a finding.
func (c *checker) addLostUpdates(f *check.Finding, list []lostUpdate) {
	for _, l := range list {
		if f.Count == 0 {
			c.describe(f, l.object, l.read, l.t, l.by, graph.Ww)
		}
		c.find(f, l.t, c.Object(l.object), c.lostUpdate(l), c.IDOf(l.by))
	}
}

// describe adds the edges of a lost update to a finding: by overwrote the version that t had read, and back.
func (c *checker) describe(f *check.Finding, object, read uint64, t, by uint32, back uint8) {
	there := fact.Dependency{
		From: c.member(t), To: c.member(by), Kind: check.ReadWrite.String(), Object: c.Object(object), Version: read,
	}
	then := there
	then.From, then.To, then.Kind = there.To, there.From, cycleKinds[back].String()
	versions := [2]uint64{read, read}
	if back == graph.Ww {
		then.Version, versions[1] = read+1, read+1
	}
	for i, why := range []fact.Dependency{there, then} {
		f.Cycle = append(f.Cycle, check.Edge{
			From: why.From.ID, To: why.To.ID, Kind: [...]check.EdgeKind{check.ReadWrite, cycleKinds[back]}[i],
			Object: c.NameInSentence(object), Why: why,
			FromVersion: versionText(versions[i]), ToVersion: versionText(versions[i] + 1),
		})
	}
	f.Spans = c.spans([]uint32{t, by}, []uint64{object})
}

func versionText(n uint64) string { return fmt.Sprintf("version %d", n) }

// addCycle adds a cycle to the finding of its anomaly. The first cycle of a kind is described.
func (c *checker) addCycle(list []check.Finding, name string, steps []graph.Step) []check.Finding {
	p, order, item := graph.PhenomenonOf(steps)
	anomaly := p.Name(order, item)
	at := slices.IndexFunc(list, func(f check.Finding) bool { return f.Anomaly == anomaly })
	if at < 0 {
		at = len(list)
		f := check.Finding{Check: name, Anomaly: anomaly, Forbidden: p.Forbidden(order, item)[0]}
		c.path(&f, steps)
		list = append(list, f)
	}
	f := &list[at]
	f.Count++
	f.AtLeast = f.AtLeast || c.more[p.Test().Level(order)]
	lost := false
	for _, s := range steps {
		lost = lost || c.lostWriters[s.From]
		if len(c.Input.History) == 1 {
			f.At(c.Txns.List[s.From].End)
		}
		c.Show(name, anomaly, c.IDOf(s.From), "", f.Instances[0])
	}
	if lost {
		f.OfLost++
	}
	return list
}

// path adds the edges of a cycle, its transactions and the witnesses to a finding.
func (c *checker) path(f *check.Finding, steps []graph.Step) {
	what := fact.Cycle{All: len(steps)}
	var members []uint32
	var objects []uint64
	for _, s := range steps[:min(len(steps), mostWitnesses)] {
		step := fact.Dependency{From: c.member(s.From), To: c.member(s.To), Kind: cycleKinds[s.Kind].String()}
		e := check.Edge{From: step.From.ID, To: step.To.ID, Kind: cycleKinds[s.Kind]}
		if s.Kind == graph.Rt {
			step.Apart = time.Duration(c.Between(s.From, s.To))
		} else if n, version, then, ok := c.meeting(s); ok {
			step.Object, step.Version = c.Object(n), version
			e.Object, e.FromVersion, e.ToVersion = c.NameInSentence(n), versionText(version), versionText(then)
			objects = append(objects, n)
			if !slices.Contains(f.Objects, step.Object) {
				f.Objects = append(f.Objects, step.Object)
			}
		}
		e.Why = step
		what.Steps = append(what.Steps, step)
		f.Cycle = append(f.Cycle, e)
		f.Transactions = append(f.Transactions, e.From)
		members = append(members, s.From)
	}
	f.Instances = []fact.Fact{what}
	f.Spans = c.spans(members, objects)
}

// meeting finds the row through which two transactions depend on each other, and the versions of the two.
func (c *checker) meeting(s graph.Step) (object, from, to uint64, ok bool) {
	for _, a := range c.did[s.From] {
		for _, b := range c.did[s.To] {
			near := !ok || b.version-a.version < to-from
			switch {
			case a.object != b.object:
			case s.Kind == graph.Wr && a.write && !b.write && b.version == a.version,
				s.Kind == graph.Ww && a.write && b.write && b.version > a.version && near,
				s.Kind == graph.Rw && !a.write && a.writer != c.IDOf(s.From) && b.write && b.version > a.version && near:
				object, from, to, ok = a.object, a.version, b.version, true
			}
		}
	}
	return object, from, to, ok
}

// collect keeps the operations of the transactions that are described.
func (c *checker) collect() {
	c.did = map[uint32][]op{}
	for _, steps := range c.cycles {
		for _, s := range steps[:min(len(steps), mostWitnesses)] {
			c.did[s.From], c.did[s.To] = nil, nil
		}
	}
	for _, s := range c.twice[:min(1, len(c.twice))] {
		c.did[s.first], c.did[s.second] = nil, nil
	}
	computed := slices.IndexFunc(c.lost, func(l lostUpdate) bool { return l.computed })
	for i, l := range c.lost {
		if i == 0 || i == computed {
			c.did[l.t], c.did[l.by] = nil, nil
		}
	}
	for _, o := range c.ops {
		if list, described := c.did[o.t]; described {
			c.did[o.t] = append(list, o)
		}
	}
}

// spans returns the transactions of an instance with their operations on its rows. Times of several runs are relative
// to the start of the first.
func (c *checker) spans(members []uint32, objects []uint64) []check.Span {
	var list []check.Span
	for _, t := range members {
		n, later := &c.Txns.List[t], int64(0)
		if clock, first := c.Clocks[n.Source], c.Clocks[0]; clock.ID == first.ID {
			later = clock.From - first.From
		}
		s := check.Span{ID: n.ID, Kind: c.member(t).Kind, Outcome: n.Outcome, Begin: n.Try + later, End: n.End + later}
		if s.Kind == "" {
			s.Kind = c.Words.One
		}
		if n.Outcome == history.Unknown {
			s.End = 0
		}
		for _, o := range c.did[t] {
			if slices.Contains(objects, o.object) {
				s.Did = append(s.Did, fact.RowOperation{
					Object: c.Object(o.object), Wrote: o.write, Version: o.version, Writer: o.writer,
				})
			}
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b check.Span) int { return cmp.Compare(a.Begin, b.Begin) })
	return list
}
