package events

import (
	"encoding/binary"

	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// The keys of the log in an ordered key-value store, all numbers in hexadecimal
// digits so that keys are in their order: a stream's end is the prefix and the
// stream's number; a piece of an entry is the prefix, the stream's number, a slash, the
// place, a slash and the piece's number.
const (
	tailPrefix  = "stroppy-events/tail/"
	entryPrefix = "stroppy-events/entry/"

	streamDigits = 5
	placeDigits  = 14
	pieceDigits  = 6
)

// The value of a stream's end is two signed 64-bit big-endian numbers: the place of
// its last entry, and that entry's writer.
const (
	placeAt   = 0
	writerAt  = 8
	tailValue = 16
)

// The value of a piece begins with what it is, its writer and its number within the
// batch. What follows is the piece's part of the event's value.
const (
	kindEvent = 'e'
	kindVoid  = 'v'

	pieceHead = 1 + 8 + 4
)

// around is how many bytes a piece takes beside its part of an event's value in one
// commit: its key, its head and the store's own framing, amply.
const around = 192

func appendTailKey(b []byte, stream uint64) []byte {
	return workload.Hex.Append(append(b, tailPrefix...), stream, streamDigits)
}

func appendEntryKey(b []byte, stream, place, piece uint64) []byte {
	return appendEntryText(append(b, entryPrefix...), stream, place, piece)
}

// appendEntryText appends the key of a piece without its prefix.
func appendEntryText(b []byte, stream, place, piece uint64) []byte {
	b = workload.Hex.Append(b, stream, streamDigits)
	b = workload.Hex.Append(append(b, '/'), place, placeDigits)
	return workload.Hex.Append(append(b, '/'), piece, pieceDigits)
}

func appendTail(b []byte, place uint64, writer history.ID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, place), uint64(writer))
}

func parseTail(b []byte) (place uint64, writer history.ID, ok bool) {
	if len(b) != tailValue || b[placeAt] >= 0x80 || b[writerAt] >= 0x80 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(b[placeAt:]), history.ID(binary.BigEndian.Uint64(b[writerAt:])), true
}

func appendPiece(b []byte, kind byte, writer history.ID, member uint32) []byte {
	b = binary.BigEndian.AppendUint64(append(b, kind), uint64(writer))
	return binary.BigEndian.AppendUint32(b, member)
}

// parsePiece reads the value of a piece; false of what nobody writes.
func parsePiece(b []byte) (p piece, ok bool) {
	if len(b) < pieceHead || b[0] != kindEvent && b[0] != kindVoid || b[1] >= 0x80 {
		return piece{}, false
	}
	return piece{
		void: b[0] == kindVoid, writer: history.ID(binary.BigEndian.Uint64(b[1:])),
		member: binary.BigEndian.Uint32(b[9:]), body: b[pieceHead:],
	}, true
}

// parseEntryKey reads the rest of an entry's key behind its prefix into p.
func parseEntryKey(b []byte, p *piece) bool {
	const place, number = streamDigits + 1, streamDigits + 1 + placeDigits + 1
	if len(b) != number+pieceDigits || b[streamDigits] != '/' || b[number-1] != '/' {
		return false
	}
	var ok [3]bool
	p.stream, ok[0] = workload.Hex.Parse(b[:streamDigits])
	p.place, ok[1] = workload.Hex.Parse(b[place : place+placeDigits])
	p.number, ok[2] = workload.Hex.Parse(b[number:])
	return ok == [3]bool{true, true, true}
}
