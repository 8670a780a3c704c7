package nemesis

import (
	"context"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// processKinds lists the faults of all processes of a node.
func processKinds() []kind {
	return []kind{{
		word: "kill", usage: "kill TARGET", also: []string{"crash", "sigkill", "restart", "reboot"},
		about: "SIGKILL to all processes of the node at once; healed by a restart on its data",
		able:  both(kills, restarts), claims: partLife, inject: injectKill,
	}, {
		word: "stop", usage: "stop TARGET", also: []string{"shutdown", "terminate"},
		about: "shut the node down in good order; healed by a restart",
		able:  both(stops, restarts), claims: partLife, inject: injectStop,
	}, {
		word: "pause", usage: "pause TARGET", also: []string{"freeze", "suspend", "hang", "sigstop"},
		about: "SIGSTOP: connections stay open and nothing answers; healed by SIGCONT",
		able:  has[Pauser]("this kind of node cannot be paused"), claims: partPause,
		inject: func(ctx context.Context, _ effect, _ *state, n cluster.Node) (fault.Effect, error) {
			return still(ctx, n, n.(Pauser))
		},
	}, {
		word: "replace", usage: "replace TARGET", also: []string{"wipe"},
		about: "kill the node and take its data away; after `for`, or at once, it joins again empty",
		able:  both(kills, has[Replacer]("this kind of node cannot be replaced")), claims: partLife, heals: healAtOnce,
		few:    atLeast(2, "a cluster of one node has nobody to take the data from: kill it instead, or start more nodes"),
		inject: injectReplace,
	}}
}

func injectKill(ctx context.Context, _ effect, _ *state, n cluster.Node) (fault.Effect, error) {
	return down(ctx, n, n.(Killer).Kill, n.(Restarter).Restart)
}

func injectStop(ctx context.Context, _ effect, _ *state, n cluster.Node) (fault.Effect, error) {
	return down(ctx, n, n.(Terminator).Terminate, n.(Restarter).Restart)
}

func injectReplace(ctx context.Context, _ effect, _ *state, n cluster.Node) (fault.Effect, error) {
	replace := n.(Replacer).Replace
	e, err := down(ctx, n, n.(Killer).Kill, replace)
	e.EndsItself = false // the heal takes the data away
	e.Heal = func(ctx context.Context) (string, error) { return up(ctx, n, replace, " up on an empty folder") }
	return e, err
}
