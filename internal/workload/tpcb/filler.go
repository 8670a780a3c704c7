package tpcb

import (
	"bytes"

	"stroppy/internal/history"
)

// fillerLength is that of an id as text: the letter s and sixteen hexadecimal
// digits, of the 22 characters of the history's filler.
const fillerLength = 1 + idDigits

const idDigits = 16

// putID writes an id as sixteen hexadecimal digits into dst, which has that length.
func putID(dst []byte, id history.ID) {
	const hex = "0123456789abcdef"
	for i := idDigits - 1; i >= 0; i-- {
		dst[i] = hex[id&15]
		id >>= 4
	}
}

// parseID is the inverse of putID.
func parseID(text []byte) (id history.ID, ok bool) {
	if len(text) != idDigits {
		return 0, false
	}
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			id = id<<4 | history.ID(c-'0')
		case c >= 'a' && c <= 'f':
			id = id<<4 | history.ID(c-'a'+10)
		default:
			return 0, false
		}
	}
	return id, id != 0 && id>>63 == 0
}

func putFiller(dst *[fillerLength]byte, id history.ID) {
	dst[0] = 's'
	putID(dst[1:], id)
}

// parseFiller reads an id from a filler, which databases fill up with spaces.
func parseFiller(text []byte) (history.ID, bool) {
	text = trimmed(text)
	if len(text) != fillerLength || text[0] != 's' {
		return 0, false
	}
	return parseID(text[1:])
}

func trimmed(text []byte) []byte { return bytes.TrimRight(text, " ") }
