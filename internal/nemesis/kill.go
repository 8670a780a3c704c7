package nemesis

import (
	"context"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

func killKind() kind {
	return kind{
		word: "kill", usage: "kill TARGET", also: []string{"crash", "sigkill", "restart", "reboot"},
		about: "SIGKILL to all processes of the node at once; healed by a restart on its data",
		able:  both(kills, restarts), claims: partLife,
		inject: func(ctx context.Context, _ effect, _ *state, n cluster.Node) (fault.Effect, error) {
			return down(ctx, n, n.(Killer).Kill, n.(Restarter).Restart)
		},
	}
}
