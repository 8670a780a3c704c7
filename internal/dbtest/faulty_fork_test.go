package dbtest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"stroppy/internal/db"
)

// fork is a long fork: two snapshots and the commits between them, in parts that share no object. One reader sees some
// parts as committed and the others as missing; another reader sees the opposite. Each view is a consistent snapshot,
// but no order of the parts allows both.
type fork struct {
	past past // the earlier snapshot; its lock guards the fields below
	now  past // the later snapshot

	running map[*sqlSession][]string // the objects of commits that have not returned
	between [][]string               // the objects of each commit that may be between the snapshots
	parts   []map[string]bool        // objects of each part, set when the later snapshot is taken
	shown   map[string]int           // number of readers, by the objects that they read
}

// forkCommits is the least number of commits between the snapshots; more commits would soon share an object.
// forkTooOld is the number of commits after which a fork without a second reader is discarded.
const (
	forkCommits = 2
	forkTooOld  = 150
)

// newFork returns a fork without snapshots.
func newFork(database db.SQL) fork {
	return fork{past: past{database: database}, now: past{database: database}, running: map[*sqlSession][]string{}}
}

// begins records a commit before it is sent. A commit that fails only makes a part larger.
func (f *fork) begins(s *sqlSession) {
	f.past.mu.Lock()
	defer f.past.mu.Unlock()
	f.running[s] = objects(s.calls)
	if f.past.session != nil && f.now.session == nil {
		f.between = append(f.between, f.running[s])
	}
}

// ended records that a commit has returned.
func (f *fork) ended(s *sqlSession) {
	f.past.mu.Lock()
	defer f.past.mu.Unlock()
	delete(f.running, s)
	f.past.commits++
}

// close closes the sessions of both snapshots.
func (f *fork) close() {
	f.past.close()
	f.now.close()
}

// read returns the falsified result for a reader of two objects in different parts. forked reports whether an earlier
// reader saw these objects in the opposite order. The result is nil if the reader cannot show a fork.
func (f *fork) read(ctx context.Context, c call) (seen *db.Result, forked bool) {
	f.past.mu.Lock()
	defer f.past.mu.Unlock()
	switch {
	case f.past.session == nil || f.past.commits >= forkTooOld:
		f.start(ctx, c)
		return nil, false
	case f.now.session == nil:
		if f.past.commits >= forkCommits {
			f.now.renew(ctx, c)
			f.parts = partsOf(f.between)
		}
		return nil, false
	case len(f.parts) < 2:
		f.start(ctx, c)
		return nil, false
	}
	before, err := ask(ctx, f.past.session, c)
	if err != nil {
		return nil, false
	}
	after, err := ask(ctx, f.now.session, c)
	if err != nil || before.Rows() != 2 || after.Rows() != 2 {
		return nil, false
	}
	one, two := f.part(after.Row(0)), f.part(after.Row(1))
	if one < 0 || two < 0 || one == two || same(before.Row(0), after.Row(0)) || same(before.Row(1), after.Row(1)) {
		return nil, false
	}
	first, second := before, after // the first row comes from one snapshot, the second from the other
	key := fmt.Sprint(objects([]call{c}))
	turn := f.shown[key]
	f.shown[key]++
	if (one < two) == (turn > 0) {
		first, second = after, before
	}
	after.Values = slices.Concat(first.Row(0), second.Row(1))
	if turn > 0 {
		f.start(ctx, c)
	}
	return after, turn > 0
}

// start takes the earlier snapshot of the next fork.
func (f *fork) start(ctx context.Context, c call) {
	f.now.close()
	f.past.renew(ctx, c)
	f.parts, f.shown, f.between = nil, map[string]int{}, nil
	for _, objects := range f.running {
		f.between = append(f.between, objects)
	}
}

// part returns the index of the part that contains the row's object, or -1.
func (f *fork) part(row []db.Value) int {
	found := objects([]call{{args: row}})
	return slices.IndexFunc(f.parts, func(p map[string]bool) bool { return len(found) > 0 && p[found[0]] })
}

// partsOf groups commits that share an object.
func partsOf(commits [][]string) (parts []map[string]bool) {
	for _, names := range commits {
		joined := map[string]bool{}
		for _, name := range names {
			joined[name] = true
		}
		parts = slices.DeleteFunc(parts, func(p map[string]bool) bool {
			common := slices.ContainsFunc(names, func(name string) bool { return p[name] })
			if common {
				maps.Copy(joined, p)
			}
			return common
		})
		parts = append(parts, joined)
	}
	return parts
}

// objects returns the sorted keys among the arguments of the statements. A key is a text followed by a number, as in
// the bank.
func objects(calls []call) (names []string) {
	for _, c := range calls {
		for i := range len(c.args) - 1 {
			if len(c.args[i].Text) > 0 && len(c.args[i+1].Text) == 0 {
				names = append(names, fmt.Sprintf("%s/%d", c.args[i].Text, c.args[i+1].Int))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// same reports whether two rows are equal.
func same(a, b []db.Value) bool { return slices.EqualFunc(a, b, sameValue) }
