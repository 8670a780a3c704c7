package run

import (
	"testing"

	"stroppy/internal/check"
)

// TestWorst: the first failed check in one sentence, which names what was found.
func TestWorst(t *testing.T) {
	for detail, want := range map[string]string{
		"162 transfers acknowledged and lost: 1-7-3.":                         "162 transfers acknowledged and lost: 1-7-3.",
		"Dirty read (G1a): 12 times, first: transfer 1-9 read 1-15.\nmore":    "Dirty read (G1a): 12 times.",
		"2 accounts differ, first: account 7 has 5.":                          "2 accounts differ.",
		"2 times, first: read 1-3-4 returned what nobody wrote.\nand so on":   "Read 1-3-4 returned what nobody wrote (2 times).",
		"read 1-3-4 returned what nobody wrote. Its bytes are of 1-1 and 1-2": "Read 1-3-4 returned what nobody wrote.",
	} {
		got := worst([]check.Result{{Required: true, Status: check.Valid, Detail: "all"}, {Required: true, Status: check.Invalid, Detail: detail}})
		if got != want {
			t.Errorf("%q becomes %q, not %q", detail, got, want)
		}
	}
}
