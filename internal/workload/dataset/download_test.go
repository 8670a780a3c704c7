package dataset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// TestDownloadRepeatsUntilPartsAgree checks how often an end state is downloaded, and when the download fails.
func TestDownloadRepeatsUntilPartsAgree(t *testing.T) {
	broken := errors.New("the database is gone")
	changing := make([]int, mostLooks)
	for i := range changing {
		changing[i] = i
	}
	for _, test := range []struct {
		name   string
		found  []int // by try
		agrees int   // the try whose parts agree; 0 never
		fails  int   // the try that fails; 0 never
		takes  int
		err    string
	}{
		{"its parts agree", []int{7}, 1, 0, 1, ""},
		{"nothing in it", []int{0, 0}, 0, 0, 2, ""},
		{"a late commit between its parts", []int{7, 8, 9}, 3, 0, 3, ""},
		{"books that do not close", []int{7, 8, 8}, 0, 0, 3, ""},
		{"somebody else works on it", changing, 0, 0, mostLooks, "the bank was changed while it was downloaded, 10 times in a row"},
		{"it cannot be read", []int{7, 8}, 0, 2, 2, broken.Error()},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Set{kind: Kind{Noun: "bank"}, found: Metadata{Found: true}, volatile: true}
			takes, restarts := 0, 0
			err := Download(t.Context(), s, func() error { restarts++; return nil }, func() (int, bool, error) {
				takes++
				if takes == test.fails {
					return 0, false, broken
				}
				return test.found[takes-1], takes == test.agrees, nil
			})
			if got := fmt.Sprint(err); test.err == "" && err != nil || !strings.Contains(got, test.err) {
				t.Errorf("%s: ends with %v", test.name, err)
			}
			if takes != test.takes || restarts != takes-1 {
				t.Errorf("%s: was taken %d times and begun anew %d times, not %d and %d", test.name, takes, restarts, test.takes, test.takes-1)
			}
		})
	}
}

// TestCancelledDownloadEndsAtOnce checks that a cancelled download ends at once, and that nothing is downloaded
// without attached data.
func TestCancelledDownloadEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &Set{kind: Kind{Noun: "bank"}, found: Metadata{Found: true}, volatile: true}
		takes := 0
		take := func() (int, bool, error) {
			takes++
			cancel()
			return takes, false, nil
		}
		if err := Download(ctx, s, func() error { return nil }, take); !errors.Is(err, context.Canceled) || takes != 1 {
			t.Errorf("a download that is called off was taken %d times and ends with %v", takes, err)
		}
		s.found.Found = false
		if err := Download(t.Context(), s, func() error { return nil }, take); err == nil || takes != 1 {
			t.Errorf("what nobody is attached to was taken %d times, with %v", takes, err)
		}
	})
}
