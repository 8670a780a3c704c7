package load

import "runtime/debug"

// SaveMemory is for so many clients, and sets the garbage collector's percentage (GOGC).
const (
	many    = 1000
	sparing = 50
)

// SaveMemory has the garbage collector run when the heap has grown by a half, and not when it
// has doubled, until what it returns is called: for the time in which many clients are opened
// and run. What is left over of making ten thousand connections would else be the most memory
// that the process ever takes, and a load phase leaves little to be collected. Of few clients it
// is little, and what runs beside them, such as a database in this process, keeps its speed. A
// lower percentage of the user's stays, and so does one that is off.
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
