package lists

import (
	"fmt"
	"strings"
	"testing"
)

// numbers are the elements from 1 to n.
func numbers(n uint64) (list []uint64) {
	for e := range n {
		list = append(list, e+1)
	}
	return list
}

// TestVersionsInWords: the elements stand between commas, and what two versions share is said once.
func TestVersionsInWords(t *testing.T) {
	short := func(e uint64) string { return fmt.Sprint(e) }
	long := func(e uint64) string { return fmt.Sprintf("append %d of transaction %d of client 1", e, 1000+e) }
	for _, tc := range []struct {
		element       func(uint64) string
		first, second []uint64
		one, other    string
	}{
		{short, nil, numbers(1), "[]", "[1]"},
		{short, numbers(3), numbers(4), "[1, 2, 3]", "[1, 2, 3, 4]"},
		{short, numbers(37), numbers(38), "[… 36 more, 37]", "[the same 37 elements, then 38]"},
		{short, numbers(37), numbers(37), "[… 36 more, 37]", "[the same 37 elements]"},
		{short, numbers(38), numbers(37), "[… 36 more, 37, 38]", "[the same 37 elements]"},
		{short, append(numbers(1200), 9000), append(numbers(1200), Missing), "[… 1,199 more, 1200, 9000]", "[the same 1,200 elements, then nothing]"},
		{short, []uint64{7}, numbers(14), "[7]", "[… 2 more, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]"},
		{long, numbers(2), numbers(2), "[… 1 more, append 2 of transaction 1002 of client 1]", "[the same 2 elements]"},
		{long, numbers(1), nil, "[append 1 of transaction 1001 of client 1]", "[]"},
		{long, numbers(10), numbers(11), "[… 9 more, append 10 of transaction 1010 of client 1]", "[the same 10 elements, then append 11 of transaction 1011 of client 1]"},
	} {
		c := &checker{}
		c.Element = tc.element
		if one, other := c.both(tc.first, tc.second); one != tc.one || other != tc.other {
			t.Errorf("%v and %v are written\n%s and\n%s, not\n%s and\n%s", tc.first, tc.second, one, other, tc.one, tc.other)
		}
	}
	c := &checker{}
	c.Element = long
	if text := c.elements(numbers(30)); !strings.HasPrefix(text, "[… 27 more, append 28 of") || len(text) > 2*mostLetters {
		t.Errorf("30 elements with long names are written %s", text)
	}
	c.Element = func(uint64) string { return strings.Repeat("x", 2*mostLetters) }
	if text := c.elements(numbers(2)); !strings.HasPrefix(text, "[… 1 more, x") {
		t.Errorf("of elements longer than there is room the last one is missing: %s", text)
	}
}
