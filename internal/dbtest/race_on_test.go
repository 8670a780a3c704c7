//go:build race

package dbtest

// raceEnabled reports whether the race detector is active. It makes a run five times slower.
const raceEnabled = true
