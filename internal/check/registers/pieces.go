package registers

import (
	"cmp"
	"math/bits"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// A value is described by whose bytes stand where, and of all descriptions the
// cheapest is taken. One byte that nobody wrote there costs 1, and a piece that somebody wrote
// pieceCost, so that a shorter one, which may be equal by chance, is nobody's.
const pieceCost = 8

// mostCompared bounds the bytes of all writes with which one value is compared.
const mostCompared = 1 << 22

// nobodys is the source of bytes that no source has where they stand.
const nobodys = -1

// stretch is a part of a value, from the byte from to the one before to, and the source that
// has these bytes in the same place.
type stretch struct{ from, to, source int }

// stretches describes a value by its sources as cheaply as can be, where a piece costs so
// much. Where a piece may begin at several places it begins at the one that is divisible by
// the greatest power of two, because memory is copied by words, lines and pages.
func stretches(value []byte, sources [][]byte, perPiece int) []stretch {
	type way struct{ cost, from, source int }
	const never = 1 << 40
	best := make([]way, len(value)+1) // the last stretch of the cheapest description up to each byte
	ways := make([]way, len(sources)) // those that end with a source
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

// align moves the places where one source's stretch follows another's.
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

// brokenAt is where a broken value was found, and by whom.
type brokenAt struct {
	by history.ID
	n  uint64
}

// keepBroken keeps the bytes of the broken values of a reading until they are judged.
func (v *viewer) keepBroken(r *reading) {
	if v.k.in.Value == nil || v.k.in.Part {
		return // in a part of a history not all writes are known
	}
	r.EachBroken(func(op *history.Op, value []byte) {
		if v.broken == nil {
			v.broken = map[brokenAt][]byte{}
		}
		v.broken[brokenAt{r.ID, op.Object}] = slices.Clone(value)
	})
}

// judgeBroken reports a broken value, and whose bytes stand where in it.
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

// pieces says whose bytes stand where in a broken value, and with how many values of the
// record it was compared: those that may have been there when it was read, the latest first.
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
