package load

import (
	"runtime/debug"
	"testing"
)

// TestSaveMemoryRespectsTheUsersSetting checks that the user's percentage is restored, and kept if it saves
// more, if the collector is off, or if there are few clients.
func TestSaveMemoryRespectsTheUsersSetting(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for _, test := range []struct{ clients, user, meanwhile int }{{many, 100, sparing}, {many, 400, sparing}, {many, 20, 20}, {many, -1, -1}, {many - 1, 100, 100}} {
		debug.SetGCPercent(test.user)
		restore := SaveMemory(test.clients)
		meanwhile := debug.SetGCPercent(test.user)
		debug.SetGCPercent(meanwhile)
		restore()
		if after := debug.SetGCPercent(100); meanwhile != test.meanwhile || after != test.user {
			t.Errorf("with %d clients of %d it was %d and then %d, not %d and %d", test.clients, test.user, meanwhile, after, test.meanwhile, test.user)
		}
	}
}
