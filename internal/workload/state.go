package workload

import "stroppy/internal/history"

// State is the state of an object that transactions add amounts to.
type State struct{ Balance, Version, Last int64 }

// Object is the object of the end state that has this state.
func (s State) Object(n uint64) history.Object {
	return history.Object{N: n, Value: s.Balance, Version: uint64(s.Version), Writer: history.ID(s.Last)}
}
