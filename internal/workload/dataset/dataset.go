// Package dataset manages the loaded data of a workload. It binds a workload to an open database and loads the data
// with their metadata: schema, load, seed, size and number of runs. It attaches to the data of an earlier load. It
// refuses an incomplete load, another size and tables of other programs. It resumes an interrupted load.
package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
)

// Kind describes the data of one workload, and names them for people.
type Kind struct {
	Workload string // its name
	Noun     string // a name for all data, such as "log of events"
	Things   string // the unit of their size, such as "accounts"; the metadata keep the size under this name
	Unit     string // the unit in reports; empty: Things
	Make     string // the command that loads them
	Schema   uint64 // of the data of this program; any change of a table, a key or a formula makes the next one
	Plain    uint64 // an older schema without a load id that is still supported; 0: none
	Table    string // of the metadata: a table or a collection
	Total    string // the fact that is the exact sum of the data; empty: there is none
}

// Expected holds the data that a run wants, and the functions of its workload for the data that it finds.
type Expected struct {
	*workload.Session // of the workload's settings, whose claim Bind sets
	Clients           int
	Seed, Size        uint64 // zero: any
	AnySize           bool   // Take compares the sizes

	// Facts returns more metadata for a load to write; nil: there are none.
	Facts func(ctx context.Context) (map[string]string, error)
	// Replace receives the metadata of the old data before a load. If it returns an error, the old data stay. It may be
	// nil.
	Replace func(m *Metadata) error
	// Rule returns a contradiction in a census, or between the census and the metadata. Transactions of this workload
	// alone never cause such a contradiction. Its words begin with the subject. Empty: there is none. Rule may be nil.
	Rule func(m *Metadata, c Census) string
	// Explains reports whether another program that uses the same data has added the new rows of a census since the
	// last run. It may be nil: there is no such program.
	Explains func(m *Metadata, c Census) bool
	// Anew reports whether a census shows untouched data that another program has just made. It
	// may be nil: no other program makes such data.
	Anew func(c Census) bool
	// Take accepts the data that a run finds. It returns an error if they do not fit the run.
	Take func(m *Metadata) error
	// Client opens client i of the data that a run has found.
	Client func(ctx context.Context, i int) (load.Client, error)
	// Another binds the same workload to another database.
	Another func(database db.Database) (Bound, error)
}

// Bound is a workload that embeds the Set that it is bound to.
type Bound interface {
	workload.Workload
	Adopt(other *Set) error
}

// Store is a database that holds the data and their metadata.
type Store interface {
	// Read returns the metadata; there may be none.
	Read(ctx context.Context) (Metadata, error)
	// Foreign returns the name of another program's table or collection in the place of the data; empty: there is none.
	Foreign(ctx context.Context) (string, error)
	// Begin writes the metadata of a load that starts, and removes the data of earlier
	// loads.
	Begin(ctx context.Context, m Metadata) error
	// Remove removes everything that loads and runs have made, the metadata last, and returns the names. It first
	// writes m, the mark of a load that starts, in case the removal is interrupted.
	Remove(ctx context.Context, m Metadata) (names []string, err error)
	// Rows counts the things that are there.
	Rows(ctx context.Context) (uint64, error)
	// Fill makes the things that are not there yet.
	Fill(ctx context.Context, m Metadata, progress func(done uint64)) error
	// Set writes a value of the metadata if the value of guard is still was. Otherwise it returns errChanged and writes
	// nothing.
	Set(ctx context.Context, name, value, guard, was string) error
	// Prepare creates what the clients of a run need besides the data, such as procedures.
	Prepare(ctx context.Context, run uint64) error
	// Census returns what identifies the data of m, in bounded time. Each table, collection or
	// range of keys is one part. There are at most maxParts.
	Census(ctx context.Context, m Metadata) (Census, error)
}

// errChanged is the error if another process has changed the metadata first.
var errChanged = &db.Error{Class: db.Aborted, Op: "write the metadata", Err: errors.New("another process has changed them at the same time")}

// Set is the data of one workload in one open database. Each workload embeds a Set for the
// methods that all workloads share.
type Set struct {
	kind        Kind
	store       Store
	expected    Expected
	onOverwrite func(what string) // may be nil
	volatile    bool              // the database keeps nothing

	load  string   // the id of the load that Load made; empty: it was not called
	found Metadata // what Attach or AttachReadOnly found
	run   uint64   // the run that Attach took
	taken *taken   // the run that another process has taken; nil: Attach takes one
	doing string   // the use of the data, in words; empty: all data are reported
}

// Models holds the constructors of the store of a workload, one for each data model of db. They
// complete the configuration C.
type Models[M Store, C any] struct {
	SQL func(db.SQL, *C) (M, error)
	// Direct is for ordered key-value stores, if the workload has its own data model for them; nil: Records is used.
	Direct func(db.KV, *C) (M, error)
	// Records is for databases of records.
	Records func(db.Records, *C) (M, error)
	// Simple is set if Records takes a database with db.Limits.Simple.
	Simple bool
}

// Claim implements workload.Workload.
func (s *Set) Claim() db.Claim { return s.expected.Claim }

// Bind returns the store for the data model of an open database, and the set of its data.
func Bind[M Store, C any](kind Kind, database db.Database, config *C, models Models[M, C], expected Expected) (model M, s *Set, err error) {
	if expected.Clients < 1 || expected.Clients > maxClients {
		return model, nil, fmt.Errorf("clients is %d: take 1 to %d", expected.Clients, maxClients)
	}
	if expected.Claim, err = database.Claim(expected.Isolation); err != nil {
		return model, nil, err
	}
	records, isRecords := db.RecordsOf(database)
	_, calls := database.(db.Procedures)
	switch procedure := expected.Mode == workload.Procedure; {
	case !isRecords:
	case records.Limits().Simple && !models.Simple:
		return model, nil, fmt.Errorf("the %s workload needs conditions on several columns, which the SQL of this database does not have: take another workload or another database", kind.Workload)
	case records.Limits().Deferred:
		if !procedure && expected.Mode != "" {
			return model, nil, fmt.Errorf("mode %s needs transactions of statements, and this database has procedures alone: leave it out, or take procedure", expected.Mode)
		}
	case !procedure || calls:
	case records.Limits().Optimistic:
		return model, nil, errors.New("mode procedure needs SQL: take pipelined or interactive")
	default:
		return model, nil, errors.New("mode procedure needs SQL: leave it out, or take interactive")
	}
	store, isKV := database.(db.KV)
	switch d := database.(type) {
	case db.SQL:
		model, err = models.SQL(d, config)
	default:
		switch {
		case isKV && models.Direct != nil:
			model, err = models.Direct(store, config)
		case isRecords:
			model, err = models.Records(records, config)
		default:
			err = fmt.Errorf("the %s workload is written for SQL, records and ordered key-value stores, and this database has none of them", kind.Workload)
		}
	}
	if err != nil {
		return model, nil, err
	}
	if expected.Facts == nil {
		expected.Facts = func(context.Context) (map[string]string, error) { return nil, nil }
	}
	s = &Set{kind: kind, store: model, expected: expected}
	v, ok := database.(db.Volatile)
	s.volatile = ok && v.Volatile()
	return model, s, nil
}

// Volatile reports whether the database keeps nothing.
func (s *Set) Volatile() bool { return s.volatile }

// Size returns the number of things that a run has found.
func (s *Set) Size() uint64 { return s.found.Size }

// Seed returns the seed of the data that a run has found.
func (s *Set) Seed() uint64 { return s.found.Seed }

// Run returns the number of the run that Attach or AttachReadOnly has taken; 0 before.
func (s *Set) Run() uint64 { return s.run }

// Client implements workload.Workload.
func (s *Set) Client(ctx context.Context, i int) (load.Client, error) {
	switch {
	case s.run == 0:
		return nil, fmt.Errorf("open client %d of the %s: it is not attached yet", i, s.kind.Noun)
	case i < 0 || i >= s.expected.Clients:
		return nil, fmt.Errorf("open client %d of the %s: it has clients 0 to %d", i, s.kind.Noun, s.expected.Clients-1)
	}
	return s.expected.Client(ctx, i)
}

// Background implements workload.Workload for workloads that run only clients.
func (s *Set) Background(context.Context) ([]load.Background, error) { return nil, nil }

// OnOverwrite implements workload.Workload.
func (s *Set) OnOverwrite(report func(what string)) { s.onOverwrite = report }

// Report calls the function of OnOverwrite with a sentence.
func (s *Set) Report(what string) {
	if s.onOverwrite != nil {
		s.onOverwrite(what)
	}
}

// Complete adds the fields that all workloads have to the header of a history.
func (s *Set) Complete(h history.Header) history.Header {
	h.Workload, h.LoadID, h.Run, h.Seed = s.kind.Workload, s.found.Load, s.run, s.found.Seed
	h.Objects, h.Clients = s.found.Size, s.expected.Clients
	return h
}

// ForNode implements workload.Workload.
func (s *Set) ForNode(database db.Database) (workload.Workload, error) {
	node, err := s.expected.Another(database)
	if err != nil {
		return nil, err
	}
	return node, node.Adopt(s)
}

// Adopt uses the metadata that another set has found, without reading this database. It serves to download the data of
// one node of a cluster.
func (s *Set) Adopt(other *Set) error {
	if !other.found.Found {
		return fmt.Errorf("download the %s from one node: it is not attached yet", s.kind.Noun)
	}
	s.found, s.run = other.found, other.run
	s.found.Load = "" // a node that holds other data is reported as wrong
	return s.expected.Take(&s.found)
}

// loaded describes the data of m.
func (s *Set) loaded(m *Metadata) workload.Loaded {
	return workload.Loaded{Size: m.Size, Things: cmp.Or(s.kind.Unit, s.kind.Things), Total: m.Facts[s.kind.Total]}
}

// Load implements workload.Workload. It replaces older data of this program, and resumes an
// interrupted load of the same data. It never touches tables of other programs.
func (s *Set) Load(ctx context.Context, progress func(done, total uint64)) (none workload.Loaded, err error) {
	started, w := time.Now(), &s.expected
	if w.Size == 0 || w.Seed == 0 {
		return none, fmt.Errorf("load the %s: the number of %s and the seed must be given, and not be 0", s.kind.Noun, s.kind.Things)
	}
	facts, err := w.Facts(ctx)
	if err != nil {
		return none, err
	}
	m, err := s.store.Read(ctx)
	if err == nil && !s.volatile {
		err = s.mayLoad(ctx, m)
	}
	if err != nil {
		return none, err
	}
	kept, err := s.resumable(ctx, m, facts)
	if err != nil {
		return none, err
	}
	if kept == 0 {
		s.reportOverwrite(m)
		m = s.kind.NewLoad(w.Seed, w.Size, facts)
		if err := s.store.Begin(ctx, m); err != nil {
			return none, fmt.Errorf("begin the load: %w", err)
		}
	}
	report := Progress{Report: progress, Total: w.Size}
	reached := kept
	err = s.store.Fill(ctx, m, func(done uint64) { reached = done; report.Done(done) })
	if err == nil && !s.volatile {
		err = s.kind.Finish(ctx, s.store, m)
	}
	if errors.As(err, new(*StateError)) {
		return none, err
	}
	if err != nil {
		return none, &StoppedError{Done: reached, Size: w.Size, kind: s.kind, Err: err}
	}
	s.load = m.Load
	done := s.loaded(&m)
	done.Took, done.Resumed = time.Since(started), kept
	if !s.volatile {
		// Data without a seal can be used too, but less identifies them.
		if err := s.seal(ctx, m, nameLoad, m.Load); err != nil && ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
	}
	return done, nil
}

// StoppedError is the error of a load that was interrupted. The same load resumes it.
type StoppedError struct {
	Done, Size uint64
	kind       Kind
	Err        error
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("the load stopped after %s of %s %s (run `%s` again to finish it): %v", check.Group(e.Done), check.Group(e.Size), e.kind.Things, e.kind.Make, e.Err)
}

func (e *StoppedError) Unwrap() error { return e.Err }

// resumable returns the number of things of m that can be kept. It returns 0 unless m is an interrupted load of the
// wanted data, and the committed count equals the number of things.
func (s *Set) resumable(ctx context.Context, m Metadata, facts map[string]string) (uint64, error) {
	interrupted := m.Problem == nil && m.Schema == s.kind.Schema && m.State == StateLoading &&
		m.Seed == s.expected.Seed && m.Size == s.expected.Size && maps.Equal(m.Facts, facts)
	if !interrupted || m.Rows == 0 || m.Rows > m.Size {
		return 0, nil
	}
	rows, err := s.store.Rows(ctx)
	if rows != m.Rows {
		rows = 0
	}
	return rows, err
}

// mayLoad returns an error if the database has tables of other programs in the place of the data.
func (s *Set) mayLoad(ctx context.Context, m Metadata) error {
	switch {
	case m.Found && !s.kind.readable(m.Schema):
		return s.schemaError(m)
	case m.Found && s.expected.Replace != nil:
		return s.expected.Replace(&m)
	case m.Found:
		return nil
	}
	what, err := s.store.Foreign(ctx)
	if err != nil {
		return err
	}
	if what != "" {
		return StateErrorf("%s, which was not made by this program: rename or remove it, or use another database", what)
	}
	return nil
}

// reportOverwrite reports the data that a load will replace. It cannot know whether a run on them still goes on,
// because a run that was killed leaves the same metadata.
func (s *Set) reportOverwrite(m Metadata) {
	if s.volatile || s.onOverwrite == nil || m.State != stateLoaded || m.Problem != nil {
		return
	}
	what := fmt.Sprintf("the load replaces the %s of %s %s and seed %d that was in this database", s.kind.Noun, check.Group(m.Size), s.kind.Things, m.Seed)
	switch m.Run {
	case 0:
	case 1:
		what += ", on which 1 run has begun: one that still drives it ends without a verdict"
	default:
		what += fmt.Sprintf(", on which %d runs have begun: one that still drives it ends without a verdict", m.Run)
	}
	s.onOverwrite(what)
}

// maxClients is the largest number of clients. It leaves one number of an ID for a client in the background.
const maxClients = 1<<history.ClientBits - 2

// maxRun is the last run number that an ID can hold.
const maxRun = 1<<history.RunBits - 1

// attachTries bounds how often Attach tries again after another process took the run number first.
const attachTries = 100

// The uses of the data, in words.
const (
	driven     = "driven"
	downloaded = "downloaded"
)

// Progress reports at most once in progressEvery.
type Progress struct {
	Report func(done, total uint64) // may be nil
	Total  uint64
	rows   uint64 // rows counted by Row
	last   time.Time
}

const progressEvery = 100 * time.Millisecond

// ProgressRows is the number of rows between two looks at the clock.
const ProgressRows = 4096

// Row counts one more row.
func (p *Progress) Row() {
	if p.rows++; p.rows%ProgressRows == 0 || p.rows == p.Total {
		p.Total = max(p.Total, p.rows)
		p.Done(p.rows)
	}
}

// Done reports the number of finished things.
func (p *Progress) Done(n uint64) {
	if p.Report == nil {
		return
	}
	if now := time.Now(); n >= p.Total || now.Sub(p.last) >= progressEvery {
		p.last = now
		p.Report(n, p.Total)
	}
}
