package foundationdb

import (
	"errors"
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// TestErrorCodesAreClassified checks the class of each error code, and that an unknown code is treated with the
// least certainty.
func TestErrorCodesAreClassified(t *testing.T) {
	for _, test := range []struct {
		number         int
		before, commit db.Class
		retry          bool
	}{
		{1007, db.Aborted, db.Aborted, true},
		{1020, db.Aborted, db.Aborted, true},
		{1021, db.Unavailable, db.Unknown, true},
		{1025, db.Unavailable, db.Unknown, false},
		{1031, db.Unavailable, db.Unknown, false},
		{1039, db.Unavailable, db.Unknown, true},
		{1101, db.Unavailable, db.Unknown, false},
		{2101, db.Fatal, db.Fatal, false},
		{2103, db.Fatal, db.Fatal, false},
		{2017, db.Unavailable, db.Unknown, false}, // not in the table
		{4100, db.Unavailable, db.Unknown, false},
		{0, db.Unavailable, db.Unknown, false},
	} {
		for at, want := range map[optimistic.Phase]db.Class{optimistic.Reading: test.before, optimistic.Sent: test.commit} {
			if class, _, retry := classify(test.number, at); class != want || retry != test.retry {
				t.Errorf("%d at phase %d: %v, %v, want %v, %v", test.number, at, class, retry, want, test.retry)
			}
		}
	}
	seen := map[int]bool{}
	for _, c := range codes {
		if seen[c.number] || c.name == "" || c.before == db.Unknown {
			t.Errorf("%+v is twice in the table, or a read is unknown", c)
		}
		seen[c.number] = true
	}
	cause := errors.New("FoundationDB says value_too_large")
	e, _ := failure("commit", 2103, cause, optimistic.Sent)
	if e.Code != "2103" || !errors.Is(e, cause) || !strings.Contains(e.Error(), "fragments") {
		t.Errorf("%v", e)
	}
}
