package sessions

import (
	"cmp"
	"slices"
)

// versions are the values of all keys as far as their order is known. That of key k that
// nobody wrote is the version k; the one that the transaction of writeKey[i] left is
// keys+i. Under snapshot isolation and serializability who read a version and wrote its
// key made the next one, so that versions come in chains; what is left open is how the
// chains of a key follow each other.
type versions struct {
	*resolved
	maker  []uint32  // of each version
	read   []uint32  // of each resolved read: the version
	next   []uint32  // of each version: the one that overwrote it, or 0 (which overwrites none)
	second [2]uint32 // two reads of one version whose transactions both overwrote it, if there are some
	lost   bool
}

// versions finds the chains.
func (r *resolved) versions() *versions {
	v := &versions{resolved: r, maker: make([]uint32, r.keys+len(r.writeKey)), read: make([]uint32, len(r.readKey))}
	v.next = make([]uint32, len(v.maker))
	from := make([]uint32, len(v.maker)) // of each version: the read, from 1, of who overwrote it
	for t := uint32(1); t <= r.transactions(); t++ {
		for i := r.writeRow[t]; i < r.writeRow[t+1]; i++ {
			v.maker[r.keys+int(i)] = t
		}
	}
	for t := uint32(1); t <= r.transactions(); t++ {
		for i := r.readRow[t]; i < r.readRow[t+1]; i++ {
			key := r.readKey[i]
			v.read[i] = v.of(r.readFrom[i], key)
			if !r.wrote(t, key) {
				continue
			}
			made, old := v.of(t, key), v.read[i]
			switch next := v.next[old]; {
			case next == 0:
				v.next[old], from[old] = made, i+1
			case next != made && !v.lost:
				v.second, v.lost = [2]uint32{from[old] - 1, i}, true
			}
		}
	}
	return v
}

// of is the version that t, who wrote the key, left of it.
func (v *versions) of(t, key uint32) uint32 {
	if t == initial {
		return key
	}
	written := v.writeKey[v.writeRow[t]:v.writeRow[t+1]]
	at := slices.Index(written[:min(len(written), sortedFrom)], key)
	if at < 0 {
		at, _ = slices.BinarySearch(written, key)
	}
	return uint32(v.keys) + v.writeRow[t] + uint32(at)
}

// keyOf is the key of a version.
func (v *versions) keyOf(version uint32) uint32 {
	if int(version) < v.keys {
		return version
	}
	return v.writeKey[int(version)-v.keys]
}

// chain is what is known of one chain: its first and last version.
type chain struct{ first, last, key uint32 }

// chains returns all of them and of each version its chain. The first are those of the
// initial versions, by key.
func (v *versions) chains() (list []chain, of []uint32) {
	overwrites := make([]bool, len(v.maker))
	for _, next := range v.next {
		overwrites[next] = true
	}
	of = make([]uint32, len(v.maker))
	for version := range v.maker {
		if int(version) >= v.keys && overwrites[version] {
			continue
		}
		c := chain{first: uint32(version), last: uint32(version), key: v.keyOf(uint32(version))}
		of[version] = uint32(len(list))
		for v.next[c.last] != 0 {
			c.last = v.next[c.last]
			of[c.last] = uint32(len(list))
		}
		list = append(list, c)
	}
	return list, of
}

// joinPairs joins the chains of the keys that have only one beside the initial one.
func (v *versions) joinPairs() {
	list, _ := v.chains()
	others := make([]uint32, v.keys) // of each key: how many
	for _, c := range list {
		if int(c.first) >= v.keys {
			others[c.key]++
		}
	}
	for _, c := range list { // the initial ones are the first
		if int(c.first) >= v.keys && others[c.key] == 1 {
			v.next[list[c.key].last] = c.first
		}
	}
}

// join lets the chains of each key follow each other, the initial one first, and the
// others as their first makers are placed. It returns false where that is a choice: where
// no edge that is known orders two that follow each other.
func (v *versions) join(place []uint32, known *edges, withSessions bool) (forced bool) {
	list, of := v.chains()
	ordered := map[[2]uint32]bool{}
	for i, to := range known.to {
		key := v.readKey[known.read[i]]
		ordered[[2]uint32{of[v.of(known.from[i], key)], of[v.of(to, key)]}] = true
	}
	if withSessions {
		v.orderSessions(of, ordered)
	}
	slices.SortStableFunc(list, func(a, b chain) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(v.placeOf(a, place), v.placeOf(b, place)))
	})
	forced = true
	for i := 1; i < len(list); i++ {
		before, after := list[i-1], list[i]
		if before.key != after.key {
			continue
		}
		v.next[before.last] = after.first
		if int(before.first) >= v.keys && !ordered[[2]uint32{of[before.first], of[after.first]}] {
			forced = false
		}
	}
	return forced
}

// placeOf is where a chain is put: the initial one before all.
func (v *versions) placeOf(c chain, place []uint32) int {
	if int(c.first) < v.keys {
		return -1
	}
	return int(place[v.maker[c.first]])
}

// orderSessions notes of chains that one session wrote that they follow each other so.
func (v *versions) orderSessions(of []uint32, ordered map[[2]uint32]bool) {
	last := make([]uint32, v.keys) // of each key: its latest version by the session
	for s := range v.Sessions {
		for t := v.first[s]; t < v.first[s+1]; t++ {
			for i := v.writeRow[t]; i < v.writeRow[t+1]; i++ {
				key, made := v.writeKey[i], uint32(v.keys)+i
				if old := last[key]; int(old) >= v.keys && v.session[v.maker[old]] == uint32(s) && of[old] != of[made] {
					ordered[[2]uint32{of[old], of[made]}] = true
				}
				last[key] = made
			}
		}
	}
}
