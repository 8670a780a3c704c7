package cluster

import (
	"sync"
	"time"
)

// health is how a node answers those who come over the network, as clients do.
type health struct {
	lock    sync.Mutex
	unheard time.Time // when the first question was asked that has no answer; zero if all have
}

// Asked notes that the node is asked whether it lives.
func (h *health) Asked() {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.unheard.IsZero() {
		h.unheard = time.Now()
	}
}

// Answered notes that the node has answered.
func (h *health) Answered() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.unheard = time.Time{}
}

// Silence is how long the node has not answered, zero if it has.
func (h *health) Silence() time.Duration {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.unheard.IsZero() {
		return 0
	}
	return time.Since(h.unheard)
}
