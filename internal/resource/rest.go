package resource

import (
	"os"
	"slices"
)

// WithRest returns the groups and, behind them, one of all processes that this program has started,
// or they in turn, and that are in none of the groups: programs that keep a cluster, or that take
// processors up as a fault. They belong to the run, and nobody reports them. A Meter must sample the
// groups in this order.
func WithRest(groups ...Group) []Group {
	return withRest(int32(os.Getpid()), groups)
}

func withRest(root int32, groups []Group) []Group {
	all := slices.Clone(groups)
	last := make([][]int, len(groups))
	for i, g := range groups {
		if g.PIDs != nil {
			all[i].PIDs = func() []int {
				last[i] = g.PIDs()
				return last[i]
			}
		}
	}
	started := family{root: root}
	return append(all, Group{Name: "rest", PIDs: func() []int {
		return slices.DeleteFunc(started.pids(), func(pid int) bool {
			return slices.ContainsFunc(last, func(group []int) bool { return slices.Contains(group, pid) })
		})
	}})
}
