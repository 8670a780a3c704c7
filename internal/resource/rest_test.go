package resource

import "testing"

// TestRestExcludesProcessesInGroups checks that a descendant of this program counts once: in its group or in the rest.
func TestRestExcludesProcessesInGroups(t *testing.T) {
	one, other := busy(t), busy(t)
	server := family{root: int32(one.Process.Pid)}
	groups := WithRest(Self(), Group{Name: "server", PIDs: server.pids}, Group{Name: "elsewhere", Read: func() (Reading, bool) { return Reading{}, false }})
	meter := New(0, groups...)
	if rest := groups[3].PIDs(); len(rest) != 2 || rest[0] != other.Process.Pid {
		t.Errorf("the rest is %v, not %d and its child", rest, other.Process.Pid)
	}
	if s := meter.Sample(1); len(s.Groups) != 4 || !s.Groups[3].Known || !s.Groups[1].Known {
		t.Errorf("%+v", s)
	}
}
