package bank

import "slices"

// keyWindow is how many accounts are sorted at a time: 16 MB of keys, however
// many accounts there are.
const keyWindow = 1 << 20

// bucketBits are the first bits of a key, by which a window is sorted at once.
// The rest is sorted bucket by bucket while the database takes the rows.
const bucketBits = 8

// keyOrder gives out the keys of the accounts so that those of each window of
// numbers ascend as the primary key has them: by the BAN, then by the BIC. A database sorts what it is given in order much faster into
// its primary key (half the time for a million rows was seen), and an
// engine that keeps rows in the order of the key writes them one behind the
// other.
type keyOrder struct {
	formula  *formula
	accounts uint64
	from     uint64 // the first account of the next window
	drawn    []uint64
	keys     []uint64 // of this window, the BAN first, sorted up to sorted
	next     int      // in keys
	sorted   int
}

// bankBits are those of the bank in a key.
const bankBits = keyBits - banBits

// banFirst puts the BAN of a key before its bank, and bankFirst back.
func banFirst(key uint64) uint64 { return ban(key)<<bankBits | key>>banBits }

func bankFirst(turned uint64) uint64 { return turned&(1<<bankBits-1)<<banBits | turned>>bankBits }

// take returns the next account and its key, or false after the last.
func (o *keyOrder) take() (n, key uint64, ok bool) {
	if o.next == o.sorted {
		if o.next == len(o.keys) && !o.window() {
			return 0, 0, false
		}
		o.bucket()
	}
	key = bankFirst(o.keys[o.next])
	o.next++
	return o.formula.number(key), key, true
}

// window draws the next accounts' keys and sorts them by their first bits.
func (o *keyOrder) window() bool {
	if o.from == o.accounts {
		return false
	}
	to := min(o.from+keyWindow, o.accounts)
	var place [1<<bucketBits + 1]int
	o.drawn = slices.Grow(o.drawn[:0], int(to-o.from))
	for n := o.from; n < to; n++ {
		key := banFirst(o.formula.key(n))
		o.drawn = append(o.drawn, key)
		place[key>>(keyBits-bucketBits)+1]++
	}
	for i := range place[1:] {
		place[i+1] += place[i]
	}
	o.keys = slices.Grow(o.keys[:0], len(o.drawn))[:len(o.drawn)]
	for _, key := range o.drawn {
		at := &place[key>>(keyBits-bucketBits)]
		o.keys[*at] = key
		*at++
	}
	o.next, o.sorted, o.from = 0, 0, to
	return true
}

// bucket sorts the next keys that have their first bits in common.
func (o *keyOrder) bucket() {
	first := o.keys[o.next] >> (keyBits - bucketBits)
	for o.sorted < len(o.keys) && o.keys[o.sorted]>>(keyBits-bucketBits) == first {
		o.sorted++
	}
	slices.Sort(o.keys[o.next:o.sorted])
}
