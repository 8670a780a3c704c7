package sessions

import (
	"slices"

	"stroppy/internal/check/graph"
)

// versions holds the values of all keys as far as their order is known. Version k is the initial value of key
// k; version keys+i is the value that the transaction of writeKey[i] left.
//
// Under snapshot isolation and serializability, a transaction that read a version and wrote its key made the
// next version. So versions form chains; the order of a key's chains remains open.
type versions struct {
	*resolved
	maker  []uint32  // by version
	read   []uint32  // by resolved read: the version
	next   []uint32  // by version: the version that overwrote it; 0: none, because version 0 overwrites nothing
	second [2]uint32 // two reads of one version that both transactions overwrote, if any
	lost   bool
	hubs   []hub
}

// versions builds the chains.
func (r *resolved) versions() *versions {
	v := &versions{resolved: r, maker: make([]uint32, r.keys+len(r.writeKey)), read: make([]uint32, len(r.readKey))}
	v.next = make([]uint32, len(v.maker))
	from := make([]uint32, len(v.maker)) // by version: the read, from 1, of the transaction that overwrote it
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

// of returns the version that t left of a key. t must have written the key.
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

// keyOf returns the key of a version.
func (v *versions) keyOf(version uint32) uint32 {
	if int(version) < v.keys {
		return version
	}
	return v.writeKey[int(version)-v.keys]
}

// chain is the first and last version of a chain.
type chain struct{ first, last, key uint32 }

// chains returns all chains, and for each key the number of chains beside the initial one. The chains of the initial
// versions come first, sorted by key.
func (v *versions) chains() (list []chain, others []uint32) {
	overwrites := make([]bool, len(v.maker))
	for _, next := range v.next {
		overwrites[next] = true
	}
	others = make([]uint32, v.keys)
	for version := range v.maker {
		if int(version) >= v.keys && overwrites[version] {
			continue
		}
		c := chain{first: uint32(version), last: uint32(version), key: v.keyOf(uint32(version))}
		for v.next[c.last] != 0 {
			c.last = v.next[c.last]
		}
		if list = append(list, c); int(c.first) >= v.keys {
			others[c.key]++
		}
	}
	return list, others
}

// joinPairs joins the chains of keys with only one chain beside the initial one.
func (v *versions) joinPairs() {
	list, others := v.chains()
	for _, c := range list { // the first ones are initial
		if int(c.first) >= v.keys && others[c.key] == 1 {
			v.next[list[c.key].last] = c.first
		}
	}
}

// runs returns, for each key with several other chains, these chains as runs without a known order. It also
// records that the initial chain precedes them.
func (v *versions) runs() (groups [][]graph.Run) {
	list, others := v.chains()
	group := make([]uint32, v.keys) // by key, from 1
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

// hub replaces many edges of one key: from the last version of its initial chain to the makers of the first versions of
// its other chains.
type hub struct {
	last   uint32
	firsts []uint32
}
