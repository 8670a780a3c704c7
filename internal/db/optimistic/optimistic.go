// Package optimistic is what the drivers of key-value stores share: the state of a
// session, and what it keeps of a transaction until it commits, which is its writes,
// of which the last of each key counts, and copies of bytes.
package optimistic

import (
	"bytes"
	"slices"
)

// Write is one write of a transaction.
type Write struct {
	Key, Value []byte
	Remove     bool
}

// Set is the writes of one transaction after another. Its memory is used again.
type Set struct {
	writes []Write
	order  []int // places in writes, in the order of their keys
	bytes  []byte
}

// Clear forgets everything, copies included.
func (s *Set) Clear() { s.writes, s.order, s.bytes = s.writes[:0], s.order[:0], s.bytes[:0] }

// All returns the writes, which belong to the set.
func (s *Set) All() []Write { return s.writes }

// Copy returns the parts joined, until Clear. When bytes grows, earlier copies
// stay where they are.
func (s *Set) Copy(parts ...[]byte) []byte {
	start := len(s.bytes)
	for _, p := range parts {
		s.bytes = append(s.bytes, p...)
	}
	return s.bytes[start:len(s.bytes):len(s.bytes)]
}

// Put remembers a write; key and value are copied.
func (s *Set) Put(key, value []byte) {
	w := s.write(key)
	w.Value, w.Remove = s.Copy(value), false
}

// Remove remembers a removal; key is copied.
func (s *Set) Remove(key []byte) {
	w := s.write(key)
	w.Value, w.Remove = nil, true
}

func (s *Set) write(key []byte) *Write {
	i, found := slices.BinarySearchFunc(s.order, key, func(place int, key []byte) int { return bytes.Compare(s.writes[place].Key, key) })
	if !found {
		s.order = slices.Insert(s.order, i, len(s.writes))
		s.writes = append(s.writes, Write{Key: s.Copy(key)})
	}
	return &s.writes[s.order[i]]
}
