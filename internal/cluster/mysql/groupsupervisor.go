package mysql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster/wait"
)

const (
	superviseEvery = 200 * time.Millisecond // interval of the supervisor's checks
	// joinLimit bounds one attempt to join the group, in which MySQL waits for the group to admit the member, and one
	// attempt to form it.
	joinLimit = 90 * time.Second
)

// supervise checks the members until the cluster is stopped.
func (g *Group) supervise() {
	for wait.Sleep(g.Life, superviseEvery) == nil {
		sights := g.survey(g.Life)
		g.noteLeader(sights)
		g.regroup(g.Life, sights)
	}
}

// noteLeader notes the primary, if there is only one.
func (g *Group) noteLeader(sights map[*member]groupStatus) {
	if g.params.group.multiPrimary {
		return
	}
	if primary := elected(sights); primary != nil && g.leader != primary {
		g.leader = primary
		g.NoteLeader(primary.Name(), "%s leads", primary.Name())
	}
}

// regroup lets the members that are outside join a group that works. If there is none and nobody is in one, the
// member with the newest data forms one.
func (g *Group) regroup(ctx context.Context, sights map[*member]groupStatus) {
	inside := false
	for _, s := range sights {
		inside = inside || !s.outside()
	}
	if works := workingViews(sights); len(works) > 0 {
		for m, s := range sights {
			if s.outside() && !works[m.address.String()] {
				g.letIn(m, s, false)
			}
		}
		return
	}
	members := g.List()
	if inside || len(sights) < len(members) || len(members) == 0 {
		return // wait for members that are inside or do not answer
	}
	first, err := newestMember(ctx, sights)
	if err != nil {
		for m := range sights {
			m.failed.Store(&err)
		}
		return
	}
	g.letIn(first, sights[first], true)
}

// workingViews returns the addresses in the views of the members that see a majority. A member that is outside and
// still in a view has returned before it was expelled. The group would refuse it, and confuse it with the member that
// it waits for.
func workingViews(sights map[*member]groupStatus) map[string]bool {
	seen := map[string]bool{}
	for _, s := range sights {
		if !s.works() {
			continue
		}
		for _, one := range s.view {
			seen[one.address] = true
		}
	}
	return seen
}

// newestMember returns the member that has all transactions of all members; of several, the one with the lowest
// number.
func newestMember(ctx context.Context, sights map[*member]groupStatus) (*member, error) {
	members := slices.SortedFunc(maps.Keys(sights), func(a, b *member) int { return a.Number() - b.Number() })
	for _, m := range members {
		all := true
		for _, other := range members {
			has, err := m.has(ctx, sights[m].received, sights[other].received)
			if err != nil {
				return nil, err
			}
			all = all && has
		}
		if all {
			return m, nil
		}
	}
	return nil, errors.New("no member has the transactions of all members, so none can form a group")
}

// letIn lets a member that is outside join the group or form it, in the background, unless it does so already. While
// one member forms a group, no other one is let in.
func (g *Group) letIn(m *member, s groupStatus, forms bool) {
	if _, already := g.joining.LoadOrStore(m, true); already {
		return
	}
	g.Tasks.Go(func() {
		defer g.joining.Delete(m)
		began := time.Now()
		err := m.join(m.Life(), s, forms)
		if err != nil {
			err = errors.Join(err, m.lastError(m.Life()))
			m.failed.Store(&err)
			return
		}
		m.failed.Store(nil)
		what := "joins the group"
		if forms {
			what = "forms a group"
		}
		g.Note("%s %s, which it asked for %v ago", m.Name(), what, time.Since(began).Round(time.Millisecond))
	})
}

// join is one attempt of letIn.
func (m *member) join(ctx context.Context, s groupStatus, forms bool) error {
	if s.state == failedState {
		if err := m.leave(ctx); err != nil {
			return err
		}
	}
	start := "START GROUP_REPLICATION USER = '" + Superuser + "', PASSWORD = ''"
	if !forms {
		return m.do(ctx, joinLimit, start)
	}
	err := m.do(ctx, joinLimit, "SET GLOBAL group_replication_bootstrap_group = ON", start)
	undoing, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	return errors.Join(err, m.do(undoing, askLimit, "SET GLOBAL group_replication_bootstrap_group = OFF"))
}

// leaveAfter is how long to wait for STOP GROUP_REPLICATION before sessions are ended for it.
const leaveAfter = 10 * time.Second

// leave stops Group Replication on a member that its group has expelled. MySQL first waits for sessions that wait for
// the group before their first statement, as with BEFORE. Version 9.7.4 left such a session waiting after an
// expulsion for more than 3 minutes. The group never answers the session, so it is ended, as by an operator.
func (m *member) leave(ctx context.Context) error {
	left := make(chan error, 1)
	go func() { left <- m.do(ctx, joinLimit, "STOP GROUP_REPLICATION") }()
	select {
	case err := <-left:
		return err
	case <-time.After(leaveAfter):
	}
	ended, err := m.endWaiting(ctx)
	if ended > 0 {
		m.set.NoteRepair("%s was given up by its group, and did not leave it for %v because of %d sessions that waited for the group: they were ended, as by an operator",
			m.Name(), leaveAfter, ended)
	}
	return errors.Join(err, <-left)
}

// endWaiting ends the sessions that wait for the group before their first statement, and returns their number.
func (m *member) endWaiting(ctx context.Context) (ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	rows, err := m.db.QueryContext(ctx, "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Executing hook on transaction begin%'")
	if err != nil {
		return 0, fmt.Errorf("ask %s which sessions wait for its group: %w", m.Name(), err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return ended, err
		}
		if err := m.do(ctx, askLimit, "KILL "+strconv.FormatInt(id, 10)); err != nil {
			return ended, err
		}
		ended++
	}
	return ended, rows.Err()
}

// lastError returns the last error about the group in the member's log, because the answer to START GROUP_REPLICATION
// only refers to the log.
func (m *member) lastError(ctx context.Context) error {
	var said string
	if m.ask(ctx, "SELECT DATA FROM performance_schema.error_log WHERE PRIO = 'Error' ORDER BY LOGGED DESC LIMIT 1", &said) != nil {
		return nil // there is none, and the caller has the first error
	}
	return fmt.Errorf("its log: %s", strings.TrimSpace(said))
}
