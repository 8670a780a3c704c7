package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"stroppy/internal/cluster"
)

// standing is a standby as its primary sees it.
type standing struct {
	streaming bool
	priority  int   // among those that its process in the primary counts as synchronous; 0: none
	replayed  int64 // in bytes of the log
}

// view is what a primary says of itself and its standbys.
type view struct {
	recovering bool   // it is a standby yet
	flushed    int64  // up to where its log is on its disk
	timeline   int64  // the one that it writes; 0 of a standby
	names      string // its synchronous_standby_names
	standbys   map[string]standing
	others     bool // somebody who is none of the nodes is counted as synchronous
}

func (c *Cluster) view(ctx context.Context, p *node) (v *view, err error) {
	err = p.orders.Do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		v = &view{standbys: map[string]standing{}}
		var name string
		var s standing
		rows, _ := conn.Query(ctx, `
			SELECT me.recovering, me.flushed, me.timeline, current_setting('synchronous_standby_names'), coalesce(r.application_name, ''),
				coalesce(r.state = 'streaming', false), coalesce(r.sync_priority, 0), coalesce(r.replay_lsn - '0/0', 0)::bigint
			FROM (SELECT pg_is_in_recovery() AS recovering,
				CASE WHEN pg_is_in_recovery() THEN 0 ELSE pg_current_wal_flush_lsn() - '0/0' END::bigint AS flushed,
				CASE WHEN pg_is_in_recovery() THEN 0 ELSE ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::bigint END AS timeline) me
			LEFT JOIN pg_stat_replication r ON true`) // its error is that of the rows
		_, err := pgx.ForEachRow(rows, []any{&v.recovering, &v.flushed, &v.timeline, &v.names, &name, &s.streaming, &s.priority, &s.replayed}, func() error {
			// A connection that broke unseen may be there beside its successor. What it
			// says of the priority counts too.
			if earlier, twice := v.standbys[name]; twice {
				s.streaming = s.streaming || earlier.streaming
				s.replayed = max(s.replayed, earlier.replayed)
				v.others = v.others || s.priority != earlier.priority
			}
			v.standbys[name] = s
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask %s for its standbys: %w", p.Name(), err)
	}
	return v, nil
}

// review looks, every so often, at the standbys and changes on whom the primary waits.
func (c *Cluster) review(ctx context.Context, p *node) {
	if time.Since(c.reviewed) < reviewEvery {
		return
	}
	defer func() { c.reviewed = time.Now() }()
	v, err := c.view(ctx, p)
	if err != nil {
		return // its health says whether it is lost
	}
	if v.recovering {
		if err := p.promote(ctx); err != nil {
			c.Note("%s does not take the lead yet: %v", p.Name(), err)
		}
		return
	}
	now := time.Now()
	for _, n := range c.List() {
		if n != p {
			c.observe(ctx, n, p, v, now)
		}
	}
	if c.params.synchronous {
		c.keepSynchronous(ctx, p, v, now)
	}
	for _, n := range c.List() {
		if n != p {
			c.direct(ctx, n, p)
		}
	}
}

// observe notes what the primary says of a standby.
//
// A connection is not enough to follow it. A standby that has what the primary never had
// asks for the timeline on which it left the primary, gets what there is of it, and
// asks again: for moments it streams, and it may even be the one that has replayed most.
// So a standby that was not connected, or to another primary, is asked for the timeline
// that it receives.
func (c *Cluster) observe(ctx context.Context, n, p *node, v *view, now time.Time) {
	s := v.standbys[n.Name()]
	follows := s.streaming && (c.follows(n, p) || !n.Paused() && n.receives(ctx, v.timeline))
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if !follows {
		if n.parted.IsZero() {
			n.parted = now
		}
		return
	}
	n.parted, n.streamed = time.Time{}, p
	if s.replayed >= v.flushed || s.replayed > n.replayed {
		n.advanced = now
	}
	n.replayed = s.replayed
}

// follows says that a standby follows the primary, by what was observed last.
func (c *Cluster) follows(n, p *node) bool {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return n.parted.IsZero() && n.streamed == p
}

// receives says that a standby receives this timeline. One that does not answer
// does not.
func (n *node) receives(ctx context.Context, timeline int64) bool {
	now, err := One[int64](ctx, n.orders, "SELECT coalesce(max(received_tli), 0) FROM pg_stat_wal_receiver WHERE status = 'streaming'")
	return err == nil && now == timeline
}

// unfit says why the primary must not wait for a standby any longer; empty if it
// may.
func (c *Cluster) unfit(n *node, now time.Time) string {
	if why := c.Lost(n); why != "" {
		return why
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	limit := c.params.timeout
	switch {
	case n.stale:
		return "its data are of no use"
	case !n.parted.IsZero() && now.Sub(n.parted) >= limit:
		return fmt.Sprintf("it has not been connected for %v", limit)
	case n.parted.IsZero() && now.Sub(n.advanced) >= limit:
		return fmt.Sprintf("it has replayed nothing for %v", limit)
	}
	return ""
}

// keepSynchronous brings the standby on which the primary waits a step nearer to
// what it should be.
//
// It is one standby at a time, as with Patroni's synchronous_node_count of 1: the
// processes of a server read a new synchronous_standby_names one after another,
// and while some have the old one and some the new, a set of several could be
// taken for satisfied when one of them has nothing.
func (c *Cluster) keepSynchronous(ctx context.Context, p *node, v *view, now time.Time) {
	c.Mu.Lock()
	n, registered, names := c.standby, c.registered, c.waitsFor(p)
	c.Mu.Unlock()
	if v.names != names {
		// It was not reconfigured, or has not read it; its state below is of no use.
		if err := p.reconfigure(ctx); err != nil {
			c.Note("%v", err)
		}
		if n == nil {
			return
		}
	}
	if n != nil {
		if why := c.unfit(n, now); why != "" {
			c.dismiss(ctx, p, why)
		} else if !registered && v.names == names {
			c.admit(ctx, p, n, v)
		}
		return
	}
	if n = c.fittest(p, v, now); n != nil && c.settled(ctx, p, v) {
		c.appoint(ctx, p, n, now)
	}
}

// commit is a transaction of the supervisor's own, which changes nothing.
const commit = "SELECT pg_logical_emit_message(true, 'stroppy', '')"

// settled reports whether all of the primary has understood that it waits for nobody,
// so that a commit that is seen waiting later waits for the next standby and not
// for the last: no process that sends to a standby counts it as synchronous, and
// with nobody to end its wait, a commit ended. A strict primary always waits.
func (c *Cluster) settled(ctx context.Context, p *node, v *view) bool {
	for _, s := range v.standbys {
		if s.priority != 0 || v.others {
			return false
		}
	}
	if c.params.strict {
		return true
	}
	return p.waiter.Ask(ctx, commit) == nil
}

// nearby is how far behind a standby may be when the primary begins to wait for it:
// a segment of the log, which is replayed in a fraction of a second.
const nearby = 16 << 20

// closely says that a standby follows the primary and lacks little.
func (c *Cluster) closely(n, p *node, v *view) bool {
	s := v.standbys[n.Name()]
	return c.Lost(n) == "" && c.follows(n, p) && !n.Paused() && s.streaming && v.flushed-s.replayed <= nearby
}

// fittest is the standby that has replayed most.
func (c *Cluster) fittest(p *node, v *view, now time.Time) (best *node) {
	for _, n := range c.List() {
		if n == p || !c.closely(n, p, v) || n.Unanswered() >= cluster.AskEvery || c.unfit(n, now) != "" {
			continue
		}
		if best == nil || v.standbys[n.Name()].replayed > v.standbys[best.Name()].replayed {
			best = n
		}
	}
	return best
}

// appoint has the primary wait for a standby. It is not registered yet.
func (c *Cluster) appoint(ctx context.Context, p, n *node, now time.Time) {
	c.Mu.Lock()
	c.standby, c.registered, c.barrier = n, false, 0
	n.advanced = now
	c.Mu.Unlock()
	if err := p.reconfigure(ctx); err != nil {
		c.dismiss(ctx, p, err.Error())
	}
}

// admit registers the standby for which the primary has to wait, once it is
// sure that every commit does, and that the standby has what was acknowledged
// before. Three things are needed, because the processes of the primary learn of
// the new setting one after another:
//
//   - the process that sends to the standby counts it as synchronous, and none
//     that sends to another does: only such a process ends a commit's wait;
//   - some commit was seen waiting, which none did before (see settled): whether
//     commits wait at all is one flag for all sessions, which the checkpointer
//     sets (PostgreSQL 15, src/backend/replication/syncrep.c,
//     SyncRepUpdateSyncStandbysDefined);
//   - the standby has replayed all that was in the log after that: what was
//     acknowledged without waiting is before it.
func (c *Cluster) admit(ctx context.Context, p, n *node, v *view) {
	for name, s := range v.standbys {
		if (s.priority == 1) != (name == n.Name()) || v.others {
			return
		}
	}
	if v.standbys[n.Name()].priority != 1 {
		return
	}
	if c.barrier == 0 {
		if !c.commitsWait(ctx, p) {
			return
		}
		at, err := One[int64](ctx, p.orders, "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
		if err != nil {
			return
		}
		if v, err = c.view(ctx, p); err != nil {
			return
		}
		c.barrier = at
	}
	if v.standbys[n.Name()].replayed < c.barrier {
		return
	}
	c.Mu.Lock()
	c.registered = true
	c.Mu.Unlock()
	c.Note("%s waits for %s at every commit, so that it may be promoted", p.Name(), n.Name())
}

// commitsWait reports whether a commit on the primary was seen waiting for a standby.
// It makes commits of its own, and looks; not to have seen one proves nothing.
func (c *Cluster) commitsWait(ctx context.Context, p *node) (seen bool) {
	ctx, cancel := context.WithTimeout(ctx, orderLimit)
	var err error
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil && p.waiter.Ask(ctx, commit) == nil {
		}
	})
	defer group.Wait()
	defer cancel()
	for ctx.Err() == nil && !seen {
		if seen, err = One[bool](ctx, p.orders, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')"); err != nil {
			return false
		}
	}
	return seen
}

// dismiss has the primary wait for nobody. First of all the standby loses its
// right to be promoted.
func (c *Cluster) dismiss(ctx context.Context, p *node, why string) {
	c.Mu.Lock()
	n, was := c.standby, c.registered
	c.standby, c.registered, c.barrier = nil, false, 0
	c.Mu.Unlock()
	err := p.reconfigure(ctx)
	if was {
		goesOn := "goes on alone"
		if c.params.strict {
			goesOn = "lets commits wait"
		}
		c.Note("%s is not waited for any more: %s; %s %s", n.Name(), why, p.Name(), goesOn)
	}
	if err != nil {
		c.Note("%v", err)
	}
}

// direct has a running standby follow the primary, and gives it new data if it
// cannot.
func (c *Cluster) direct(ctx context.Context, n, p *node) {
	if c.Lost(n) != "" || n.Paused() || n.Unanswered() >= cluster.AskEvery {
		return
	}
	c.Mu.Lock()
	current := n.following == c.source(n)
	idle := n.Idle() && !n.cut && !n.stale
	stuck := !n.parted.IsZero() && time.Since(n.parted) >= c.params.timeout
	c.Mu.Unlock()
	if !current {
		if n.reconfigure(ctx) == nil { // else it is tried again at the next review
			c.Note("%s was reconfigured to follow %s", n.Name(), p.Name())
		}
		return
	}
	if idle && stuck {
		c.Tasks.Go(func() { c.rescue(n, p) })
	}
}

// A standby that can reach the primary and has not got through for so many looks
// in a row, a second apart, will not: what it needs of the log is not there any
// more, or it has what the primary never had.
const rescueLooks = 4

// rescue gives new data to a standby that cannot follow the primary although it
// reaches it.
func (c *Cluster) rescue(n, p *node) {
	ctx, end, err := n.Begin(n.Life(), false)
	if err != nil {
		return
	}
	defer end()
	var last int64
	for range rescueLooks {
		_, reached := n.run(ctx, "pg_isready", "-q", "-t", "1", "-h", p.Host().Addr().String(), "-p", p.port())
		at, err := n.position(ctx)
		c.Mu.Lock()
		needed := c.Primary == p && !n.parted.IsZero() && !n.cut
		c.Mu.Unlock()
		if reached != nil || err != nil || at != last && last != 0 || !needed {
			return
		}
		if last = at; cluster.Sleep(ctx, time.Second) != nil {
			return
		}
	}
	c.Note("%s reaches %s and cannot follow it: it gets new data", n.Name(), p.Name())
	if err := n.rejoin(ctx); err != nil && ctx.Err() == nil {
		c.Note("%s did not come back: %v", n.Name(), err)
	}
}
