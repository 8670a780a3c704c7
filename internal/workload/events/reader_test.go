package events

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

const fragment = 16

// written are the pieces of a log of two streams: batches of three events each.
func written(f *formula) []piece {
	var list []piece
	for stream := range uint64(2) {
		for place := uint64(1); place <= 6; place++ {
			id, member := history.NewID(1, stream, 1+(place-1)/3), uint32((place-1)%3)
			if stream == 1 && place == 6 {
				list = append(list, piece{stream: stream, place: place, writer: history.NewID(1, 1, 9), void: true})
				continue
			}
			value := f.appendValue(nil, id, member, 40+5*place)
			for n := uint64(0); n*fragment < uint64(len(value)); n++ {
				body := value[n*fragment : min((n+1)*fragment, uint64(len(value)))]
				list = append(list, piece{stream: stream, place: place, number: n, writer: id, member: member, body: body})
			}
		}
	}
	return list
}

// read puts pieces together and returns what is kept of them.
func read(t *testing.T, f *formula, pieces []piece) (legs []history.Row, unexpected []string) {
	t.Helper()
	dir := t.TempDir()
	w, err := history.CreateEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{formula: f, streams: 2, end: w, lasts: map[uint64]history.Object{}, origins: map[uint64]bool{}}
	for _, p := range pieces {
		if err := r.add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.closeRows(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	end, err := history.OpenEnd(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	for leg, err := range end.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		legs = append(legs, leg)
	}
	return legs, end.Unexpected()
}

func TestReaderJoinsPiecesOfEvents(t *testing.T) {
	f := formula{5}
	legs, unexpected := read(t, &f, written(&f))
	if len(legs) != 12 || len(unexpected) != 0 {
		t.Fatalf("%d entries and %q", len(legs), unexpected)
	}
	for i, leg := range legs {
		stream, place := uint64(i/6), uint64(i%6+1)
		want := history.Row{
			Transaction: history.NewID(1, stream, 1+(place-1)/3), Number: uint32((place - 1) % 3),
			Object: stream, Version: place, Amount: int64(40 + 5*place), State: history.Whole,
		}
		if i == 11 {
			want = history.Row{Transaction: history.NewID(1, 1, 9), Mark: history.Tombstone, Object: 1, Version: 6}
		}
		if leg != want {
			t.Errorf("entry %d is %+v, want %+v", i, leg, want)
		}
	}
}

// TestReaderReportsDamagedEvents checks that an event with a damaged piece is reported without a length, and that
// all other events stay intact.
func TestReaderReportsDamagedEvents(t *testing.T) {
	f := formula{5}
	const at = 3 // the first piece of the second event, which has four
	for what, spoil := range map[string]func(list []piece) []piece{
		"its piece 0 is missing":  func(list []piece) []piece { return slices.Delete(list, at, at+1) },
		"its piece 1 is missing":  func(list []piece) []piece { return slices.Delete(list, at+1, at+2) },
		"it has 48 bytes, and 50": func(list []piece) []piece { return slices.Delete(list, at+3, at+4) },
		"it has piece 1 twice":    func(list []piece) []piece { return slices.Insert(list, at+1, list[at+1]) },
		"it has 54 bytes, and 50": func(list []piece) []piece {
			more := list[at+3]
			more.number, more.body = 4, more.body[:min(4, len(more.body))]
			more.body = []byte("more")
			return slices.Insert(list, at+4, more)
		},
		"its piece 1 is of event 0": func(list []piece) []piece {
			list[at+1].writer, list[at+1].member = list[0].writer, list[0].member
			return list
		},
		"its checksum is wrong": func(list []piece) []piece {
			list[at+2].body = list[2].body[:0:0]
			list[at+2].body = append(list[at+2].body, written(&f)[at+6].body...)
			return list
		},
		"its value belongs to event 0": func(list []piece) []piece {
			for i := range 3 {
				list[at+i].body = list[i].body
			}
			return list
		},
		"its piece 1 is of the tombstone": func(list []piece) []piece {
			list[at+1].void = true
			return list
		},
		"fewer than any event": func(list []piece) []piece {
			list[at].body = nil
			return slices.Delete(list, at+1, at+4)
		},
	} {
		t.Run(what, func(t *testing.T) {
			legs, unexpected := read(t, &f, spoil(slices.Clone(written(&f))))
			if len(legs) != 12 || len(unexpected) != 1 || !strings.Contains(unexpected[0], what) {
				t.Fatalf("%d entries and %q", len(legs), unexpected)
			}
			for i, leg := range legs {
				if broken := leg.State == history.Broken; broken != (i == 1) {
					t.Errorf("entry %d is %+v", i, leg)
				}
			}
		})
	}
}

func TestReaderReportsImpossibleRows(t *testing.T) {
	f := formula{5}
	origin := []db.Value{{Int: 0}, {Int: 0}, {Int: 0}, {Int: 0}, {Int: 0}, {Null: true}}
	for i, change := range []func(row []db.Value){
		func(row []db.Value) { row[0].Int = -1 },
		func(row []db.Value) { row[2].Int = 1 },
		func(row []db.Value) { row[3].Int = 7 },
		func(row []db.Value) { row[5] = db.Value{Text: []byte("x")} },
		func(row []db.Value) { row[1].Int, row[4].Int = 1, 1<<40 },
		func(row []db.Value) { row[4].Null = true },
	} {
		dir := t.TempDir()
		w, err := history.CreateEnd(dir)
		if err != nil {
			t.Fatal(err)
		}
		r := &reader{formula: &f, streams: 1, end: w, lasts: map[uint64]history.Object{}, origins: map[uint64]bool{}}
		row := slices.Clone(origin)
		change(row)
		for _, row := range [][]db.Value{origin, row} {
			if err := r.row(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.closeRows(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		end, err := history.OpenEnd(dir)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(end.Unexpected()); n != 1 {
			t.Errorf("row %d: %d unexpected", i, n)
		}
		end.Close()
	}
}

func TestEventKeyRoundTrip(t *testing.T) {
	last := ""
	for _, p := range []piece{{}, {number: 1}, {place: 1}, {place: 1, number: 1 << 19}, {place: 1 << 50}, {stream: 1}, {stream: 15}, {stream: 16}, {stream: maxStreams, place: 9, number: 9}} {
		key := string(appendEntryText(nil, p.stream, p.place, p.number))
		if key <= last || len(key) != streamDigits+1+placeDigits+1+pieceDigits {
			t.Errorf("%q comes after %q", key, last)
		}
		last = key
		var back piece
		if !parseEntryKey([]byte(key), &back) || fmt.Sprint(back) != fmt.Sprint(p) {
			t.Errorf("%+v comes back as %+v", p, back)
		}
	}
	for _, key := range []string{"", "00001", "00001/00000000000001/00000", "0000x/00000000000001/000000", "00001/0000000000000g/000000", "00001-00000000000001/000000"} {
		if parseEntryKey([]byte(key), new(piece)) {
			t.Errorf("%q is a key", key)
		}
	}
	values := []db.Value{{Text: []byte("00001/00000000000001/000000")}, {Int: int64(history.NewID(3, 2, 1))}, {Int: 77}, {Text: []byte("body")}}
	if p, ok := pieceOf(values); !ok || p.writer != history.NewID(3, 2, 1) || p.member != 77 || string(p.body) != "body" || p.void {
		t.Errorf("a piece comes back as %+v, %v", p, ok)
	}
	for place, bad := range []db.Value{{}, {Null: true}, {Int: -1}} {
		altered := slices.Clone(values)
		altered[place] = bad
		if _, ok := pieceOf(altered); ok {
			t.Errorf("%+v is a piece", altered)
		}
	}
}
