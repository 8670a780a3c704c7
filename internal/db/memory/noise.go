package memory

import (
	"errors"
	"math/rand/v2"

	"stroppy/internal/db"
)

var (
	errRefused = &db.Error{Class: db.Aborted, Code: "refused", Op: "commit",
		Err: errors.New("the transaction was refused at random, as the address asks for")}
	errUnknown = &db.Error{Class: db.Unknown, Code: "lost", Op: "commit",
		Err: errors.New("the answer was lost: the transaction may have been applied")}
)

// noise is what honest databases do on bad days: they refuse transactions that
// another try commits, and lose their answers. It breaks no promise.
type noise struct {
	engine
	random         *rand.Rand
	unknown, abort float64
}

// commit decides about a transaction whose answer it loses before it answers:
// whether it was applied never changes afterwards.
func (n *noise) commit(tx *transaction) error {
	if len(tx.writes) == 0 {
		return n.engine.commit(tx)
	}
	if n.random.Float64() < n.abort {
		n.engine.forget(tx)
		return errRefused
	}
	lost := n.random.Float64() < n.unknown
	if lost && n.random.IntN(2) == 0 {
		n.engine.forget(tx)
		return errUnknown
	}
	if err := n.engine.commit(tx); err != nil || !lost {
		return err
	}
	return errUnknown
}
