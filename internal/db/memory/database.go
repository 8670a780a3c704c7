// Package memory is the project's reference: a strictly serializable key-value store in memory, small enough to be
// reviewed completely. It also has mutants, each with one planted bug that real databases have had. The checks are
// proved on them: the reference must stay valid, and each mutant must not.
//
// store.go and index.go are the reference, which knows nothing of mutants. A mutant wraps it and overrides a part.
package memory

import (
	"context"
	"errors"
	"math/rand/v2"

	"stroppy/internal/db"
	"stroppy/internal/isolation"
)

// Isolation is the name of the only isolation.
const Isolation = "strict serializable"

// Database is one store. It satisfies db.KV, db.Ranger, db.Adder and db.Constrainer. Every Open makes a new store,
// which lives as long as the Database.
type Database struct {
	options options
	random  *rand.Rand // for all random decisions; guarded by the store's mutex
	store   *store
	engine  engine
}

var (
	_ db.KV          = (*Database)(nil)
	_ db.Adder       = (*Database)(nil)
	_ db.Ranger      = (*Database)(nil)
	_ db.Constrainer = (*Database)(nil)
)

// engine is the store, or a mutant around it. Its methods are called with the store's mutex held. Every transaction
// that has called read or readRange ends with commit or forget; forget may be called once more.
type engine interface {
	read(tx *transaction, keys [][]byte, out []db.Entry) error
	readRange(tx *transaction, r span) ([]entry, error)
	commit(tx *transaction) error
	forget(tx *transaction)
}

// Open makes an empty store. The URL is memory: followed by nothing, or by ? and parameters:
//
//	mutant=NAME  plants this bug; Mutants lists the names
//	rate=R       arms the bug in this share of all transfers (0.001)
//	n=N          number of commits that the mutant false-ack-on-crash loses (5)
//	unknown=R    share of healthy commits whose answer is lost (0)
//	abort=R      share of healthy commits that are refused at random (0)
//	seed=S       seed of the only random generator (1)
func Open(url string) (*Database, error) {
	o, err := parse(url)
	if err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: "open the database in memory", Err: err}
	}
	s := &store{records: make(map[string]*record)}
	d := &Database{options: o, store: s, engine: s, random: rand.New(rand.NewPCG(o.seed, 0x9e3779b97f4a7c15))}
	if o.mutant != "" {
		d.engine = o.mutate(s, d.random)
	}
	return d, nil
}

var (
	errRefused = &db.Error{Class: db.Aborted, Code: "refused", Op: "commit",
		Err: errors.New("the transaction was refused at random, as requested by the URL")}
	errUnknown = &db.Error{Class: db.Unknown, Code: "lost", Op: "commit",
		Err: errors.New("the answer was lost: the transaction may have been applied")}
)

// commit also does what honest databases do under failures: it refuses transactions that a retry commits, and it
// loses answers. It breaks no promise: whether a transaction with a lost answer was applied never changes afterwards.
func (d *Database) commit(tx *transaction) error {
	d.store.addUp(tx)
	if len(tx.writes) == 0 || d.options.unknown+d.options.abort == 0 {
		return d.engine.commit(tx)
	}
	if d.random.Float64() < d.options.abort {
		d.engine.forget(tx)
		return errRefused
	}
	lost := d.random.Float64() < d.options.unknown
	if lost && d.random.IntN(2) == 0 {
		d.engine.forget(tx)
		return errUnknown
	}
	if err := d.engine.commit(tx); err != nil || !lost {
		return err
	}
	return errUnknown
}

// Fired returns how often the mutant's bug has had its effect.
func (d *Database) Fired() int {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	if m, ok := d.engine.(*mutation); ok {
		return m.fired
	}
	return 0
}

// Info returns the parameters of the store too, so that a mutant is not mistaken for the reference.
func (d *Database) Info(context.Context) (db.Info, error) {
	o := d.options
	info := db.Info{Name: "memory", Version: "1", Durable: isolations.Source}
	info.Add("durability", "none, all is lost when the process ends")
	info.Add("seed", "%d", o.seed)
	if o.mutant != "" {
		info.Add("mutant", "%s", o.mutant)
		info.Add("rate", "%v", o.rate)
	}
	if o.mutant == crashMutant {
		info.Add("n", "%d", o.n)
	}
	if o.unknown > 0 {
		info.Add("unknown", "%v", o.unknown)
	}
	if o.abort > 0 {
		info.Add("abort", "%v", o.abort)
	}
	return info, nil
}

var isolations = db.Isolations{
	Product: "memory:", Source: "internal/db/memory/store.go",
	Levels: []db.NamedLevel{{Name: Isolation, Level: isolation.StrictSerializable}},
}

// IsolationNames implements db.Isolated.
func (*Database) IsolationNames() []string { return isolations.IsolationNames() }

// Claim returns the claim of the only isolation. A mutant makes the same claim, which is false.
func (d *Database) Claim(name string) (db.Claim, error) { return isolations.Claim(name) }

// Constrain declares the columns of values. It replaces earlier declarations, and does not check stored values.
func (d *Database) Constrain(spaces []db.Keyspace) error {
	for _, space := range spaces {
		for _, c := range space.Columns {
			if c.Offset < 0 {
				return db.Fatalf("constrain", "column %s of the keys %q begins at byte %d, before the value", c.Name, space.Prefix, c.Offset)
			}
		}
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.store.spaces = spaces
	return nil
}

func (d *Database) Limits() db.Limits { return db.Limits{Writes: maxWrites, Connectionless: true} }

func (d *Database) KVSession(ctx context.Context, o db.SessionOptions) (db.KVSession, error) {
	return d.AddSession(ctx, o)
}

// AddSession implements db.Adder.
func (d *Database) AddSession(_ context.Context, o db.SessionOptions) (db.AddSession, error) {
	if _, err := d.Claim(o.Isolation); err != nil {
		return nil, err
	}
	return &session{database: d}, nil
}

// RangeSession implements db.Ranger.
func (d *Database) RangeSession(_ context.Context, o db.SessionOptions) (db.RangeSession, error) {
	if _, err := d.Claim(o.Isolation); err != nil {
		return nil, err
	}
	return &session{database: d}, nil
}

// Close does nothing: the garbage collector frees the store.
func (d *Database) Close() error { return nil }
