package elle

import (
	"cmp"
	"fmt"
	"slices"

	"stroppy/internal/check/lists"
	"stroppy/internal/history"
)

// Registers are checked as lists. A transaction that read a value of a register, or wrote it,
// and then wrote another has put the other behind it, and nothing else says what was
// overwritten. So each register falls into pieces, in which each value stands right behind
// one that its writer had read; a piece is a list, a write appends to it, and to read a value
// is to read the list up to there. A register of one piece is known wholly. Of several it
// is not known which piece was first, so that a violation is one all the same and no
// history with such a register is called valid.
//
// What nobody wrote is before everything: who reads nil has read all pieces as empty. Of two
// that read the same value and overwrote it, the second begins a piece, and whoever read the
// value has read that piece as empty. One of the two has lost its update, whichever was first,
// which a list says that is appended to by all who did that, and read by none.

type place struct{ key, value uint64 }

// pieces are the registers of a history.
type pieces struct {
	*History
	first    map[place]uint64    // the list that a value is in
	before   map[place][]uint64  // the values of its list up to it
	of       map[uint64][]uint64 // the lists of a register
	branches map[place][]uint64  // the lists that begin behind a value, or behind nil of value absent
	races    map[place]uint64    // the list of all that was written behind a value, if that is more than one
	follower map[place]uint64    // the value that stands right behind one
	lists    uint64
	register []uint64 // by list
}

// absent is the value of what nobody has written.
const absent = ^uint64(0)

// registers makes lists of the registers.
func (h *History) registers() {
	h.Register = true
	p := &pieces{
		History: h, first: map[place]uint64{}, before: map[place][]uint64{}, of: map[uint64][]uint64{},
		branches: map[place][]uint64{}, races: map[place]uint64{}, follower: map[place]uint64{},
	}
	behind := p.order()
	for _, aborted := range []bool{false, true} { // an aborted one takes the place of no other
		for i := range h.Transactions {
			if (h.Transactions[i].Outcome == history.Aborted) != aborted {
				continue
			}
			for _, op := range h.Transactions[i].Ops {
				if op.Kind == lists.Append {
					p.put(place{op.Key, op.Element}, behind, 0)
				}
			}
		}
	}
	p.findRaces(behind)
	for i := range h.Transactions {
		p.rewrite(&h.Transactions[i], behind)
	}
	h.register = p.register
	if key, ok := p.several(); ok {
		h.Undecided = fmt.Sprintf("in which order the values of register %s were written does not follow from what was read", h.name(key))
	}
}

// several returns the least register of which not all values that were written, or may have
// been, are in one piece.
func (p *pieces) several() (key uint64, found bool) {
	written := map[uint64]bool{}
	for i := range p.Transactions {
		for _, op := range p.Transactions[i].Ops {
			if op.Kind == lists.Append && p.Transactions[i].Outcome != history.Aborted {
				written[op.Key] = true
			}
		}
	}
	for k, of := range p.of {
		count := 0
		for _, list := range of {
			if written[list] {
				count++
			}
		}
		if count > 1 && (!found || k < key) {
			key, found = k, true
		}
	}
	return key, found
}

// order finds the value behind which each value was written, where its writer knew one.
func (p *pieces) order() map[place]uint64 {
	behind := map[place]uint64{}
	for i := range p.Transactions {
		knows := map[uint64]uint64{}
		for _, op := range p.Transactions[i].Ops {
			switch {
			case op.Kind == lists.Append:
				if v, ok := knows[op.Key]; ok {
					behind[place{op.Key, op.Element}] = v
				}
				knows[op.Key] = op.Element
			case op.Known && len(op.List) == 0:
				knows[op.Key] = absent
			case op.Known:
				knows[op.Key] = op.List[0]
			}
		}
	}
	return behind
}

// put gives a value its place, after the one behind which it was written.
func (p *pieces) put(at place, behind map[place]uint64, depth int) {
	if _, done := p.first[at]; done {
		return
	}
	previous, known := behind[at]
	from := place{at.key, previous}
	_, taken := p.follower[from]
	if known && previous != absent && !taken && depth < len(behind) {
		if _, written := p.first[from]; !written {
			if _, later := behind[from]; later {
				p.put(from, behind, depth+1)
			}
		}
	}
	list, placed := p.first[from]
	if known && !taken && (placed || previous == absent) {
		p.follower[from] = at.value
		if previous == absent {
			list = p.begin(at.key)
		}
		p.first[at] = list
		p.before[at] = append(slices.Clone(p.before[from]), at.value)
		return
	}
	list = p.begin(at.key)
	p.first[at], p.before[at] = list, []uint64{at.value}
	if known {
		p.branches[from] = append(p.branches[from], list)
	}
}

// findRaces makes a list for each value behind which several were written.
func (p *pieces) findRaces(behind map[place]uint64) {
	count := map[place]int{}
	var several []place
	for at, previous := range behind {
		from := place{at.key, previous}
		if count[from]++; count[from] == 2 {
			several = append(several, from)
		}
	}
	slices.SortFunc(several, func(a, b place) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value)) })
	for _, from := range several {
		p.races[from] = p.lists
		p.lists++
		p.register = append(p.register, from.key)
	}
}

func (p *pieces) begin(key uint64) uint64 {
	list := p.lists
	p.lists++
	p.register = append(p.register, key)
	p.of[key] = append(p.of[key], list)
	return list
}

// rewrite makes operations on lists of those on registers.
func (p *pieces) rewrite(t *lists.Transaction, behind map[place]uint64) {
	var ops []lists.Op
	for _, op := range t.Ops {
		switch {
		case op.Kind == lists.Append:
			key, at := op.Key, place{op.Key, op.Element}
			op.Key = p.first[at]
			ops = append(ops, op)
			if previous, known := behind[at]; known {
				if race, ok := p.races[place{key, previous}]; ok {
					op.Key = race
					ops = append(ops, op)
				}
			}
		case !op.Known:
		case len(op.List) == 0:
			for _, list := range p.of[op.Key] {
				ops = append(ops, lists.Op{Kind: lists.Read, Known: true, Key: list})
			}
			if race, ok := p.races[place{op.Key, absent}]; ok {
				ops = append(ops, lists.Op{Kind: lists.Read, Known: true, Key: race})
			}
		default:
			at := place{op.Key, op.List[0]}
			if _, written := p.first[at]; !written {
				p.first[at], p.before[at] = p.begin(op.Key), []uint64{at.value}
			}
			ops = append(ops, lists.Op{Kind: lists.Read, Known: true, Key: p.first[at], List: p.before[at]})
			for _, list := range p.branches[at] {
				ops = append(ops, lists.Op{Kind: lists.Read, Known: true, Key: list})
			}
			if race, ok := p.races[at]; ok {
				ops = append(ops, lists.Op{Kind: lists.Read, Known: true, Key: race})
			}
		}
	}
	t.Ops = ops
}

func sortByLine(list []*operation) {
	slices.SortFunc(list, func(a, b *operation) int { return cmp.Compare(a.line, b.line) })
}
