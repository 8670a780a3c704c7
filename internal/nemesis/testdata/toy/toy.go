package nemesis

import (
	"context"

	"stroppy/internal/cluster"
)

// toyKind kills a node and restarts it at once.
func toyKind() kind {
	return kind{
		word: "toy", usage: "toy TARGET", about: "kill the node and restart it at once", also: []string{"plaything"},
		able: both(kills, restarts), claims: partLife, heals: healAtOnce,
		inject: func(ctx context.Context, _ effect, _ *state, n cluster.Node) (cluster.Effect, error) {
			return down(ctx, n, n.(Killer).Kill, n.(Restarter).Restart)
		},
	}
}
