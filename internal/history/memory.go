package history

import "sync"

// A cursor keeps no memory of a block above largeBlock bytes, and of a transaction with more
// than manyOps operations, once it has passed them: most cursors never meet another one.
const (
	largeBlock = 1 << 18
	manyOps    = 1 << 12
)

// memory holds slices that nobody uses now.
type memory[T any] struct{ pool sync.Pool }

// take returns an empty slice with room for n.
func (m *memory[T]) take(n int) []T {
	if p, ok := m.pool.Get().(*[]T); ok && cap(*p) >= n {
		return (*p)[:0]
	}
	return make([]T, 0, n)
}

func (m *memory[T]) put(s []T) { m.pool.Put(&s) }

var (
	largeBuffers memory[byte]
	largeOps     memory[Op]
)

// release gives away what the cursor holds of a large block.
func (c *Cursor) release() {
	c.releaseOps()
	if cap(c.buffer) > largeBlock {
		largeBuffers.put(c.buffer)
		c.buffer, c.decoder = nil, decoder{}
	}
}

func (c *Cursor) releaseOps() {
	if cap(c.Transaction.Ops) > manyOps {
		largeOps.put(c.Transaction.Ops)
		c.Transaction.Ops = nil
	}
}
