package own

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/fault"
)

// TestCommandsGetTheirValues checks the placeholders and the places of commands.
func TestCommandsGetTheirValues(t *testing.T) {
	n := &node{number: 1, name: "pg'1", address: "10.0.0.1:5433"}
	for text, want := range map[string]string{
		"docker kill {name}":              "docker kill pg'1",
		"nc {host} {port}; {host}":        "nc 10.0.0.1 5433; 10.0.0.1",
		"echo ${name} {other} {print $1}": "echo ${name} {other} {print $1}",
	} {
		if got, err := (&command{text: text}).shell(n, n.values()); got != want || err != nil {
			t.Errorf("%s is %s, %v; want %s", text, got, err, want)
		}
	}
	if _, err := (&command{text: "date -s {by}", key: kill, file: "f.yaml", line: 3}).shell(n, n.values()); err == nil || !strings.Contains(err.Error(), "f.yaml:3: kill: {by} has no value here") {
		t.Errorf("a placeholder without a value: %v", err)
	}
	n.on = "ssh://admin@db1:2222"
	got, err := (&command{text: "echo {name}"}).shell(n, n.values())
	if want := `ssh -o BatchMode=yes -o ConnectTimeout=10 -p 2222 -- 'admin@db1' 'echo pg'\''1'`; got != want || err != nil {
		t.Errorf("by ssh: %s, %v; want %s", got, err, want)
	}
	for _, wrong := range []string{"db1", "ssh://", "ssh://db1/dir", "ssh://me:secret@db1", "http://db1"} {
		if _, err := remote(wrong); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("the place %s: %v", wrong, err)
		}
	}
}

// TestCommandsEndInTime checks that a command that hangs is killed, and that the log of the run has its output.
func TestCommandsEndInTime(t *testing.T) {
	c := &Cluster{inventory: inventory{timeout: 200 * time.Millisecond}, last: map[string]string{}}
	began := time.Now()
	_, err := c.run(t.Context(), &command{key: kill, text: "echo begun; sleep 100", file: "f.yaml", line: 7}, nil, false)
	if err == nil || !strings.Contains(err.Error(), "f.yaml:7: kill: it did not end in time and was killed: it had 200ms") || time.Since(began) > time.Minute {
		t.Errorf("a command that hangs: %v", err)
	}
	var log strings.Builder
	c.LogTo(slog.New(slog.NewTextHandler(&log, nil)))
	if !strings.Contains(log.String(), "output=begun") {
		t.Errorf("the log is %s", log.String())
	}
}

// TestPartitionsOfSingleNodes checks which nodes are isolated for the cuts of a partition, if the command isolate can make
// them.
func TestPartitionsOfSingleNodes(t *testing.T) {
	for _, c := range []struct {
		nodes        int
		left, right  []int
		want         []int
		notIsolation bool
	}{
		{nodes: 2, left: []int{1}, right: []int{0}, want: []int{1}},
		{nodes: 3, left: []int{1}, right: []int{0, 2}, want: []int{1}},
		{nodes: 3, left: []int{0, 2}, right: []int{1}, want: []int{1}},
		{nodes: 4, left: []int{0, 2}, right: []int{1, 3}, notIsolation: true},
		{nodes: 5, left: []int{4}, right: []int{0, 1, 2, 3}, want: []int{4}},
	} {
		own := new(Cluster)
		for i := range c.nodes {
			own.nodes = append(own.nodes, &node{number: i})
		}
		var cuts []fault.Cut
		for _, a := range c.left {
			for _, b := range c.right {
				cuts = append(cuts, fault.Between(a, b)...)
			}
		}
		var got []int
		for _, n := range own.alone(cuts) {
			got = append(got, n.number)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v | %v of %d nodes isolates %v, want %v", c.left, c.right, c.nodes, got, c.want)
		}
		if !c.notIsolation {
			continue
		}
		if _, err := own.Partition(t.Context(), cuts); err == nil || !strings.Contains(err.Error(), "groups of nodes are apart") {
			t.Errorf("%v | %v: %v", c.left, c.right, err)
		}
		if one := fault.Between(0, 1)[:1]; own.alone(one) != nil {
			t.Error("a cut in one direction isolates a node")
		}
	}
}

// TestClockIsSetAndSetBack checks that the commands of the inventory see a change of a clock. A clock that does not follow
// is an error. The clock is a file with its offset.
func TestClockIsSetAndSetBack(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	offset := filepath.Join(t.TempDir(), "offset")
	if err := os.WriteFile(offset, []byte("0"), 0o644); err != nil {
		t.Fatal(err)
	}
	commands := map[string]*command{
		setClock: {key: setClock, text: `echo "$(cat ` + offset + `) {by}" | awk '{print $1 + $2}' > ` + offset + `.new && mv ` + offset + `.new ` + offset},
		clock:    {key: clock, text: `echo "$(date +%s.%N) $(cat ` + offset + `)" | awk '{printf "%.3f", $1 + $2}'`},
	}
	c := &Cluster{inventory: inventory{timeout: time.Minute}, last: map[string]string{}, access: Access{Secret: func(string) bool { return false }}}
	n := &node{cluster: c, commands: commands}
	e, err := n.JumpClock(t.Context(), -30*time.Second)
	if err != nil || !strings.Contains(e.Seen, "differs by -30") && !strings.Contains(e.Seen, "differs by -29.9") {
		t.Fatalf("seen: %q, %v", e.Seen, err)
	}
	if seen, err := e.Heal(t.Context()); err != nil {
		t.Errorf("the heal: %q, %v", seen, err)
	}
	commands[setClock] = &command{key: setClock, text: "true {by}"}
	if _, err := n.JumpClock(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), " was expected") {
		t.Errorf("a clock that does not follow: %v", err)
	}
}
