package nemesis

import (
	"context"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

func stopKind() kind {
	return kind{
		word: "stop", usage: "stop TARGET", also: []string{"shutdown", "terminate"},
		about: "shut the node down in good order; healed by a restart",
		able:  both(stops, restarts), claims: partLife, inject: injectStop,
	}
}

func injectStop(ctx context.Context, _ effect, _ *state, n cluster.Node) (fault.Effect, error) {
	return down(ctx, n, n.(Terminator).Terminate, n.(Restarter).Restart)
}
