package fault

import "context"

// Effect is a fault that was verified to be in effect.
type Effect struct {
	Seen string // how it was seen
	// Still returns why the effect has ended although nobody has healed it. Nil means that this is unknown.
	Still func(ctx context.Context) error
	// Heal undoes the fault, verifies that its effect has ended, and returns how this was seen. It may be called
	// again after an error. Nil means that there is nothing to undo.
	Heal func(ctx context.Context) (seen string, err error)
	// EndsItself is set if Heal undoes nothing, but waits for an end that comes by itself.
	EndsItself bool
}
