package dbtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"stroppy/internal/db"
)

// falsifyCommit answers a commit with a false result if the script asks for one and the transaction allows it.
func (s *sqlSession) falsifyCommit(ctx context.Context) (answered bool, err error) {
	if s.stale != nil && s.written(s.stale) != (s.staleAs == LostUpdate) {
		s.rollback(ctx) // it would be another anomaly than the script asks for
		return true, aborted()
	}
	if s.stale != nil {
		s.in.count(s.staleAs)
	}
	if id, ok := s.id(); ok && id == s.refused {
		s.rollback(ctx)
		return true, aborted()
	}
	fault := s.draw(ctx, Commit, LostAck, Ghost, Torn, DoubleApply, PhantomMoney, Swap, DirtyRead, UnknownLies, FalseAck)
	switch {
	case fault == FalseAck:
		s.d.crash.Store(lostInCrash)
		fallthrough
	case s.d.crash.Add(-1) >= 0:
		fault = FalseAck
	case fault == "":
		return false, nil
	}
	if err := s.SQLSession.Flush(ctx); err != nil { // the client gets these results
		return true, err
	}
	switch fault {
	case Ghost:
		if err := s.SQLSession.Commit(ctx); err != nil {
			return true, err
		}
		s.in.count(fault)
		return true, aborted()
	case UnknownLies:
		if s.denied != nil {
			return false, nil
		}
		s.denied = slices.Clone(s.calls)
		return true, s.lost(ctx, Commit)
	case DirtyRead:
		id, ok := s.id()
		if !ok || !s.d.dirty.offer(s.calls) {
			return false, nil
		}
		s.refused = id
		s.rollback(ctx)
		return true, aborted()
	}
	instead, ok := s.instead(fault)
	if !ok {
		return false, nil
	}
	s.rollback(ctx)
	if err := s.replay(ctx, instead); err != nil {
		return true, aborted()
	}
	s.in.count(fault)
	s.d.past.committed()
	return true, nil
}

// aborted returns the error of a transaction that is reported as aborted.
func aborted() error { return &db.Error{Class: db.Aborted, Op: string(Commit), Err: errInjected} }

// lostInCrash is the number of consecutive acknowledged commits that a crash loses.
const lostInCrash = 5

// lookedUp applies a transaction with unknown outcome after its look-up has inserted a tombstone and read it.
func (s *sqlSession) lookedUp(ctx context.Context) {
	if s.writes() {
		s.tombstone = slices.Clone(s.calls)
		return
	}
	if i := slices.IndexFunc(s.tombstone, call.inserts); i >= 0 {
		words := strings.FieldsFunc(s.tombstone[i].statement.SQL, func(r rune) bool { return strings.ContainsRune(" ,()", r) })
		take := &db.Statement{
			SQL: fmt.Sprintf("DELETE FROM %s WHERE %s = ?", words[2], words[3]), Params: s.tombstone[i].statement.Params[:1],
		}
		removed := call{statement: take, args: s.tombstone[i].args[:1]}
		if err := s.replay(ctx, append([]call{removed}, s.denied...)); err == nil {
			s.in.count(UnknownLies)
			s.d.past.committed()
		}
	}
	s.denied, s.tombstone = nil, nil
}

// overdraw commits a transaction that violates a CHECK constraint, on a connection that ignores these constraints. It
// keeps the results of the transaction.
func (s *sqlSession) overdraw(ctx context.Context, calls []call) error {
	results := map[int]*db.Result{}
	err := s.elsewhere(ctx, func(session db.SQLSession) error {
		// SQLite executes the PRAGMA when it prepares the statement.
		if _, err := session.Do(ctx, &db.Statement{SQL: "PRAGMA ignore_check_constraints=ON"}, nil); err != nil {
			return err
		}
		for _, c := range calls {
			r, err := ask(ctx, session, c)
			if err != nil {
				return err
			}
			results[c.result] = r
		}
		return session.Commit(ctx)
	})
	if s.spare != nil {
		_ = s.spare.Close()
		s.spare = nil
	}
	if err == nil {
		s.falsified = results
		s.in.count(Overdraft)
	}
	return err
}

// id returns the first value that the transaction inserts. The value identifies the transaction in its ledger.
func (s *sqlSession) id() (int64, bool) {
	i := slices.IndexFunc(s.calls, call.inserts)
	if i < 0 || len(s.calls[i].args) == 0 || s.calls[i].args[0].Int == 0 {
		return 0, false
	}
	return s.calls[i].args[0].Int, true
}

// instead returns the statements to execute in place of the statements of the client, and whether the fault can
// happen.
func (s *sqlSession) instead(fault Fault) ([]call, bool) {
	var updates []int
	calls := slices.Clone(s.calls)
	for i, c := range calls {
		if c.updates() {
			updates = append(updates, i)
		}
	}
	if fault == LostAck || fault == FalseAck {
		return nil, true
	}
	if len(updates) < 2 {
		return nil, false
	}
	one, two := updates[0], updates[1]
	switch fault {
	case Torn:
		return slices.Delete(calls, one, one+1), true
	case DoubleApply:
		for _, i := range updates {
			calls = append(calls, s.calls[i])
		}
		return calls, true
	case PhantomMoney:
		return calls, calls[one].add(1 + s.random.Int64N(100))
	default: // Swap
		cents := 1 + s.random.Int64N(100)
		return calls, calls[one].add(cents) && calls[two].add(-cents)
	}
}

// add changes the first amount among the arguments. It reports whether there is one.
func (c *call) add(cents int64) bool {
	i := slices.Index(c.statement.Params, db.Decimal)
	if i < 0 {
		return false
	}
	c.args = slices.Clone(c.args)
	c.args[i].Int += cents
	return true
}

// written reports whether the transaction updates the row that the statement has read.
func (s *sqlSession) written(read *call) bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return c.updates() && c.names(read.args) })
}

// names reports whether the arguments contain the values of a key one after another.
func (c call) names(key []db.Value) bool {
	for i := range c.args {
		if i+len(key) <= len(c.args) && slices.EqualFunc(c.args[i:i+len(key)], key, sameValue) {
			return true
		}
	}
	return false
}

// sameValue reports whether two values are equal.
func sameValue(a, b db.Value) bool {
	return a.Int == b.Int && a.Null == b.Null && bytes.Equal(a.Text, b.Text)
}

// falsify replaces new results of reads if the script asks for it.
func (s *sqlSession) falsify(ctx context.Context) {
	if s.broken || s.stale != nil {
		return
	}
	wanted := []Fault{LostUpdate, WriteSkew}
	if s.readOnly {
		wanted = []Fault{StaleRead, ReadSkew, LongFork}
		for _, c := range s.calls[s.asked:] {
			if c.reads() {
				s.soil(ctx, c)
			}
		}
	}
	fault := s.draw(ctx, Read, wanted...)
	if fault == "" {
		return
	}
	var reads []call
	for _, c := range s.calls[s.asked:] {
		if c.reads() {
			reads = append(reads, c)
		}
	}
	if len(reads) == 0 {
		return
	}
	if fault == LongFork {
		if seen, forked := s.d.fork.read(ctx, reads[0]); s.replace(reads[0], seen) && forked {
			s.in.count(fault)
		}
		return
	}
	if !s.readOnly { // one of the reads returns an old row
		i := s.random.IntN(len(reads))
		reads = reads[i : i+1]
	}
	old := s.d.past.read(ctx, reads)
	changed := false
	for i, r := range old {
		now := s.SQLSession.Result(reads[i].result)
		if fault == ReadSkew {
			r = halves(r, now)
		}
		changed = s.replace(reads[i], r) || changed
	}
	switch {
	case changed && s.readOnly:
		s.in.count(fault)
	case changed:
		s.stale, s.staleAs = &reads[0], fault
	}
}

// replace replaces the result of a statement. It reports false if r is nil, has another size or equals the true
// result.
func (s *sqlSession) replace(c call, r *db.Result) bool {
	now := s.SQLSession.Result(c.result)
	if r == nil || len(r.Values) != len(now.Values) || slices.EqualFunc(r.Values, now.Values, sameValue) {
		return false
	}
	if s.falsified == nil {
		s.falsified = map[int]*db.Result{}
	}
	s.falsified[c.result] = r
	return true
}

// halves returns a result with the first row from old and the other rows from now.
func halves(old, now *db.Result) *db.Result {
	if old == nil || now.Rows() < 2 || len(old.Values) != len(now.Values) {
		return nil
	}
	half := *now
	half.Values = slices.Concat(old.Values[:old.Columns], now.Values[now.Columns:])
	return &half
}

// soil returns uncommitted writes of an aborted transaction to a reader.
func (s *sqlSession) soil(ctx context.Context, c call) {
	writer := s.d.dirty.take()
	if writer == nil {
		return
	}
	var seen *db.Result
	_ = s.elsewhere(ctx, func(session db.SQLSession) error {
		if err := run(ctx, session, slices.DeleteFunc(slices.Clone(writer), func(c call) bool { return !c.updates() })); err != nil {
			return err
		}
		var err error
		seen, err = ask(ctx, session, c)
		return err
	})
	if s.replace(c, seen) {
		s.in.count(DirtyRead)
		return
	}
	s.d.dirty.offer(writer)
}

// ask executes a statement and returns a copy of its result.
func ask(ctx context.Context, session db.SQLSession, c call) (*db.Result, error) {
	i, err := session.Do(ctx, c.statement, c.args)
	if err == nil {
		err = session.Flush(ctx)
	}
	if err != nil {
		return nil, err
	}
	r := *session.Result(i)
	r.Values = slices.Clone(r.Values)
	for i := range r.Values {
		r.Values[i].Text = bytes.Clone(r.Values[i].Text)
	}
	return &r, nil
}

// dirty holds the statements of one aborted transaction until a reader has seen their effect.
type dirty struct {
	mu    sync.Mutex
	calls []call
}

// offer stores statements and reports whether there was room for them.
func (d *dirty) offer(calls []call) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls != nil {
		return false
	}
	d.calls = slices.Clone(calls)
	return true
}

// take returns the stored statements and removes them.
func (d *dirty) take() (calls []call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls, d.calls = d.calls, nil
	return calls
}

// Numbers of commits after a snapshot: readers get the snapshot from oldEnough on, and tooOld replaces it.
const (
	oldEnough = 100
	tooOld    = 400
)

// past is a session with an old snapshot, like a session of a replica that lags.
type past struct {
	database db.SQL
	mu       sync.Mutex
	session  db.SQLSession
	commits  int // commits since the snapshot
}

// committed counts a commit after the snapshot.
func (p *past) committed() {
	p.mu.Lock()
	p.commits++
	p.mu.Unlock()
}

// read returns the results of the statements in the old snapshot, or nil if no snapshot is old enough.
func (p *past) read(ctx context.Context, calls []call) []*db.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil && p.commits < oldEnough {
		return nil
	}
	var all []*db.Result
	if p.session != nil {
		for _, c := range calls {
			r, err := ask(ctx, p.session, c)
			if err != nil {
				break
			}
			all = append(all, r)
		}
	}
	if len(all) == len(calls) && p.commits < tooOld {
		return all
	}
	p.renew(ctx, calls[0])
	return nil
}

// close closes the session of the snapshot.
func (p *past) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		_ = p.session.Close()
		p.session = nil
	}
}

// renew takes a new snapshot by executing the statement.
func (p *past) renew(ctx context.Context, c call) {
	if p.session != nil {
		_ = p.session.Close()
		p.session = nil
	}
	session, err := p.database.Session(ctx, db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		return
	}
	if err = session.Begin(ctx, true); err == nil {
		_, err = ask(ctx, session, c)
	}
	if err != nil {
		_ = session.Close()
		return
	}
	p.session, p.commits = session, 0
}
