//go:build race

package dbtest

// raceEnabled says that the race detector watches, which makes a run five times slower.
const raceEnabled = true
