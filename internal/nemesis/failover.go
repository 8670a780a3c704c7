package nemesis

import (
	"context"
	"fmt"
	"slices"

	"stroppy/internal/cluster"
	"stroppy/internal/fault"
)

// Agented is a node with an agent, a process beside its database that manages failover. The agent's
// Restart and Resume return when the agent reports a healthy database.
type Agented interface{ Agent() cluster.Auxiliary }

// Stored is a cluster whose agents note the leader in separate servers.
type Stored interface{ Store() []cluster.Auxiliary }

// failoverKinds lists the faults of the processes that manage failover.
func failoverKinds() []kind {
	return []kind{
		agentKind("kill-agent", "SIGKILL to the fail-over agent of the node (Patroni or a Sentinel), not to its database; healed by a restart of the agent", killAuxiliary),
		agentKind("pause-agent", "SIGSTOP to the agent of the node alone; healed by SIGCONT", pauseAuxiliary),
		storeKind("kill-store", "SIGKILL to all servers that keep who leads, where an agent such as Patroni has them; healed by their restart", killAuxiliary),
		storeKind("pause-store", "SIGSTOP to all servers that keep who leads; healed by SIGCONT", pauseAuxiliary),
	}
}

func killAuxiliary(ctx context.Context, a cluster.Auxiliary) (fault.Effect, error) {
	return down(ctx, a, a.Kill, a.Restart)
}

func pauseAuxiliary(ctx context.Context, a cluster.Auxiliary) (fault.Effect, error) {
	return still(ctx, a, a)
}

// agentKind is a fault of the agents of nodes.
func agentKind(word, about string, inject func(context.Context, cluster.Auxiliary) (fault.Effect, error)) kind {
	return kind{
		word: word, usage: word + " TARGET", about: about, claims: partLife, agent: true,
		able: has[Agented]("no agent fails over beside this kind of node"),
		inject: func(ctx context.Context, _ effect, _ *state, n cluster.Node) (fault.Effect, error) {
			return inject(ctx, n.(Agented).Agent())
		},
	}
}

// storeKind is a fault of all servers of the store, one fault at a time.
func storeKind(word, about string, inject func(context.Context, cluster.Auxiliary) (fault.Effect, error)) kind {
	return kind{
		word: word, usage: word, about: about, able: is[Stored]("this kind of cluster keeps who leads in no servers of their own"),
		plan: func(_ effect, s *state, _ situation) (*injection, error) {
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
				inject: func(ctx context.Context) (fault.Effect, error) {
					return onEach(servers, func(a cluster.Auxiliary) (fault.Effect, error) { return inject(ctx, a) })
				},
			}, nil
		},
	}
}
