package load

import "runtime/debug"

// sparing is the garbage collector's percentage (GOGC) of SaveMemory.
const sparing = 50

// SaveMemory has the garbage collector run when the heap has grown by a half, and not when it
// has doubled, until what it returns is called: for the time in which clients are opened and
// run. What is left over of making ten thousand connections would else be the most memory
// that the process ever takes, and a load phase leaves little to be collected. A lower
// percentage of the user's stays, and so does one that is off.
func SaveMemory() (restore func()) {
	before := debug.SetGCPercent(sparing)
	if before < sparing { // -1 is off
		debug.SetGCPercent(before)
	}
	return func() { debug.SetGCPercent(before) }
}
