package script

import (
	"math/big"
	"testing"

	"stroppy/internal/history"
	"stroppy/internal/script"
)

func TestAmountsAreExact(t *testing.T) {
	for text, want := range map[string]string{
		"5": "5", "-12.50": "-12.5", "-0.01": "-0.01", "9223372036854775807": "9223372036854775807",
		"0.000000000000000001": "0.000000000000000001", "+7.": "7",
	} {
		a, ok := parseAmount(text)
		got := new(big.Rat).SetFrac(big.NewInt(a.fraction), big.NewInt(1e18))
		got.Add(got, new(big.Rat).SetInt64(a.whole))
		if number, _ := new(big.Rat).SetString(want); !ok || got.Cmp(number) != 0 {
			t.Errorf("%s is %v", text, got)
		}
	}
	for _, text := range []string{"", "1e3", "x", "1.2.3", "1.-2", "9223372036854775808", "0.0000000000000000001", " 1"} {
		if a, ok := parseAmount(text); ok {
			t.Errorf("%q is %v", text, a)
		}
	}
}

// TestSumsTakeWhatTheScriptHasSet checks that a variable counts only if this execution of the script has set it. A retry
// forgets what the try before it set.
func TestSumsTakeWhatTheScriptHasSet(t *testing.T) {
	program, err := script.Parse([]script.File{{Name: "a", Text: "\\set x 5\n\\set y 7\nUPDATE t SET a = :x", Weight: 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := program.Settable("x")
	y, _ := program.Settable("y")
	if _, ok := program.Settable("z"); ok {
		t.Error("nothing sets z")
	}
	m := program.NewMachine(1, 2)
	m.Vars[x], m.Vars[y] = script.Value{Kind: script.Integer, Int: 5}, script.Value{Kind: script.Text, Text: []byte("-0.5")}
	s := newSumming([]int{x, y})
	sum := func() []history.Op {
		t.Helper()
		if err := s.take(m); err != nil {
			t.Fatal(err)
		}
		return s.appendOps(nil)
	}
	s.next(false)
	s.begin()
	s.assigned(y)
	if ops := sum(); len(ops) != 0 {
		t.Errorf("it wrote nothing, and adds %v", ops)
	}
	s.writes()
	if ops := sum(); len(ops) != 1 || ops[0].Object != sumObject+3 || ops[0].Amount != -5e17 {
		t.Errorf("%v", ops)
	}
	s.begin()
	s.writes()
	if ops := sum(); len(ops) != 0 {
		t.Errorf("the try before set it: %v", ops)
	}
	s.assigned(x)
	if ops := sum(); len(ops) != 1 || ops[0].Object != sumObject || ops[0].Amount != 5 {
		t.Errorf("%v", ops)
	}
	s.ended(true)
	s.begin()
	if ops := sum(); len(ops) != 1 {
		t.Errorf("what is committed is forgotten: %v", ops)
	}
	for _, continues := range []bool{true, false} {
		s.next(continues)
		s.begin()
		s.writes()
		if ops := sum(); len(ops) > 0 != continues {
			t.Errorf("the script continues: %t, and its next transaction adds %v", continues, ops)
		}
	}
	s.assigned(x)
	m.Vars[x] = script.Value{Kind: script.Double, Double: 1.5}
	s.writes()
	if s.take(m) == nil {
		t.Error("a double is exact")
	}
}
