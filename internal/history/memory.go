package history

import (
	"slices"
	"sync"
)

// After use, a cursor does not keep the memory of a block above largeBlock bytes, or of a transaction with
// more than manyOps operations. Most cursors never meet another one.
const (
	largeBlock = 1 << 18
	manyOps    = 1 << 12
)

// Memory holds a few unused slices for the next user of a large one. A sync.Pool would release them to the
// garbage collector during a check. Several goroutines may use it.
type Memory[T any] struct {
	mutex sync.Mutex
	free  [][]T
}

// mostFree is the maximal number of slices in a Memory.
const mostFree = 4

// Take returns an empty slice with capacity for n elements.
func (m *Memory[T]) Take(n int) []T {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for i := range slices.Backward(m.free) {
		if s := m.free[i]; cap(s) >= n {
			m.free = slices.Delete(m.free, i, i+1)
			return s[:0]
		}
	}
	return make([]T, 0, n)
}

// Put returns a slice to the memory, which keeps the largest ones.
func (m *Memory[T]) Put(s []T) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.free = append(m.free, s); len(m.free) > mostFree {
		least := 0
		for i := range m.free {
			if cap(m.free[i]) < cap(m.free[least]) {
				least = i
			}
		}
		m.free = slices.Delete(m.free, least, least+1)
	}
}

var (
	largeBuffers Memory[byte]
	largeOps     Memory[Op]
)

// release releases the cursor's memory of a large block.
func (c *Cursor) release() {
	c.releaseOps()
	if cap(c.buffer) > largeBlock {
		largeBuffers.Put(c.buffer)
		c.buffer, c.decoder = nil, decoder{}
	}
}

func (c *Cursor) releaseOps() {
	if cap(c.Transaction.Ops) > manyOps {
		largeOps.Put(c.Transaction.Ops)
		c.Transaction.Ops = nil
	}
}
