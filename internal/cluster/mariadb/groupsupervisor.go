package mariadb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster"
)

const (
	superviseEvery = 200 * time.Millisecond // between two looks of the supervisor
	// joinLimit bounds one try to join the group, in which MySQL waits for the group to take
	// the member in, and one to form it.
	joinLimit = 90 * time.Second
)

// supervise looks at the members until the cluster is stopped.
func (g *Group) supervise() {
	for cluster.Sleep(g.Life, superviseEvery) == nil {
		sights := g.survey(g.Life)
		g.noteLeader(sights)
		g.regroup(g.Life, sights)
	}
}

// noteLeader notes who is primary, of one primary.
func (g *Group) noteLeader(sights map[*member]groupStatus) {
	if g.params.group.multiPrimary {
		return
	}
	if primary := elected(sights); primary != nil && g.leader != primary {
		g.leader = primary
		g.NoteLeader(primary.Name(), "%s leads", primary.Name())
	}
}

// regroup lets the members that are outside join a group that works. Where there is none
// and nobody is in one, the member with the newest data forms one.
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
		return // it is waited for those that are inside, or do not answer
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

// workingViews are the addresses of the members that are seen by those that see a majority.
// One that is outside and still seen there has come back before it was expelled: the group
// would refuse it, and take its answers for those of the one that it waits for.
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

// newestMember returns the one that has all transactions that any has; of several the one
// with the lowest number.
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
	return nil, errors.New("no member has all transactions that any has, so that none can form a group")
}

// letIn lets a member that is outside join the group, or form it, in the background,
// unless it does already. While one forms a group, nobody else is let in.
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

// join is one try of letIn.
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

// leaveAfter is how long STOP GROUP_REPLICATION is waited for until sessions are ended for it.
const leaveAfter = 10 * time.Second

// leave stops Group Replication on a member that its group has given up. MySQL waits there for
// the sessions that wait for the group before their first statement, as at BEFORE, and 9.7.4 was
// seen to leave such a session waiting after an expulsion, for 3 minutes and more. The group
// never answers it, so that it is ended then, as by an operator.
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

// endWaiting ends the sessions that wait for the group before their first statement, and says
// how many there were.
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

// lastError is what the member's log says last of what went wrong with the group, for the
// answer to START GROUP_REPLICATION only names the log.
func (m *member) lastError(ctx context.Context) error {
	var said string
	if m.ask(ctx, "SELECT DATA FROM performance_schema.error_log WHERE PRIO = 'Error' ORDER BY LOGGED DESC LIMIT 1", &said) != nil {
		return nil // it said nothing, and whoever waits has the first error
	}
	return fmt.Errorf("its log: %s", strings.TrimSpace(said))
}
