package dbtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/checktest"
	"stroppy/internal/db"
	"stroppy/internal/isolation"
	"stroppy/internal/tier"
	"stroppy/internal/workload"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/kv"
)

// documents is an in-memory record store for tests; runs on it do not count as verification of a database. A
// transaction sees the committed state and its own writes. It commits if nothing that it read has changed, so the
// store is strictly serializable.
type documents struct {
	mu          sync.Mutex
	collections map[string]*contents
	lost        float64 // share of commits whose answer is lost
	careless    bool    // a commit ignores changes by other transactions
}

type contents struct {
	created   bool
	documents map[string]stored
	changed   int // number of changes to documents
}

// stored is a committed document. It has no values if it was removed or never inserted.
type stored struct {
	values  []db.Value
	version int
}

func newDocuments(lost float64) *documents {
	return &documents{collections: map[string]*contents{}, lost: lost}
}

func (d *documents) Info(context.Context) (db.Info, error) { return db.Info{Name: "documents"}, nil }

func (d *documents) Claim(string) (db.Claim, error) {
	return db.Claim{Isolation: "serializable", Level: isolation.StrictSerializable}, nil
}

func (d *documents) Limits() db.Limits { return db.Limits{} }
func (d *documents) Close() error      { return nil }

func (d *documents) Exists(_ context.Context, c *db.Collection) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of(c).created, nil
}

func (*documentSession) Reserve(*db.Collection, db.Value) {}

func (d *documents) Create(_ context.Context, c *db.Collection) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(c).created = true
	return nil
}

func (d *documents) Drop(_ context.Context, c *db.Collection) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if there := d.collections[c.Name]; there != nil {
		there.created = false
		clear(there.documents)
	}
	return nil
}

func (d *documents) of(c *db.Collection) *contents {
	if d.collections[c.Name] == nil {
		d.collections[c.Name] = &contents{documents: map[string]stored{}}
	}
	return d.collections[c.Name]
}

func (d *documents) RecordSession(context.Context, db.SessionOptions) (db.RecordSession, error) {
	return &documentSession{db: d, random: rand.New(rand.NewPCG(1, 2))}, nil
}

// place identifies a document.
type place struct {
	collection *db.Collection
	id         string
}

// documentSession is a session of documents.
type documentSession struct {
	db     *documents
	random *rand.Rand

	open, broken bool
	seen         map[place]int
	scanned      map[*db.Collection]int
	written      map[place][]db.Value
}

// idOf returns an id as text. The texts sort as the ids do; no id is negative.
func idOf(v db.Value) string {
	if v.Text != nil {
		return string(v.Text)
	}
	return string(workload.Hex.Append(nil, uint64(v.Int), 16))
}

// fail ends the transaction and returns an error of a class.
func (s *documentSession) fail(class db.Class, kind db.ConstraintKind, op string) error {
	s.open, s.broken = false, class == db.Unknown
	return &db.Error{Class: class, Constraint: kind, Op: op, Err: errors.New("refused")}
}

// ready returns an error if the session has no open transaction.
func (s *documentSession) ready() error {
	if !s.open || s.broken {
		return s.fail(db.Fatal, 0, "use a session without a transaction")
	}
	return nil
}

func (s *documentSession) Begin(context.Context, bool) error {
	if s.broken || s.open {
		return s.fail(db.Fatal, 0, "begin in a session that is broken or has a transaction")
	}
	s.open, s.seen, s.scanned, s.written = true, map[place]int{}, map[*db.Collection]int{}, map[place][]db.Value{}
	return nil
}

// get returns the values of a document, or nil if it does not exist. The caller holds the lock.
func (s *documentSession) get(c *db.Collection, id string) []db.Value {
	at := place{c, id}
	if own, ok := s.written[at]; ok {
		return own
	}
	d := s.db.of(c).documents[id]
	if _, again := s.seen[at]; !again {
		s.seen[at] = d.version
	}
	return d.values
}

// copied returns a deep copy of values.
func copied(values []db.Value) []db.Value {
	list := slices.Clone(values)
	for i := range list {
		list[i].Text = bytes.Clone(list[i].Text)
	}
	return list
}

func (s *documentSession) Find(_ context.Context, c *db.Collection, ids []db.Value, out []db.Record) error {
	if err := s.ready(); err != nil {
		return err
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for i := range ids {
		values := s.get(c, idOf(ids[i]))
		out[i] = db.Record{Found: values != nil, Values: copied(values)}
	}
	return nil
}

func (s *documentSession) Insert(_ context.Context, c *db.Collection, list ...[]db.Value) error {
	if err := s.ready(); err != nil {
		return err
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for _, values := range list {
		if width := c.Width(); len(values) < width || len(values) > width && (len(values)-width)%len(c.Items) != 0 {
			return s.fail(db.Fatal, 0, "insert a document of another width")
		}
		id := idOf(values[db.ID])
		if s.get(c, id) != nil {
			return s.fail(db.Constraint, db.UniqueKey, "insert")
		}
		s.written[place{c, id}] = copied(values)
	}
	return nil
}

// change applies an update and returns the values before it. The caller holds the lock.
func (s *documentSession) change(u *db.Update, id db.Value, args []db.Value) (before []db.Value, err error) {
	at := place{u.Collection, idOf(id)}
	before = s.get(u.Collection, at.id)
	if len(args) != u.Arguments() {
		return nil, s.fail(db.Fatal, 0, "update with other arguments")
	}
	if before == nil {
		return nil, nil
	}
	if u.AtLeast != 0 {
		if before[u.AtLeast].Int < args[0].Int {
			return nil, nil
		}
		args = args[1:]
	}
	after := copied(before)
	for i, field := range u.Add {
		after[field].Int += args[i].Int
	}
	for i, field := range u.Set {
		after[field] = copied(args[len(u.Add)+i:][:1])[0]
	}
	for i, f := range u.Collection.Fields {
		if f.NonNegative && after[1+i].Int < 0 {
			return nil, s.fail(db.Constraint, db.CheckFailed, "update")
		}
	}
	s.written[at] = after
	return before, nil
}

func (s *documentSession) Update(_ context.Context, u *db.Update, ids, args []db.Value) (found int, err error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	each := u.Arguments()
	for i := range ids {
		before, err := s.change(u, ids[i], args[i*each:(i+1)*each])
		if err != nil {
			return 0, err
		}
		if before != nil {
			found++
		}
	}
	return found, nil
}

func (s *documentSession) FindAndUpdate(_ context.Context, u *db.Update, id db.Value, args []db.Value) (db.Record, error) {
	if err := s.ready(); err != nil {
		return db.Record{}, err
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	before, err := s.change(u, id, args)
	return db.Record{Found: before != nil, Values: copied(before)}, err
}

func (s *documentSession) Commit(context.Context) error {
	if err := s.ready(); err != nil {
		return err
	}
	lost := s.random.Float64() < s.db.lost
	if lost && s.random.IntN(2) == 0 {
		return s.fail(db.Unknown, 0, "commit")
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for at, version := range s.seen {
		if s.db.of(at.collection).documents[at.id].version != version && !s.db.careless {
			return s.fail(db.Aborted, 0, "commit")
		}
	}
	for c, changed := range s.scanned {
		if s.db.of(c).changed != changed {
			return s.fail(db.Aborted, 0, "commit")
		}
	}
	for at, values := range s.written {
		c := s.db.of(at.collection)
		c.documents[at.id] = stored{values, c.documents[at.id].version + 1}
		c.changed++
	}
	if s.open = false; lost {
		return s.fail(db.Unknown, 0, "commit")
	}
	return nil
}

func (s *documentSession) Rollback(context.Context) error {
	s.open = false
	return nil
}

// Scan reads a collection. The open transaction must not have written to the collection.
func (s *documentSession) Scan(_ context.Context, c *db.Collection, from db.Value, limit int, document func([]db.Value) error) error {
	s.db.mu.Lock()
	type entry struct {
		id     string
		values []db.Value
	}
	var list []entry
	for id, d := range s.db.of(c).documents {
		if from.Null || id >= idOf(from) {
			list = append(list, entry{id, copied(d.values)})
		}
	}
	if s.open {
		s.scanned[c] = s.db.of(c).changed
	}
	s.db.mu.Unlock()
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.id, b.id) })
	if limit > 0 {
		list = list[:min(limit, len(list))]
	}
	for _, e := range list {
		if err := document(e.values); err != nil {
			s.open = false
			return err
		}
	}
	return nil
}

func (s *documentSession) Reset(context.Context) error {
	s.open, s.broken = false, false
	return nil
}

func (s *documentSession) Close() error { return nil }

// TestWorkloadsAreValidOnRecordStore runs each workload on the record store, without and with lost answers to commits.
func TestWorkloadsAreValidOnRecordStore(t *testing.T) {
	own := func(change func(c *bank.Config)) func(t *testing.T, d db.Database) workload.Workload {
		return func(t *testing.T, d db.Database) workload.Workload { return newBank(t, d, change) }
	}
	ways := map[string]func(t *testing.T, d db.Database) workload.Workload{
		"tpcb": func(t *testing.T, d db.Database) workload.Workload { return newTPCB(t, d, smallTPCB()) },
	}
	for _, update := range []string{bank.Atomic, bank.Locked, bank.RMW} {
		ways["bank "+update] = own(func(c *bank.Config) {
			c.Update, c.JointShare, c.PayrollShare, c.InquiryShare = update, 0.2, 0.05, 0.1
		})
	}
	for name, change := range eventsWays() {
		ways["events "+name] = func(t *testing.T, d db.Database) workload.Workload {
			c := fewEvents()
			change(&c)
			return newEvents(t, d, c)
		}
	}
	ways["kv"] = func(t *testing.T, d db.Database) workload.Workload {
		c := kv.Config{
			Records: 300, Seed: 7, KeySize: 32, ValueLow: 64, ValueHigh: 200, Connections: 8, InFlight: 1,
			Mix: kv.Mix{Reads: 0.3, Updates: 0.2, Inserts: 0.1, Scans: 0.1, Modifies: 0.3, Distribution: kv.Zipfian}, ScanLength: 20,
		}
		w, err := kv.New(d, c)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	count := uint64(2000)
	if raceEnabled {
		count = 500
	}
	for name, open := range ways {
		for _, lost := range []float64{0, 0.05} {
			t.Run(name, func(t *testing.T) {
				d := newDocuments(0)
				r := newTrial(t, d, open(t, d), "")
				r.load(t)
				d.lost = lost
				r.attach(t)
				r.drive(t, count)
				r.download(t)
				r.check(t)
				r.wantValid(t)
			})
		}
	}
}

// TestRecordStoreThatLosesUpdatesIsInvalid checks the verdict of a record store that loses updates.
func TestRecordStoreThatLosesUpdatesIsInvalid(t *testing.T) {
	tier.SkipUnderRace(t)
	d := newDocuments(0)
	d.careless = true
	r := conduct(t, d, newBank(t, d, func(c *bank.Config) { c.Update, c.Accounts, c.Clients = bank.RMW, 20, 16 }), "", 20_000)
	if v := checktest.Verdict(r.results); v != check.Invalid {
		t.Errorf("the verdict is %v", v)
	}
}
