package registers

import (
	"cmp"
	"math/bits"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// pieceCost is the cost of naming the writer of a piece of a value; a byte without a writer costs 1. The
// cheapest description wins, so a short piece, which may match by chance, gets no writer.
const pieceCost = 8

// mostCompared limits the total bytes of the writes that one value is compared with.
const mostCompared = 1 << 22

// nobodys is the source of bytes that no source has at that position.
const nobodys = -1

// stretch is the part value[from:to], with the source that has these bytes at the same position.
type stretch struct{ from, to, source int }

// stretches returns the cheapest description of a value by its sources, with the given cost of a piece. If a piece may
// begin at several positions, it begins at the one divisible by the greatest power of two. The reason is that memory is
// copied by words, lines and pages.
func stretches(value []byte, sources [][]byte, perPiece int) []stretch {
	type way struct{ cost, from, source int }
	const never = 1 << 40
	best := make([]way, len(value)+1) // by position: the last stretch of the cheapest description up to there
	ways := make([]way, len(sources)) // by source: the cheapest description that ends with it
	for s := range ways {
		ways[s] = way{never, 0, s}
	}
	for at, b := range value {
		here := way{best[at].cost + 1, at, nobodys}
		if at > 0 && best[at].source == nobodys {
			here.from = best[at].from
		}
		for s, source := range sources {
			w := &ways[s]
			switch begun := best[at].cost + perPiece; {
			case at >= len(source) || source[at] != b:
				w.cost = never
				continue
			case begun < w.cost:
				w.cost, w.from = begun, at
			}
			if w.cost <= here.cost {
				if here.source == nobodys || w.cost < here.cost {
					here = *w
				}
			}
		}
		best[at+1] = here
	}
	var list []stretch
	for to := len(value); to > 0; to = list[len(list)-1].from {
		list = append(list, stretch{best[to].from, to, best[to].source})
	}
	slices.Reverse(list)
	align(value, sources, list)
	return list
}

// align moves the borders between adjacent stretches.
func align(value []byte, sources [][]byte, list []stretch) {
	for i := 1; i < len(list); i++ {
		before, behind := &list[i-1], &list[i]
		if before.source == nobodys || behind.source == nobodys {
			continue
		}
		has := func(source, at int) bool {
			return at < len(sources[source]) && sources[source][at] == value[at]
		}
		low, high := behind.from, behind.from
		for low > before.from+1 && has(behind.source, low-1) {
			low--
		}
		for high < behind.to-1 && has(before.source, high) {
			high++
		}
		for at := low; at <= high; at++ {
			if bits.TrailingZeros(uint(at)) > bits.TrailingZeros(uint(behind.from)) || at == low {
				before.to, behind.from = at, at
			}
		}
	}
}

// brokenAt identifies a broken value by its position and reader.
type brokenAt struct {
	by history.ID
	n  uint64
}

// keepBroken keeps the bytes of a reading's broken values until they are judged.
func (v *viewer) keepBroken(r *reading) {
	if v.k.in.Value == nil || v.k.in.Part {
		return // in a part of a history, not all writes are known
	}
	r.EachBroken(func(op *history.Op, value []byte) {
		if v.broken == nil {
			v.broken = map[brokenAt][]byte{}
		}
		v.broken[brokenAt{r.ID, op.Object}] = slices.Clone(value)
	})
}

// judgeBroken reports a broken value with the writers of its pieces.
func (v *viewer) judgeBroken(s *seen) {
	k, at := v.k, brokenAt{s.by, s.n}
	value := v.broken[at]
	delete(v.broken, at)
	v.find(damaged, s.n, func() finding {
		what := fact.RegisterDamagedValue{Reader: k.reader(s), Object: k.Object(s.n), Bytes: s.bytes}
		if len(value) == 0 {
			return shows(what, s.by)
		}
		by := []history.ID{s.by}
		what.Pieces, what.Compared = k.pieces(s, value)
		for _, p := range what.Pieces {
			if p.Writer != 0 && !slices.Contains(by, p.Writer) {
				by = append(by, p.Writer)
			}
		}
		one := shows(what, by...)
		one.value = &check.BrokenValue{Transaction: s.by, Object: k.in.Name(s.n), Bytes: len(value), Pieces: what.Pieces}
		return one
	})
	v.at(damaged, s.ended)
}

// pieces returns the pieces of a broken value with their writers. compared is the number of values that it
// was compared with: those that may have been current at the time of the read, the latest first.
func (k *checker) pieces(s *seen, value []byte) (pieces []check.Piece, compared int) {
	before := write{n: s.n}
	writes := []*write{&before}
	if key := k.keyOf(s.n); key != nil {
		writes = k.appendWrites(nil, key)
	}
	began := func(w *write) int64 {
		if k.timed(w, s.group) {
			return w.try
		}
		return 0
	}
	writes = slices.DeleteFunc(writes, func(w *write) bool {
		return w.id == 0 && !k.loaded(s.n) || w.id != 0 && began(w) > s.ended
	})
	slices.SortStableFunc(writes, func(a, b *write) int { return cmp.Compare(began(b), began(a)) })
	writes = writes[:min(len(writes), max(1, mostCompared/len(value)))]
	sources := make([][]byte, len(writes))
	for i, w := range writes {
		sources[i] = k.in.Value(nil, s.n, w.id, w.previous)
	}
	for _, t := range stretches(value, sources, pieceCost) {
		p := check.Piece{From: t.from, To: t.to - 1}
		if p.Known = t.source != nobodys; p.Known {
			p.Writer = writes[t.source].id
		}
		pieces = append(pieces, p)
	}
	return pieces, len(writes)
}
