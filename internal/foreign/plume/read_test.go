package plume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"stroppy/internal/check/sessions"
	"stroppy/internal/foreign"
)

// parse reads a text in a number of parts.
func parse(text string, parts int) (*sessions.History, error) {
	return readParts(context.Background(), strings.NewReader(text), int64(len(text)), parts)
}

// TestResultIsIndependentOfFileParts checks that the result depends neither on the parts of a file nor on the
// interleaving of sessions.
func TestResultIsIndependentOfFileParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	value := 0
	for tx := range 60 {
		for range 1 + r.IntN(3) {
			value++
			fmt.Fprintf(&text, "w(%d,%d,%d,%d)\n", r.IntN(5)-2, value, tx%4*1000, tx)
		}
		if r.IntN(8) == 0 {
			value++
			fmt.Fprintf(&text, "w(1,%d,7,-1)\n", value)
		}
	}
	one, err := parse(text.String(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Sessions) != 4 || len(one.Transactions) != 60 || len(one.Aborted) == 0 || len(one.Ops)+len(one.Aborted) != value {
		t.Fatalf("%d sessions, %d transactions, %d operations, %d aborted", len(one.Sessions), len(one.Transactions), len(one.Ops), len(one.Aborted))
	}
	for parts := 2; parts < 100; parts++ {
		if other, err := parse(text.String(), parts); err != nil || !reflect.DeepEqual(one, other) {
			t.Fatalf("%d parts read something else: %v", parts, err)
		}
	}
}

// TestErrorsNameTheFirstWrongLine checks that the first wrong line is named, for any number of parts.
func TestErrorsNameTheFirstWrongLine(t *testing.T) {
	var lines []string
	for i := range 50 {
		lines = append(lines, fmt.Sprintf("w(1,%d,0,%d)", i+1, i))
	}
	for at := range lines {
		for _, wrong := range []string{"", "x", "w(1,2,3)", "w(1,2,3,4,5)", "x(1,2,3,4)", "w(1,2,3,4) ", "w(1,,3,4)", "w(1,-,3,4)", "w(1,2,-1,4)", "w(1,2,3,-2)", "w(1,2,3,99999999999999999999)", "w(1,2,3,4", "w(+1,2,3,4)"} {
			text := strings.Join(lines[:at], "\n") + "\n" + wrong + "\n" + strings.Join(lines[at:], "\n")
			want := at + 1
			if at == 0 {
				text = text[1:]
			}
			for _, parts := range []int{1, 3, 10} {
				_, err := parse(text, parts)
				var input *foreign.InputError
				if !errors.As(err, &input) || input.Line != want {
					t.Fatalf("%q in line %d of %d parts: %v", wrong, want, parts, err)
				}
			}
		}
	}
}

// FuzzRead checks that any input is read or refused, and that a history is equal after it was written and
// read again.
func FuzzRead(f *testing.F) {
	f.Add("w(1,1,0,0)\nr(1,1,1,1)\n", 1)
	f.Add("w(1,1,0,0)\r\nr(1,0,1,1)\r\nw(2,9223372036854775807,1,-1)", 2)
	f.Add("r(-5,-7,0,0)\n", 3)
	f.Add("w(1,1,0,0)\n\n", 1)
	f.Fuzz(func(t *testing.T, text string, parts int) {
		h, err := parse(text, 1+max(parts, -parts)%8)
		if err != nil {
			if !errors.As(err, new(*foreign.InputError)) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		var out bytes.Buffer
		if err := write(&out, h); err != nil {
			t.Fatal(err)
		}
		again, err := parse(out.String(), 1)
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, out.String(), err)
		}
		for _, x := range []*sessions.History{h, again} {
			for i := range x.Ops {
				x.Ops[i].Line = 0
			}
			for i := range x.Aborted {
				x.Aborted[i].Line = 0
			}
		}
		if !reflect.DeepEqual(h, again) {
			t.Fatalf("%q was written as %q", text, out.String())
		}
	})
}
