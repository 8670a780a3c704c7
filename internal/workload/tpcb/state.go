package tpcb

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// dataKind is what the data are to a database.
var dataKind = dataset.Kind{
	Noun: "tpcb data", Things: "table rows", Make: "stroppy run tpcb", Schema: 1, Table: "stroppy_tpcb_meta", Prefix: "stroppy-tpcb/meta/",
}

// What the note keeps beside what every note has.
const (
	factScale     = "scale"
	factRatio     = "ratio"
	factVersions  = "versions"
	factStrangers = "strangers" // rows of the history that were somebody else's when the note was written
	factAdopted   = "adopted"   // somebody else made the tables
	factCount     = 5
)

// facts are what a note says of the data, besides what every note says.
type facts struct {
	size      size
	scale     uint64
	ratio     [3]uint64
	versions  bool
	strangers uint64
	adopted   bool
}

func (f *facts) note() map[string]string {
	return map[string]string{
		factScale:     strconv.FormatUint(f.scale, 10),
		factRatio:     ratioText(f.ratio),
		factVersions:  strconv.FormatBool(f.versions),
		factStrangers: strconv.FormatUint(f.strangers, 10),
		factAdopted:   strconv.FormatBool(f.adopted),
	}
}

// factsOf reads a note. The error names what makes no sense.
func factsOf(n *dataset.Note) (f facts, err error) {
	wrong := func(name string, err error) error {
		if err == nil {
			return nil
		}
		return dataKind.Altered(name, n.Facts[name])
	}
	scale, e1 := strconv.ParseUint(n.Facts[factScale], 10, 64)
	ratio, ok := parseRatio(n.Facts[factRatio])
	versions, e2 := strconv.ParseBool(n.Facts[factVersions])
	strangers, e3 := strconv.ParseUint(n.Facts[factStrangers], 10, 64)
	adopted, e4 := strconv.ParseBool(n.Facts[factAdopted])
	if err := cmp.Or(wrong(factScale, e1), wrong(factVersions, e2), wrong(factStrangers, e3), wrong(factAdopted, e4)); err != nil {
		return f, err
	}
	c := Config{Scale: scale, Ratio: ratio}
	s, err := c.size()
	if !ok || err != nil || s.rows() != n.Size {
		return f, dataKind.Altered(factRatio, n.Facts[factRatio])
	}
	return facts{size: s, scale: scale, ratio: ratio, versions: versions, strangers: strangers, adopted: adopted}, nil
}

// wanted are the facts of the load that is asked for.
func (t *TPCB) wanted() (facts, error) {
	s, err := t.config.size()
	return facts{size: s, scale: t.config.Scale, ratio: t.config.Ratio, versions: t.config.Versions}, err
}

// Load makes the tables. Data of this program that are there already are replaced.
// What somebody else made is never touched.
func (t *TPCB) Load(ctx context.Context, progress func(done, total uint64)) (workload.Loaded, error) {
	started := time.Now()
	f, err := t.wanted()
	if err != nil {
		return workload.Loaded{}, err
	}
	if !t.set.Volatile() {
		if err := t.replaces(ctx); err != nil {
			return workload.Loaded{}, err
		}
	}
	if err := t.model.take(&f); err != nil {
		return workload.Loaded{}, err
	}
	want := t.want
	t.want.Facts = f.note()
	defer func() { t.want = want }()
	kept, err := t.set.Load(ctx, progress)
	if err != nil {
		return workload.Loaded{}, err
	}
	return workload.Loaded{Accounts: f.size.rows(), Things: "rows", Took: time.Since(started), Resumed: kept}, nil
}

// replaces looks at what the database holds before a load: tables that somebody
// else made stay.
func (t *TPCB) replaces(ctx context.Context) error {
	n, err := t.store.Read(ctx)
	if err != nil || !n.Found {
		return err
	}
	was, err := factsOf(&n)
	if err != nil {
		return nil // a note that makes no sense is replaced with its data
	}
	if was.adopted {
		return dataset.StateErrorf("the tables of tpcb in this database were not made by this program: drive them as they are with --no-load, remove them, or use another database")
	}
	t.model.replaces(&was)
	return nil
}

// OnReplace has tell called with one sentence before a load replaces data that are
// loaded.
func (t *TPCB) OnReplace(tell func(what string)) { t.want.Replacing = tell }

// Replaced returns a *dataset.StateError if the data in the database are now of
// another load than the one that this one is attached to.
func (t *TPCB) Replaced(ctx context.Context) error { return t.set.Replaced(ctx) }

// Attach finds the data that an earlier load has left and takes the next run
// number. Tables that somebody else made in the same form get a note first, in a
// table of our own.
func (t *TPCB) Attach(ctx context.Context) (workload.Loaded, error) {
	if !t.set.Volatile() {
		if err := t.model.adopt(ctx, cmp.Or(t.config.Seed, adoptedSeed)); err != nil {
			return workload.Loaded{}, err
		}
	}
	defer t.anySize()()
	if err := t.set.Attach(ctx); err != nil {
		return workload.Loaded{}, err
	}
	loaded, err := t.take()
	if err == nil && !t.set.Volatile() {
		err = t.model.prepare(ctx, t.set.Run())
	}
	return loaded, err
}

// anySize leaves the comparison of sizes to fits, which knows what scale and ratio are,
// until the function that it returns is called.
func (t *TPCB) anySize() func() {
	was := t.want.Size
	if !t.set.Volatile() {
		t.want.Size = 0
	}
	return func() { t.want.Size = was }
}

// adoptedSeed is the seed of data that were not made by a load of this program,
// where none is asked for.
const adoptedSeed = 1

// Look finds the data as Attach does, and only reads. The run number that it goes
// by is one that nobody has taken.
func (t *TPCB) Look(ctx context.Context) (workload.Loaded, error) {
	defer t.anySize()()
	if err := t.set.Look(ctx); err != nil {
		return workload.Loaded{}, err
	}
	return t.take()
}

// take takes over what the database says about the data in it.
func (t *TPCB) take() (workload.Loaded, error) {
	n := t.set.Note()
	var err error
	if t.set.Volatile() {
		t.facts, err = t.wanted()
	} else {
		t.facts, err = factsOf(&n)
	}
	if err == nil {
		err = t.model.take(&t.facts)
	}
	return workload.Loaded{Accounts: n.Size, Things: "rows"}, err
}

// fits says whether the data that were found can be driven as this one is
// configured.
func (t *TPCB) fits(n *dataset.Note) error {
	f, err := factsOf(n)
	if err != nil {
		return err
	}
	c := &t.config
	switch want, e := t.wanted(); {
	case c.Scale != 0 && e == nil && f.size != want.size:
		return dataset.MismatchErrorf("the tpcb data in this database have %d branches, %d tellers and %d accounts, and %d, %d and %d are asked for: leave scale and ratio out, or run `%s`",
			f.size.branches, f.size.tellers, f.size.accounts, want.size.branches, want.size.tellers, want.size.accounts, dataKind.Make)
	case !c.AnyRows && f.versions != c.Versions:
		return dataset.MismatchErrorf("the tpcb data in this database were loaded with versions=%t, and versions=%t is asked for: leave versions out, or run `%s`", f.versions, c.Versions, dataKind.Make)
	}
	return nil
}
