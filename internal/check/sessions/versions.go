package sessions

import (
	"slices"

	"stroppy/internal/check/graph"
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
	hubs   []hub
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

// runs returns the chains of each key that has several beside the initial one, as runs whose
// order is not known, and notes that the initial chain comes before all of them.
func (v *versions) runs() (groups [][]graph.Run) {
	list, _ := v.chains()
	others := make([]uint32, v.keys) // of each key: how many
	for _, c := range list {
		if int(c.first) >= v.keys {
			others[c.key]++
		}
	}
	group := make([]uint32, v.keys) // of each key, from 1
	open := map[uint32]*graph.Run{} // by the last version
	for _, c := range list {
		switch n := others[c.key]; {
		case n < 2:
		case int(c.first) < v.keys:
			groups = append(groups, make([]graph.Run, 0, n))
			group[c.key] = uint32(len(groups))
			v.hubs = append(v.hubs, hub{last: c.last})
		default:
			at := group[c.key] - 1
			groups[at] = append(groups[at], graph.Run{First: v.maker[c.first], Last: v.maker[c.last]})
			open[c.last] = &groups[at][len(groups[at])-1]
			v.hubs[at].firsts = append(v.hubs[at].firsts, v.maker[c.first])
		}
	}
	if len(open) == 0 {
		return nil
	}
	for t := uint32(1); t <= v.transactions(); t++ {
		for i := v.readRow[t]; i < v.readRow[t+1]; i++ {
			if r := open[v.read[i]]; r != nil && (len(r.Readers) == 0 || r.Readers[len(r.Readers)-1] != t) {
				r.Readers = append(r.Readers, t)
			}
		}
	}
	return groups
}

// hub is what the initial chain of a key comes before: its last version, and the makers of the
// first versions of all others.
type hub struct {
	last   uint32
	firsts []uint32
}
