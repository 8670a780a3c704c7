package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// States of members that are used here
// (https://dev.mysql.com/doc/refman/8.4/en/group-replication-server-states.html).
const online, offline, failedState, unreachable = "ONLINE", "OFFLINE", "ERROR", "UNREACHABLE"

// groupStatus is a member's own state and its view of the others.
type groupStatus struct {
	state    string // its own
	writable bool   // it accepts writes
	executed string // GTIDs of the transactions that are committed here
	received string // GTIDs of the transactions that are or will be committed here
	view     []seen
}

// seen is a member in the view of another one.
type seen struct {
	address     string
	state, role string
}

// outside reports whether the member is in no group and does not try to join one.
func (s groupStatus) outside() bool { return s.state == offline || s.state == failedState }

// works reports whether the member is in a group and sees a majority of it.
func (s groupStatus) works() bool { return s.state == online && s.majority() }

func (s groupStatus) majority() bool {
	reached := 0
	for _, one := range s.view {
		if one.state != unreachable {
			reached++
		}
	}
	return 2*reached > len(s.view)
}

// primary returns the address of the only primary in the member's view, or "" if there is none.
func (s groupStatus) primary() (address string) {
	for _, one := range s.view {
		switch {
		case one.role != "PRIMARY":
		case address != "":
			return ""
		default:
			address = one.address
		}
	}
	return address
}

const (
	selfQuery = `SELECT @@GLOBAL.super_read_only = 0 AND @@GLOBAL.read_only = 0, @@GLOBAL.gtid_executed,
	COALESCE((SELECT RECEIVED_TRANSACTION_SET FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = 'group_replication_applier'), '')`
	viewQuery = `SELECT MEMBER_ID = @@GLOBAL.server_uuid, MEMBER_HOST, COALESCE(MEMBER_PORT, 0), MEMBER_STATE, MEMBER_ROLE
	FROM performance_schema.replication_group_members`
)

func (m *member) status(ctx context.Context) (s groupStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err = m.askSelf(ctx, &s); err == nil {
		err = m.askView(ctx, &s)
	}
	if err != nil {
		return groupStatus{}, fmt.Errorf("%s does not report its state: %w", m.Name(), err)
	}
	return s, nil
}

func (m *member) askSelf(ctx context.Context, s *groupStatus) error {
	err := m.db.QueryRowContext(ctx, selfQuery).Scan(&s.writable, &s.executed, &s.received)
	if s.received += "," + s.executed; s.received[0] == ',' {
		s.received = s.executed
	}
	return err
}

func (m *member) askView(ctx context.Context, s *groupStatus) error {
	rows, err := m.db.QueryContext(ctx, viewQuery)
	if err != nil {
		return err
	}
	defer rows.Close()
	s.state = offline // of a member that was never in a group
	for rows.Next() {
		var own bool
		var host string
		var port int
		var one seen
		if err := rows.Scan(&own, &host, &port, &one.state, &one.role); err != nil {
			return err
		}
		one.address = net.JoinHostPort(host, strconv.Itoa(port))
		if own {
			s.state = one.state
		}
		s.view = append(s.view, one)
	}
	return rows.Err()
}

// ask asks for one value.
func (m *member) ask(ctx context.Context, query string, value any, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := m.db.QueryRowContext(ctx, query, args...).Scan(value); err != nil {
		return fmt.Errorf("ask %s %s: %w", m.Name(), query, err)
	}
	return nil
}

// has reports whether a set of GTIDs is contained in another one.
func (m *member) has(ctx context.Context, all, set string) (has bool, err error) {
	err = m.ask(ctx, "SELECT GTID_SUBSET(?, ?)", &has, set, all)
	return has, err
}

// survey asks all members that run and are not paused. The result lacks members that do not answer.
func (g *Group) survey(ctx context.Context) map[*member]groupStatus {
	members := g.List()
	statuses := make([]*groupStatus, len(members))
	_ = g.Each(func(m *member) error {
		if m.Awake() {
			if s, err := m.status(ctx); err == nil {
				statuses[m.Number()] = &s
			}
		}
		return nil
	})
	sights := map[*member]groupStatus{}
	for i, s := range statuses {
		if s != nil {
			sights[members[i]] = *s
		}
	}
	return sights
}

// elected returns the primary of the group, or nil. Most of the working members must name it, and it must accept
// writes.
func elected(sights map[*member]groupStatus) (primary *member) {
	votes := map[string]int{}
	for _, s := range sights {
		if s.works() && s.primary() != "" {
			votes[s.primary()]++
		}
	}
	for m, s := range sights {
		own := m.address.String()
		if s.works() && s.writable && s.primary() == own && (primary == nil || votes[own] > votes[primary.address.String()]) {
			primary = m
		}
	}
	return primary
}

// primary returns the primary that the group has elected and that accepts writes.
func (g *Group) primary(ctx context.Context) (*member, error) {
	primary := elected(g.survey(ctx))
	if primary == nil {
		return nil, errors.New("no running member is primary")
	}
	return primary, nil
}

// checkHealthy begins a wait. Its result returns nil if all members see each other in one group and the primaries
// accept writes. Each member must have committed all that any of them had when they first saw each other.
func (g *Group) checkHealthy() func(ctx context.Context) error {
	var goal []string // committed by each at that time
	return func(ctx context.Context) error {
		now, err := g.whole(ctx)
		if err != nil {
			return err
		}
		if goal == nil {
			for _, s := range now {
				goal = append(goal, s.executed)
			}
			if now, err = g.whole(ctx); err != nil {
				return err
			}
		}
		for i, m := range g.List() {
			for _, set := range goal {
				if has, err := m.has(ctx, now[i].executed, set); err != nil || !has {
					return errors.Join(fmt.Errorf("%s has not committed all transactions of another member yet", m.Name()), err)
				}
			}
		}
		return nil
	}
}

// whole asks all members for their status. It returns an error if a member does not see all of them in its group.
func (g *Group) whole(ctx context.Context) ([]groupStatus, error) {
	members := g.List()
	all := make([]groupStatus, len(members))
	err := g.Each(func(m *member) (err error) {
		all[m.Number()], err = m.whole(ctx, len(members))
		return err
	})
	for _, s := range all {
		if err == nil && s.primary() != all[0].primary() {
			err = fmt.Errorf("members name different primaries, %q and %q", all[0].primary(), s.primary())
		}
	}
	return all, err
}

// whole returns an error unless the member is in a group of this many members that are all online. A primary must
// also accept writes.
func (m *member) whole(ctx context.Context, members int) (groupStatus, error) {
	s, err := m.status(ctx)
	if err == nil && s.state != online {
		err = fmt.Errorf("%s is %s in its group", m.Name(), s.state)
		if failed := m.failed.Load(); failed != nil {
			err = errors.Join(err, *failed)
		}
	}
	if err != nil {
		return s, err
	}
	count := 0
	for _, one := range s.view {
		if one.state != online {
			return s, fmt.Errorf("%s sees the member at %s as %s", m.Name(), one.address, one.state)
		}
		if one.address == m.address.String() && one.role == "PRIMARY" && !s.writable {
			return s, fmt.Errorf("%s is primary, but does not accept writes", m.Name())
		}
		count++
	}
	if count != members {
		return s, fmt.Errorf("%s sees %d of %d members", m.Name(), count, members)
	}
	return s, nil
}
