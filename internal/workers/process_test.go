package workers

import (
	"fmt"
	"strings"
	"testing"
)

// TestFailedProcessKeepsItsErrorLine checks that the line with the reason for a process's end is kept.
func TestFailedProcessKeepsItsErrorLine(t *testing.T) {
	stacks := strings.Repeat("\ngoroutine 7 [running]:\nmain.main()\n\tmain.go:15 +0x22", 500)
	for _, c := range []struct{ name, printed, want string }{
		{"nothing", "", ""},
		{"the last line", "one\ntwo\n\n", "two"},
		{"a line without an end", "one\ntwo", "two"},
		{"a panic", "warning\npanic: runtime error: index out of range [3]" + stacks, "panic: runtime error: index out of range [3]"},
		{"a fatal error", "runtime: out of memory\nfatal error: runtime: out of memory" + stacks + "\nexit\n", "fatal error: runtime: out of memory"},
		{"the word alone", "no panic: all is well\nit ended\n", "it ended"},
		{"a long line", strings.Repeat("x", 5000) + "\n", strings.Repeat("x", mostLine)},
	} {
		for _, one := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", c.name, one), func(t *testing.T) {
				var got tail
				in := []byte(c.printed)
				if one {
					in = nil
					for _, b := range []byte(c.printed) {
						if _, err := got.Write([]byte{b}); err != nil {
							t.Fatal(err)
						}
					}
				}
				if n, err := got.Write(in); n != len(in) || err != nil {
					t.Fatalf("wrote %d of %d: %v", n, len(in), err)
				}
				if got.String() != c.want {
					t.Errorf("%q, want %q", got.String(), c.want)
				}
			})
		}
	}
}
