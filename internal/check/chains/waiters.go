package chains

import (
	"iter"

	"stroppy/internal/check"
)

// waiter waits for a version that it read, or to overwrite a version; in the second case op is overwriter.
type waiter struct {
	t  *transaction
	op int32 // index in t.operations()
}

const overwriter = -1

// waiters maps versions to waiting transactions. It is a hash table whose chains share one piece of memory,
// because a hot object has many short-lived waiters.
type waiters struct {
	chains []int32 // by hash: index in nodes of the first one, plus one; the length is a power of two
	nodes  []waiting
	free   int32 // index of the first unused node, plus one
	count  int
}

type waiting struct {
	waiter
	next int32 // index, plus one
	v    version
}

func (w *waiters) chain(v version) *int32 {
	return &w.chains[check.Mix(uint64(v.object)<<32|uint64(v.number))&uint64(len(w.chains)-1)]
}

func (w *waiters) add(v version, who waiter) {
	if w.count == len(w.chains) {
		w.grow()
	}
	w.count++
	n := w.free
	if n == 0 {
		w.nodes = append(w.nodes, waiting{})
		n = int32(len(w.nodes))
	} else {
		w.free = w.nodes[n-1].next
	}
	chain := w.chain(v)
	w.nodes[n-1] = waiting{who, *chain, v}
	*chain = n
}

// grow doubles the number of chains.
func (w *waiters) grow() {
	before := w.chains
	w.chains = make([]int32, max(64, 2*len(before)))
	for _, n := range before {
		for n != 0 {
			node := &w.nodes[n-1]
			chain := w.chain(node.v)
			n, node.next, *chain = node.next, *chain, n
		}
	}
}

// of yields the transactions that wait for a version.
func (w *waiters) of(v version) iter.Seq[waiter] {
	return func(yield func(waiter) bool) {
		if w.count == 0 {
			return
		}
		for n := *w.chain(v); n != 0; n = w.nodes[n-1].next {
			if node := &w.nodes[n-1]; node.v == v && !yield(node.waiter) {
				return
			}
		}
	}
}

// take removes and yields the transactions that wait for a version. The caller must not add waiters during
// the iteration.
func (w *waiters) take(v version) iter.Seq[waiter] {
	return func(yield func(waiter) bool) {
		w.drop(v, func(waiter) bool { return true }, yield)
	}
}

// remove removes the waiters of a transaction for a version.
func (w *waiters) remove(v version, t *transaction) {
	w.drop(v, func(who waiter) bool { return who.t == t }, func(waiter) bool { return true })
}

// drop removes the picked waiters for a version until do returns false.
func (w *waiters) drop(v version, pick, do func(waiter) bool) {
	if w.count == 0 {
		return
	}
	for link, more := w.chain(v), true; *link != 0 && more; {
		n := *link
		node := &w.nodes[n-1]
		if node.v != v || !pick(node.waiter) {
			link = &node.next
			continue
		}
		who := node.waiter
		*link = node.next
		*node = waiting{next: w.free}
		w.free = n
		w.count--
		more = do(who)
	}
}
