package resource

import (
	"os"
	"slices"
)

// WithRest returns the groups and one more with all descendants of this program that are in none of them:
// programs that support a cluster, or that use processors as a fault. They belong to the run but to no other
// group. A Meter must sample the groups in this order.
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
