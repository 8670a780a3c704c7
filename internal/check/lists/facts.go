package lists

import (
	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// mostElements limits the elements of a list in a fact.
const mostElements = 12

// bits is a set of transactions.
type bits []uint64

func (b *bits) set(n uint32) {
	for int(n/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b bits) has(n uint32) bool { return int(n/64) < len(b) && b[n/64]>>(n%64)&1 != 0 }

// member returns a transaction for use in a fact; None becomes the zero member.
func (c *checker) member(t uint32) fact.Member {
	if t == check.None {
		return fact.Member{}
	}
	m := fact.Member{ID: c.idOf(t)}
	if c.Who != nil {
		m.Name = c.Who(m.ID)
	}
	return m
}

func (c *checker) pair(first, second uint32) fact.ListPair {
	return fact.ListPair{First: c.member(first), Second: c.member(second)}
}

// on returns the name of a list.
func (c *checker) on(list uint32) fact.Object { return fact.Object(c.List(c.keys.key[list])) }

// name returns the name of an element.
func (c *checker) name(list uint32, element uint64) fact.Element {
	if element == Missing {
		return ""
	}
	return fact.Element(c.Element(c.keys.key[list], element))
}

// appendedBy returns the name of an append's element.
func (c *checker) appendedBy(op uint32) fact.Element {
	return c.name(c.opList[op]&^opKinds, c.elementOf(c.ownerOf(op), op))
}

// elementAt returns the name of the element that made a version of a list.
func (c *checker) elementAt(list, version uint32) fact.Element {
	return c.name(list, c.elementIn(list, version))
}

// elements returns the last elements of a list.
func (c *checker) elements(list uint32, all []uint64) fact.Elements {
	last := all[max(0, len(all)-mostElements):]
	e := fact.Elements{Length: len(all), Last: make([]fact.Element, len(last))}
	for i := range last {
		e.Last[i] = c.name(list, last[i])
	}
	return e
}

// version returns the elements of a version of a list, and none for nowhere.
func (c *checker) version(list, version uint32) fact.Elements {
	if version == nowhere {
		return c.elements(list, nil)
	}
	return c.elements(list, c.content(list, version))
}

// readAt returns the result of reading a list, as recorded by the reader.
func (c *checker) readAt(op, list uint32) fact.Elements {
	if read := c.partial[op]; read != nil {
		return c.elements(list, read)
	}
	return c.version(list, c.arg.at(op))
}

// inTheEnd returns the elements of a list in the end state.
func (c *checker) inTheEnd(list uint32) fact.Elements {
	if end, strange := c.strange[list]; strange {
		return c.elements(list, end)
	}
	return c.version(list, c.final[list])
}

// fact converts a finding to a fact.
func (c *checker) fact(kind int, f finding) fact.Fact {
	on := c.on(f.list)
	read := func() fact.ListRead {
		r := fact.ListRead{Reader: c.member(f.t), On: on}
		if f.op != check.None {
			r.Read = c.readAt(f.op, f.list)
		}
		return r
	}
	switch kind {
	case garbage:
		return fact.ListGarbage{ListRead: read(), Element: c.elementAt(f.list, f.at)}
	case duplicate, takenBack:
		return fact.ListDuplicate{On: on, Element: c.elementAt(f.list, f.at), Known: c.version(f.list, f.at), TakenBack: kind == takenBack}
	case disorder:
		known := c.version(f.list, c.arg.at(f.op))
		if c.trees[f.list] == nil {
			known = c.version(f.list, c.length(f.list))
		}
		return fact.ListDisorder{By: c.member(f.t), On: on, Element: c.appendedBy(f.op), Known: known}
	case incompatible:
		return c.contradiction(f)
	case twice:
		return fact.ListAppendedTwice{First: c.member(f.other), Second: c.member(f.t), On: on, Element: c.elementAt(f.list, f.at)}
	case aborted:
		return fact.ListAborted{ListRead: read(), Writer: c.member(f.other), Element: c.elementAt(f.list, f.at)}
	case dirtyUpdate:
		return fact.ListDirtyAppend{By: c.member(f.t), On: on, Element: c.elementAt(f.list, f.at), Writer: c.member(f.other),
			Behind: c.elementAt(f.list, f.behind), Elsewhere: c.counts(f.other)}
	case gap:
		return fact.ListHole{By: c.member(f.t), On: on, Element: c.elementAt(f.list, f.at), Place: int(f.at)}
	case halfway:
		return fact.ListHalfway{ListRead: read(), Writer: c.member(f.other)}
	case future:
		return fact.ListFuture{ListRead: read(), Element: c.appendedBy(f.append)}
	case internal:
		return fact.ListOwnMissing{ListRead: read(), Element: c.appendedBy(f.append), Range: f.op == check.None}
	case vanished, fractured:
		seen := c.opList[f.seen] &^ opKinds
		return fact.ListPartSeen{ListRead: read(), Missing: c.appendedBy(f.append), Writer: c.member(f.other), SeenOn: c.on(seen), Seen: c.readAt(f.seen, seen), Later: kind == vanished}
	case lost:
		return fact.ListLost{By: c.member(f.t), On: on, Element: c.appendedBy(f.op), End: c.inTheEnd(f.list)}
	case ghost:
		return fact.ListGhost{By: c.member(f.t), Outcome: c.outcome(f.t), On: on, Element: c.appendedBy(f.op)}
	}
	return fact.ListForeign{On: on, End: c.elements(f.list, f.read), Element: c.name(f.list, f.read[len(f.read)-1])}
}

// contradiction returns the fact that a read contradicts another read or the writer's recording.
func (c *checker) contradiction(f finding) fact.Fact {
	r := fact.ListRead{Reader: c.member(f.t), On: c.on(f.list)}
	if f.other == check.None {
		r.Read = c.elements(f.list, f.read)
		if c.kept[f.list] == Pieces {
			return fact.ListOtherRow{ListRead: r, Place: int(f.at), Found: c.name(f.list, f.read[f.at-1]), Other: c.elementAt(f.list, f.at)}
		}
		return fact.ListContradiction{ListRead: r, Other: c.version(f.list, c.length(f.list))}
	}
	if f.op != check.None {
		r.Read = c.readAt(f.op, f.list)
	} else {
		r.Read = c.inTheEnd(f.list)
	}
	if from := c.baseVersion(f.other, f.list); from != nowhere {
		return fact.ListOtherBase{ListRead: r, Element: c.elementAt(f.list, f.at), Writer: c.member(f.other), Base: c.version(f.list, from), Retried: c.retried.has(f.other)}
	}
	return fact.ListContradiction{ListRead: r, Other: c.version(f.list, c.placeOf(f.other, f.list, c.elementIn(f.list, f.at)))}
}

// placeOf returns the version that a transaction made by appending an element.
func (c *checker) placeOf(t, list uint32, element uint64) uint32 {
	for op := c.row[t]; op < c.row[t+1]; op++ {
		if c.opList[op] == opAppend|list && c.elementOf(t, op) == element {
			return c.arg.at(op)
		}
	}
	return nowhere
}

// outcome returns the outcome of a transaction that its client learned.
func (c *checker) outcome(t uint32) history.Outcome { return history.Outcome(c.state[t] &^ observed) }
