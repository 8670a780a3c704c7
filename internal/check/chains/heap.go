package chains

// heap is a priority queue with the smallest key on top. Each node has four children: they fill one or two
// cache lines, and the tree has half the height.
type heap[T any] []keyed[T]

type keyed[T any] struct {
	key   int64
	value T
}

func (h *heap[T]) push(key int64, value T) {
	*h = append(*h, keyed[T]{key, value})
	list := *h
	for i := len(list) - 1; i > 0; {
		parent := (i - 1) / 4
		if list[parent].key <= list[i].key {
			return
		}
		list[parent], list[i] = list[i], list[parent]
		i = parent
	}
}

// pop removes and returns the top.
func (h *heap[T]) pop() T {
	list := *h
	top, last := list[0].value, len(list)-1
	list[0] = list[last]
	list[last] = keyed[T]{}
	*h = list[:last]
	h.down()
	return top
}

// down restores the order after the key of the top has grown.
func (h heap[T]) down() {
	if len(h) == 0 {
		return
	}
	moved, i := h[0], 0
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for child := first + 1; child < min(first+4, len(h)); child++ {
			if h[child].key < h[least].key {
				least = child
			}
		}
		if moved.key <= h[least].key {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = moved
}
