package nemesis

import (
	"context"
	"fmt"
	"slices"

	"stroppy/internal/cluster"
)

// Agented is a node with an agent beside its database, a process of its own that fails over.
// The agent's Restart and Resume return when it says of its database that it is well.
type Agented interface {
	Agent() cluster.Auxiliary
}

// Stored is a cluster whose agents note who leads in servers of their own.
type Stored interface {
	Store() []cluster.Auxiliary
}

// failoverKinds are the faults of what decides who leads.
func failoverKinds() []kind {
	agented := fit("no agent fails over beside this kind of node", "%s: %w", func(Agented) error { return nil })
	stored := is[Stored]("this kind of cluster keeps who leads in no servers of their own")
	return []kind{
		{word: killAgent, usage: "kill-agent TARGET", about: "SIGKILL to the agent of the node that fails over, such as Patroni or a Sentinel, and not to its database; healed by a restart of the agent",
			able: agented, claims: partLife, inject: func(ctx context.Context, _ effect, _ *state, n cluster.Node) (cluster.Effect, error) {
				a := n.(Agented).Agent()
				return down(ctx, a, a.Kill, a.Restart)
			}},
		{word: pauseAgent, usage: "pause-agent TARGET", about: "SIGSTOP to the agent of the node alone; healed by SIGCONT",
			able: agented, claims: partLife, inject: func(ctx context.Context, _ effect, _ *state, n cluster.Node) (cluster.Effect, error) {
				a := n.(Agented).Agent()
				return still(ctx, a, a)
			}},
		{word: killStore, usage: "kill-store", about: "SIGKILL to all servers that keep who leads, where an agent such as Patroni has them; healed by their restart",
			able: stored, plan: planStore(func(ctx context.Context, a cluster.Auxiliary) (cluster.Effect, error) {
				return down(ctx, a, a.Kill, a.Restart)
			})},
		{word: pauseStore, usage: "pause-store", about: "SIGSTOP to all servers that keep who leads; healed by SIGCONT",
			able: stored, plan: planStore(func(ctx context.Context, a cluster.Auxiliary) (cluster.Effect, error) { return still(ctx, a, a) })},
	}
}

// planStore plans a fault of all servers of the store. One of them at a time.
func planStore(inject func(context.Context, cluster.Auxiliary) (cluster.Effect, error)) func(effect, *state, situation) (*injection, error) {
	return func(_ effect, s *state, _ situation) (*injection, error) {
		if s.claimed(anyNode, partStore) {
			return nil, errSamePart
		}
		servers := s.cluster.(Stored).Store()
		names := list(servers, cluster.Auxiliary.Name)
		if at := slices.IndexFunc(servers, func(a cluster.Auxiliary) bool { return !a.Running() }); at >= 0 {
			return nil, fmt.Errorf("%s is not running, and it was no fault of the script that ended it", names[at])
		}
		return &injection{
			target: joined(names), claims: []claim{{anyNode, partStore}}, stage: stageRelease,
			inject: func(ctx context.Context) (cluster.Effect, error) {
				return onEach(servers, func(a cluster.Auxiliary) (cluster.Effect, error) { return inject(ctx, a) })
			},
		}, nil
	}
}
