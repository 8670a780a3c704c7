package tpcb

import (
	"bytes"

	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// fillerLength is that of an id as text: the letter s and sixteen hexadecimal
// digits, of the 22 characters of the history's filler.
const fillerLength = 1 + workload.IDLength

func putFiller(dst *[fillerLength]byte, id history.ID) {
	dst[0] = 's'
	workload.PutID(dst[1:], id)
}

// parseFiller reads an id from a filler, which databases fill up with spaces.
func parseFiller(text []byte) (history.ID, bool) {
	text = trimmed(text)
	if len(text) != fillerLength || text[0] != 's' {
		return 0, false
	}
	return workload.ParseID(text[1:])
}

func trimmed(text []byte) []byte { return bytes.TrimRight(text, " ") }
