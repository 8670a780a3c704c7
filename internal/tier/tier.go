// Package tier decides which tests run in which tier of scripts/test.sh. The tiers quick and race
// use go test -short. Environment variables named STROPPY_TEST_* ask for tests that take long.
package tier

import "testing"

// SkipUnderRace skips a test that computes in one goroutine or counts allocations. The race detector
// finds nothing in it and slows it down. The same tests run without the detector.
func SkipUnderRace(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("computes in one goroutine, so the race detector has nothing to watch")
	}
}
