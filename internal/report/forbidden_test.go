package report

import "testing"

// TestForbiddenLevelIsNotTheVendors checks that a report names the literature's levels, which no vendor's level can be
// taken for.
func TestForbiddenLevelIsNotTheVendors(t *testing.T) {
	for level, want := range map[string]string{
		"repeatable-read":    "Forbidden by PL-2.99 (the literature's repeatable read) and stronger.",
		"snapshot-isolation": "Forbidden by snapshot isolation and stronger.",
		"a later level":      "Forbidden by a later level.",
	} {
		if got := forbiddenText(level); got != want {
			t.Errorf("%s: %s", level, got)
		}
	}
}
