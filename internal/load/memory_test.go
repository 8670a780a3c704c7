package load

import (
	"runtime/debug"
	"testing"
)

// TestSaveMemory: the user's percentage comes back, and stays where it saves more or is off.
func TestSaveMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for _, test := range []struct{ user, meanwhile int }{{100, sparing}, {400, sparing}, {20, 20}, {-1, -1}} {
		debug.SetGCPercent(test.user)
		restore := SaveMemory()
		meanwhile := debug.SetGCPercent(test.user)
		debug.SetGCPercent(meanwhile)
		restore()
		if after := debug.SetGCPercent(100); meanwhile != test.meanwhile || after != test.user {
			t.Errorf("of %d it was %d and then %d, not %d and %d", test.user, meanwhile, after, test.meanwhile, test.user)
		}
	}
}
