package nemesis

import (
	"context"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

func replaceKind() kind {
	return kind{
		word: "replace", usage: "replace TARGET", also: []string{"wipe"},
		about: "kill the node and take its data away; after `for`, or at once, it joins again empty",
		able:  both(kills, has[Replacer]("replaced")), claims: partLife, heals: healAtOnce,
		few: atLeast(2, "a cluster of one node has nobody to take the data from: kill it instead, or start more nodes"),
		inject: func(ctx context.Context, _ effect, _ *state, n cluster.Node) (fault.Effect, error) {
			replace := n.(Replacer).Replace
			e, err := down(ctx, n, n.(Killer).Kill, replace)
			e.EndsItself = false // the heal takes the data away
			e.Heal = func(ctx context.Context) (string, error) { return up(ctx, n, replace, " up on an empty folder") }
			return e, err
		},
	}
}
