package load

import "runtime/debug"

// SaveMemory applies from this number of clients on, and sets this percentage of the garbage collector
// (GOGC).
const (
	many    = 1000
	sparing = 50
)

// SaveMemory makes the garbage collector run when the heap has grown by half instead of doubling, until the
// returned function is called. It is meant for the time in which many clients are opened and run: otherwise
// the garbage of ten thousand new connections would be the peak of the process's memory.
//
// For few clients it does nothing, so that a database in this process keeps its speed. A lower percentage of
// the user, or a disabled collector, is kept.
func SaveMemory(clients int) (restore func()) {
	if clients < many {
		return func() {}
	}
	before := debug.SetGCPercent(sparing)
	if before < sparing { // -1 is off
		debug.SetGCPercent(before)
	}
	return func() { debug.SetGCPercent(before) }
}
