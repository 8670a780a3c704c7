package nemesis

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestToy runs only with the toy in the list of kinds.
func TestToy(t *testing.T) {
	if got := must(t, "toy leader every 20s").String(); got != "toy leader every 20s" {
		t.Errorf("it is printed as %q", got)
	}
	if _, err := Parse("plaything n0"); err == nil || !strings.Contains(err.Error(), "toy") {
		t.Errorf("the error does not name it: %v", err)
	}
	if !slices.Contains(Continuations(""), "toy") || !slices.ContainsFunc(List(), func(row [2]string) bool { return row[0] == "toy TARGET" }) {
		t.Error("completion and help do not have it")
	}
	bubble(t, 3, func(t *testing.T, c *standIns) {
		over := c.drive(time.Minute, 1, "toy n1 at 10s")
		if len(over) != 1 || over[0].Verified != "n1 down; n1 up again" || over[0].Healed == nil {
			t.Errorf("%+v", over)
		}
	})
}
