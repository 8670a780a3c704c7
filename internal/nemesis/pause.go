package nemesis

import (
	"context"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

func pauseKind() kind {
	return kind{
		word: "pause", usage: "pause TARGET", also: []string{"freeze", "suspend", "hang", "sigstop"},
		about: "SIGSTOP: connections stay open and nothing answers; healed by SIGCONT",
		able:  has[Pauser]("paused"), claims: partPause,
		inject: func(ctx context.Context, _ effect, _ *state, n cluster.Node) (fault.Effect, error) {
			return still(ctx, n, n.(Pauser))
		},
	}
}
