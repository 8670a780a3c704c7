package registers

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// costOf returns the cost of a description by the definition.
func costOf(list []stretch, perPiece int) (cost int) {
	for _, s := range list {
		if s.source == nobodys {
			cost += s.to - s.from
		} else {
			cost += perPiece
		}
	}
	return cost
}

// cheapest tries all descriptions.
func cheapest(value []byte, sources [][]byte, perPiece, from, last int) int {
	if from == len(value) {
		return 0
	}
	best := 1 + cheapest(value, sources, perPiece, from+1, nobodys)
	for s, source := range sources {
		if from >= len(source) || source[from] != value[from] {
			continue
		}
		cost := cheapest(value, sources, perPiece, from+1, s)
		if s != last {
			cost += perPiece
		}
		best = min(best, cost)
	}
	return best
}

// TestStretchesAreTheCheapest compares with all descriptions of short values. A description must cover the
// value once, be correct, and be as cheap as possible.
func TestStretchesAreTheCheapest(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 7))
	text := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abc"[rng.IntN(3)]
		}
		return b
	}
	for range 4000 {
		value, sources := text(1+rng.IntN(8)), make([][]byte, rng.IntN(4))
		for s := range sources {
			sources[s] = text(rng.IntN(9))
		}
		if len(sources) > 1 && rng.IntN(2) == 0 { // like a torn read
			at := rng.IntN(min(len(value), len(sources[0]), len(sources[1])) + 1)
			copy(value, sources[0][:at])
			copy(value[at:], sources[1][min(at, len(sources[1])):])
		}
		perPiece := 1 + rng.IntN(3)
		list, at := stretches(value, sources, perPiece), 0
		for i, s := range list {
			if s.from != at || s.to <= s.from || i > 0 && list[i-1].source == s.source {
				t.Fatalf("%q of %q is %+v", value, sources, list)
			}
			at = s.to
			if s.source != nobodys && (s.to > len(sources[s.source]) || string(sources[s.source][s.from:s.to]) != string(value[s.from:s.to])) {
				t.Fatalf("%q of %q is %+v, which is not so from %d on", value, sources, list, s.from)
			}
		}
		if at != len(value) {
			t.Fatalf("%q of %q is %+v", value, sources, list)
		}
		if got, want := costOf(list, perPiece), cheapest(value, sources, perPiece, 0, nobodys); got != want {
			t.Fatalf("%q of %q at %d a piece is %+v, which costs %d and not %d", value, sources, perPiece, list, got, want)
		}
	}
}

// TestPiecesBeginWhereMemoryDoes checks that an ambiguous border is placed at the position divisible by the
// greatest power of two.
func TestPiecesBeginWhereMemoryDoes(t *testing.T) {
	head, tail := []byte(strings.Repeat("a", 128)), []byte(strings.Repeat("b", 128))
	for i := 60; i < 70; i++ {
		head[i], tail[i] = 'c', 'c'
	}
	value := append(slices.Clone(head[:66]), tail[66:]...)
	want := []stretch{{0, 64, 0}, {64, 128, 1}}
	if got := stretches(value, [][]byte{head, tail}, pieceCost); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// valueOf returns 64 bytes that are unique to a transaction.
func valueOf(b []byte, n uint64, writer, previous history.ID) []byte {
	rng := rand.New(rand.NewPCG(n, uint64(writer)))
	for range 64 {
		b = append(b, byte(rng.IntN(256)))
	}
	return b
}

func pieceOf(from, to int, known bool, writer history.ID) check.Piece {
	return check.Piece{From: from, To: to, Known: known, Writer: writer}
}

// TestBrokenValuesNameTheirWriters uses a value with bytes of two writes and of no write.
func TestBrokenValuesNameTheirWriters(t *testing.T) {
	s := newStore(2)
	first := s.do(kindPut, 0, 0).ID
	second := s.do(kindPut, 0, 0).ID
	read := s.do(kindGet, 0, 0)
	s.do(kindPut, 0, 0) // which began after the read
	value := valueOf(nil, 0, first, 0)
	copy(value[16:40], valueOf(nil, 0, second, 0)[16:])
	value[50] ^= 1
	reader := read.ID
	read.Ops[0].State, read.Broken = history.Broken, value
	in := s.input()
	in.Value = valueOf
	var reported []check.Violation
	in.OnViolation = func(v check.Violation) { reported = append(reported, v) }
	results, err := Check(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	r := checktest.ByName(results)[Values]
	want := []check.Piece{pieceOf(0, 15, true, first), pieceOf(16, 39, true, second), pieceOf(40, 49, true, first), pieceOf(50, 50, false, 0), pieceOf(51, 63, true, first)}
	f := r.Findings[0]
	if len(f.Broken) != 1 || f.Broken[0].Transaction != reader || f.Broken[0].Bytes != 64 || !slices.Equal(f.Broken[0].Pieces, want) {
		t.Errorf("%+v", f.Broken)
	}
	stated := fact.RegisterDamagedValue{Reader: fact.Member{ID: reader}, Object: "key 0", Bytes: 64, Pieces: want, Compared: 3}
	if !reflect.DeepEqual(f.Instances, []fact.Fact{stated}) {
		t.Errorf("%+v", f.Instances)
	}
	if !slices.Equal(r.Witness, []history.ID{reader, first, second}) {
		t.Error(r.Witness)
	}
	if len(reported) == 0 || !slices.Equal(reported[0].Pieces, want) {
		t.Errorf("%+v", reported)
	}
}

// TestBrokenValueOfTheLoad covers a value without later writes, and a value whose bytes were not kept.
func TestBrokenValueOfTheLoad(t *testing.T) {
	s := newStore(2)
	for range 2 {
		s.do(kindGet, 1, 0).Ops[0].State = history.Broken
	}
	s.Txns[0].Broken = valueOf(nil, 1, 0, 0)
	s.Txns[0].Broken[0] ^= 1
	in := s.input()
	in.Value = valueOf
	results, err := Check(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	r := checktest.ByName(results)[Values]
	want := []check.Piece{pieceOf(0, 0, false, 0), pieceOf(1, 63, true, 0)}
	if f := r.Findings[0]; f.Count != 2 || len(f.Broken) != 1 || !slices.Equal(f.Broken[0].Pieces, want) {
		t.Errorf("%+v", f)
	}
}
