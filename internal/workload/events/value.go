package events

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/sampling"
)

// A value begins with a head of four numbers in characters of six bits each, the
// highest first: '0' is 0 and 'o' is 63. The checksum is of the head before it and of
// the body behind it.
const (
	idDigits     = 11 // of the transaction's id
	memberDigits = 2  // of the event's number within its batch, from 0
	lengthDigits = 5  // of the whole value's length in bytes
	sumDigits    = 6  // of the checksum

	memberAt   = idDigits
	lengthAt   = memberAt + memberDigits
	sumAt      = lengthAt + lengthDigits
	headLength = sumAt + sumDigits

	// leastValue is the shortest value, in bytes: a head, and a word of its own.
	leastValue = headLength + 8
)

// formula makes the values of a log.
type formula struct{ seed uint64 }

// base returns the beginning of the words of an event.
func (f *formula) base(id history.ID, member uint32) uint64 {
	return sampling.Mix(sampling.Mix(f.seed^sampling.Mix(uint64(id))) + uint64(member))
}

// length draws the length of an event's value, in bytes.
func (f *formula) length(size Size, id history.ID, member uint32) uint64 {
	high, _ := bits.Mul64(sampling.Mix(^f.base(id, member)), size.High-size.Low+1) // off by less than 2^-39 of even
	return size.Low + high
}

// appendValue appends an event's value of that length, which is at least leastValue.
func (f *formula) appendValue(b []byte, id history.ID, member uint32, length uint64) []byte {
	from := len(b)
	b = workload.Base64.Append(b, uint64(id), idDigits)
	b = workload.Base64.Append(b, uint64(member), memberDigits)
	b = workload.Base64.Append(b, length, lengthDigits)
	b = workload.Base64.Append(b, 0, sumDigits)
	b = appendBody(b, f.base(id, member), length-headLength)
	value := b[from:]
	workload.Base64.Put(value[sumAt:headLength], uint64(workload.Checksum(value, sumAt, headLength)))
	return b
}

// appendBody appends random characters of six bits each, made from a counter with the
// step of SplitMix64.
func appendBody(b []byte, base, length uint64) []byte {
	const six, zeros = 0x3f3f3f3f3f3f3f3f, 0x0101010101010101 * '0'
	end := len(b) + int(length)
	for ; len(b) < end; base += 0x9e3779b97f4a7c15 {
		b = binary.LittleEndian.AppendUint64(b, sampling.Mix(base)&six+zeros)
	}
	return b[:end]
}

// fault compares a value with event member of transaction id, byte for byte. It returns what is wrong, or an empty
// string. It uses scratch for the expected value, and returns scratch.
func (f *formula) fault(value []byte, id history.ID, member uint32, scratch []byte) (string, []byte) {
	if len(value) < leastValue {
		return fmt.Sprintf("it has %d bytes, fewer than any event", len(value)), scratch
	}
	writer, ok1 := workload.Base64.Parse(value[:memberAt])
	number, ok2 := workload.Base64.Parse(value[memberAt:lengthAt])
	length, ok3 := workload.Base64.Parse(value[lengthAt:sumAt])
	sum, ok4 := workload.Base64.Parse(value[sumAt:headLength])
	switch {
	case !ok1 || !ok2 || !ok3 || !ok4:
		return "its first bytes are no event", scratch
	case history.ID(writer) != id || uint32(number) != member:
		return fmt.Sprintf("its value belongs to event %d of %v", number, history.ID(writer)), scratch
	case length != uint64(len(value)):
		return fmt.Sprintf("it has %d bytes, and %d were written", len(value), length), scratch
	case uint32(sum) != workload.Checksum(value, sumAt, headLength):
		return "its checksum is wrong", scratch
	}
	scratch = f.appendValue(scratch[:0], id, member, length)
	if string(scratch) != string(value) {
		return "its checksum is right, and its bytes are not those that were written", scratch
	}
	return "", scratch
}
