package history

import (
	"slices"
	"sync"
)

// A cursor keeps no memory of a block above largeBlock bytes, and of a transaction with more
// than manyOps operations, once it has passed them: most cursors never meet another one.
const (
	largeBlock = 1 << 18
	manyOps    = 1 << 12
)

// Memory holds a few slices that nobody uses now, for who needs a large one next. A sync.Pool
// would make garbage of them while a check goes on. It may be used by several goroutines.
type Memory[T any] struct {
	mutex sync.Mutex
	free  [][]T
}

// mostFree is how many slices a Memory holds.
const mostFree = 4

// Take returns an empty slice with room for n.
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

// Put gives a slice back. Of more than it holds it keeps the largest.
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

// release gives away what the cursor holds of a large block.
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
