package dbtest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"stroppy/internal/db"
)

// fork is two snapshots with a few commits between them that fall into parts which have
// no object in common. Readers see some parts as committed and the others as not yet
// committed, or the other way round. Each view is a consistent snapshot; no order of the
// parts gives both.
type fork struct {
	past past // the earlier snapshot; its lock guards the fields here
	now  past // the later one

	running map[*sqlSession][]string // the objects of commits that have not returned
	between [][]string               // the objects of each commit that may be between the snapshots
	parts   []map[string]bool        // of what is between them, once the later one is taken
	shown   map[string]int           // readers, by the objects that they read
}

// So many commits are between the snapshots, at least; more would soon have an object in
// common. A fork without a second reader is given up after so many.
const (
	forkCommits = 2
	forkTooOld  = 150
)

func newFork(database db.SQL) fork {
	return fork{past: past{database: database}, now: past{database: database}, running: map[*sqlSession][]string{}}
}

// begins notes a commit before it is sent. One that fails makes parts larger, which does
// no harm.
func (f *fork) begins(s *sqlSession) {
	f.past.mu.Lock()
	defer f.past.mu.Unlock()
	f.running[s] = objects(s.calls)
	if f.past.session != nil && f.now.session == nil {
		f.between = append(f.between, f.running[s])
	}
}

func (f *fork) ended(s *sqlSession) {
	f.past.mu.Lock()
	defer f.past.mu.Unlock()
	delete(f.running, s)
	f.past.commits++
}

func (f *fork) close() {
	f.past.close()
	f.now.close()
}

// read returns what a reader of two objects of different parts sees, and whether an
// earlier reader saw the same two in the other order. A nil result is no lie: the reader
// has other objects, or it has served to take a snapshot.
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
	first, second := before, after // the first row is from one, the second from the other
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

// part returns the number of the part that has a row's object; -1 if none has.
func (f *fork) part(row []db.Value) int {
	found := objects([]call{{args: row}})
	return slices.IndexFunc(f.parts, func(p map[string]bool) bool { return len(found) > 0 && p[found[0]] })
}

// partsOf joins commits that have an object in common.
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

// objects returns the keys among the arguments of the statements, sorted: a text and the
// number behind it, as the bank's are.
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

func same(a, b []db.Value) bool { return slices.EqualFunc(a, b, sameValue) }
