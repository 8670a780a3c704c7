package sessions

import (
	"fmt"
	"math/bits"

	"stroppy/internal/check"
)

// The tables use open addressing with linear probing. They are at most half full and are created for a known
// number of entries, so a slot never moves.

// slotsFor returns a power of two that is at least twice the number of entries.
func slotsFor(entries int) int { return 1 << bits.Len(uint(2*entries)) }

// keyTable numbers keys in the order of their first occurrence.
type keyTable struct {
	slots []keySlot
	mask  uint64
	count uint32
}

type keySlot struct {
	key    int64
	number uint32 // from 1; 0: empty
}

func newKeyTable(most int) *keyTable {
	n := slotsFor(most)
	return &keyTable{slots: make([]keySlot, n), mask: uint64(n - 1)}
}

// number returns the number of a key, from 0.
func (k *keyTable) number(key int64) uint32 {
	for at := check.Mix(uint64(key)) & k.mask; ; at = (at + 1) & k.mask {
		s := &k.slots[at]
		if s.number == 0 {
			k.count++
			*s = keySlot{key, k.count}
		}
		if s.key == key {
			return s.number - 1
		}
	}
}

// The writer of a slot is the number of a transaction, with a flag if the transaction wrote the key again. It
// is aborted if no committed transaction wrote the value.
const (
	overwritten   = 1 << 31
	abortedWriter = overwritten - 1
)

// writeTable contains each value written to each key.
type writeTable struct {
	slots []writeSlot
	mask  uint64
	count int
}

type writeSlot struct {
	value  int64 // 0: empty
	key    uint32
	writer uint32
}

func newWriteTable(writes int) *writeTable {
	n := slotsFor(writes)
	return &writeTable{slots: make([]writeSlot, n), mask: uint64(n - 1)}
}

// at returns the first possible slot for a value of a key.
func (w *writeTable) at(key uint32, value int64) uint64 {
	return check.Mix(uint64(value)^uint64(key)<<40^uint64(key)*0x9e3779b97f4a7c15) & w.mask
}

// add records a write and returns its permanent slot.
func (w *writeTable) add(op *Op, key, writer uint32) (uint32, error) {
	if op.Value == 0 {
		return 0, &InputError{Line: int(op.Line), What: fmt.Sprintf("0 is written to key %d, and 0 is the value of a key that nobody wrote", op.Key)}
	}
	at := w.at(key, op.Value)
	for ; w.slots[at].value != 0; at = (at + 1) & w.mask {
		if w.slots[at].value == op.Value && w.slots[at].key == key {
			return 0, &InputError{Line: int(op.Line), What: fmt.Sprintf("%d is written to key %d a second time, so that who read it read nobody knows whose write", op.Value, op.Key)}
		}
	}
	w.slots[at] = writeSlot{op.Value, key, writer}
	w.count++
	return uint32(at), nil
}

// find returns the write of a value, or nil.
func (w *writeTable) find(key uint32, value int64) *writeSlot {
	for at := w.at(key, value); ; at = (at + 1) & w.mask {
		switch s := &w.slots[at]; {
		case s.value == 0:
			return nil
		case s.value == value && s.key == key:
			return s
		}
	}
}
