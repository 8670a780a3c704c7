package dataset

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strconv"
)

// The names in the metadata. The name of the size is Kind.Things.
const (
	nameSchema = "schema"
	nameLoad   = "load_id" // each load draws it at random
	nameState  = "state"
	nameSeed   = "seed"
	nameRun    = "run"  // the last run number taken
	nameRows   = "rows" // things loaded so far, if a load can be resumed
)

// The states of the data.
const (
	StateLoading = "loading"
	stateLoaded  = "loaded"
)

// Metadata describes the data in a database.
type Metadata struct {
	Found   bool // there are metadata, of any schema
	Schema  uint64
	Load    string // the id of the load; empty if the schema is plain
	State   string
	Seed    uint64
	Size    uint64
	Run     uint64          // the number of runs that have begun
	Rows    uint64          // of an interrupted load: the number of things that are there
	parts   [loaders]uint64 // the same for each part of a load of a key-value store
	seal    seal
	Facts   map[string]string // of the workload
	Unread  error             // the error if nothing could be read, and metadata may be there or not
	Problem error             // a *StateError: the metadata are invalid
}

// Altered returns the error of a fact that no load has written.
func (k *Kind) Altered(name, value string) error {
	return StateErrorf("the %s in this database has the %s %q, which no load has written: run `%s` to load it again", k.Noun, name, value, k.Make)
}

// NewLoad returns the metadata of a load that starts.
func (k *Kind) NewLoad(seed, size uint64, facts map[string]string) Metadata {
	return Metadata{Found: true, Schema: k.Schema, Load: rand.Text(), State: StateLoading, Seed: seed, Size: size, Facts: facts}
}

// Begun notes the number of runs that began and ended before the data were loaded.
func (m *Metadata) Begun(runs uint64) { m.Run, m.seal.ended = runs, runs }

// Finish marks the data of m as loaded. It returns a *StateError if another load has replaced the
// metadata.
func (k *Kind) Finish(ctx context.Context, store Store, m Metadata) error {
	err := store.Set(ctx, nameState, stateLoaded, nameLoad, m.Load)
	if err == errChanged {
		return k.overtaken()
	}
	return err
}

// overtaken returns the error of a load whose metadata another load has replaced.
func (k *Kind) overtaken() error {
	return StateErrorf("another load of this database began before this one was done, and replaced the %s that this one made: let one load end before the next begins, or use another database", k.Noun)
}

// parse reads stored metadata. If values are invalid, it sets Metadata.Problem. Then only a load may continue, because
// it replaces them.
func (k *Kind) parse(values map[string]string) Metadata {
	var n Metadata
	if _, n.Found = values[nameSchema]; !n.Found {
		return n
	}
	number := func(name string, to *uint64) {
		var err error
		if *to, err = strconv.ParseUint(values[name], 10, 64); err != nil {
			n.Problem = k.Altered(name, values[name])
		}
	}
	number(nameSchema, &n.Schema)
	if !k.readable(n.Schema) {
		return n
	}
	if n.Load = values[nameLoad]; n.Load == "" && n.Schema != k.Plain {
		n.Problem = k.Altered(nameLoad, "")
	}
	n.State = values[nameState]
	number(nameSeed, &n.Seed)
	number(k.Things, &n.Size)
	number(nameRun, &n.Run)
	if n.State == StateLoading {
		number(nameRows, &n.Rows)
	}
	n.seal = parseSeal(values)
	n.Facts = maps.Clone(values)
	for _, own := range k.starting(Metadata{}) {
		delete(n.Facts, own[0])
	}
	return n
}

// starting returns the names and values of the metadata of a load that starts.
func (k *Kind) starting(m Metadata) [][2]string {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	list := [][2]string{
		{nameSchema, number(m.Schema)}, {nameLoad, m.Load}, {nameState, m.State}, {nameSeed, number(m.Seed)},
		{k.Things, number(m.Size)}, {nameRun, number(m.Run)}, {nameRows, "0"},
	}
	list = append(list, m.seal.starting()...)
	for name, value := range m.Facts {
		list = append(list, [2]string{name, value})
	}
	return list
}

// readable reports whether this program reads data of a schema.
func (k *Kind) readable(schema uint64) bool {
	return schema == k.Schema || k.Plain != 0 && schema == k.Plain
}

func (s *Set) schemaError(m Metadata) error {
	return StateErrorf("the %s in this database has schema version %d and this program reads %d: use the program that made it, or remove it and run `%s`", s.kind.Noun, m.Schema, s.kind.Schema, s.kind.Make)
}

// StateError is the error if the database holds no data, an incomplete load, or tables of other programs.
type StateError struct{ error }

// StateErrorf returns a *StateError with a formatted message.
func StateErrorf(format string, args ...any) error {
	return &StateError{fmt.Errorf(format, args...)}
}

// MismatchError is the error if the configuration contradicts the data, for example by another seed or size.
type MismatchError struct{ error }

// MismatchErrorf returns a *MismatchError with a formatted message.
func MismatchErrorf(format string, args ...any) error {
	return &MismatchError{fmt.Errorf(format, args...)}
}
