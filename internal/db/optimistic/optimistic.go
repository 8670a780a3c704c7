// Package optimistic is what the drivers of key-value stores share: the state of a
// session, and what it keeps of a transaction until it commits, which is its writes,
// of which the last of each key counts, and copies of bytes.
package optimistic

import "bytes"

// Write is one write of a transaction.
type Write struct {
	Key, Value []byte
	Remove     bool
}

// many is from how many on the writes are looked up by a map.
const many = 16

// Set is the writes of one transaction after another. Its memory is used again.
type Set struct {
	writes []Write
	places map[string]int // in writes, by key; used when they are many
	arena  []byte
}

// Clear forgets everything, copies included.
func (s *Set) Clear() {
	s.writes, s.arena = s.writes[:0], s.arena[:0]
	clear(s.places)
}

// All returns the writes, which belong to the set.
func (s *Set) All() []Write { return s.writes }

// Copy returns the parts joined, until Clear. When the arena grows, earlier copies
// stay where they are.
func (s *Set) Copy(parts ...[]byte) []byte {
	start := len(s.arena)
	for _, p := range parts {
		s.arena = append(s.arena, p...)
	}
	return s.arena[start:len(s.arena):len(s.arena)]
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

// write returns the write of key.
func (s *Set) write(key []byte) *Write {
	if len(s.writes) < many {
		for i := range s.writes {
			if bytes.Equal(s.writes[i].Key, key) {
				return &s.writes[i]
			}
		}
	} else {
		if len(s.places) == 0 {
			if s.places == nil {
				s.places = make(map[string]int)
			}
			for i := range s.writes {
				s.places[string(s.writes[i].Key)] = i
			}
		}
		if i, there := s.places[string(key)]; there {
			return &s.writes[i]
		}
		s.places[string(key)] = len(s.writes)
	}
	s.writes = append(s.writes, Write{Key: s.Copy(key)})
	return &s.writes[len(s.writes)-1]
}
