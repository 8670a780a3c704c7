package tpcb

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strconv"

	"stroppy/internal/history"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// dataKind describes the data to a database.
var dataKind = dataset.Kind{
	Workload: Name, Noun: "tpcb data", Things: "table rows", Unit: "rows", Make: "stroppy run tpcb", Schema: 1,
	Table: "stroppy_tpcb_meta",
}

// These metadata belong to tpcb alone.
const (
	factScale      = "scale"
	factRatio      = "ratio"
	factVersions   = "versions"
	factUnexpected = "unexpected" // rows of the history that were somebody else's when the metadata were written
	factAdopted    = "adopted"    // somebody else made the tables
	factCount      = 5
)

// facts holds the metadata of the data, besides the common ones.
type facts struct {
	size       size
	scale      uint64
	ratio      [noKind]uint64
	versions   bool
	unexpected uint64
	adopted    bool
}

func (f *facts) metadata() map[string]string {
	return map[string]string{
		factScale:      strconv.FormatUint(f.scale, 10),
		factRatio:      ratioText(f.ratio),
		factVersions:   strconv.FormatBool(f.versions),
		factUnexpected: strconv.FormatUint(f.unexpected, 10),
		factAdopted:    strconv.FormatBool(f.adopted),
	}
}

// factsOf reads metadata of data with so many rows in all. The error names what makes no
// sense.
func factsOf(of map[string]string, rows uint64) (f facts, err error) {
	check := func(name string, right bool) {
		if !right && err == nil {
			err = dataKind.Altered(name, of[name])
		}
	}
	number := func(name string) uint64 {
		n, err := strconv.ParseUint(of[name], 10, 64)
		check(name, err == nil)
		return n
	}
	truth := func(name string) bool {
		b, err := strconv.ParseBool(of[name])
		check(name, err == nil)
		return b
	}
	f.versions, f.unexpected, f.adopted, f.scale = truth(factVersions), number(factUnexpected), truth(factAdopted), number(factScale)
	ratio, ok := parseRatio(of[factRatio])
	s, wrong := (&Config{Scale: f.scale, Ratio: ratio}).size()
	check(factRatio, ok && wrong == nil && s.rows() == rows)
	f.ratio, f.size = ratio, s
	return f, err
}

// recorded returns the facts of the data that a history is of.
func recorded(h history.Header) (facts, error) {
	of := map[string]string{factAdopted: strconv.FormatBool(false)} // which no header has
	maps.Copy(of, h.Keys)
	return factsOf(of, h.Objects)
}

// replace sees what the database holds before a load: tables that somebody else made
// stay.
func (t *TPCB) replace(m *dataset.Metadata) error {
	was, err := factsOf(m.Facts, m.Size)
	switch {
	case err != nil: // metadata that make no sense are replaced with their data
	case was.adopted:
		return dataset.StateErrorf("the tables of tpcb in this database were not made by this program: drive them as they are with --no-load, remove them, or use another database")
	default:
		t.model.replaces(&was)
	}
	return nil
}

// Attach implements workload.Workload. Tables that somebody else made in the same form
// get metadata first, in a table of our own. If somebody has changed them since, they get
// new metadata.
func (t *TPCB) Attach(ctx context.Context) (workload.Loaded, error) {
	if !t.Volatile() {
		if err := t.model.adopt(ctx, cmp.Or(t.config.Seed, adoptedSeed)); err != nil {
			return workload.Loaded{}, err
		}
	}
	loaded, err := t.Set.Attach(ctx)
	m, adopts := t.model.(*sqlModel)
	changed, ok := errors.AsType[*dataset.ChangedError](err)
	if !ok || !adopts || t.facts.versions {
		return loaded, err
	}
	if anew, failed := m.adoptAnew(ctx, t.config.Seed); !anew {
		return loaded, cmp.Or(failed, err)
	}
	t.Report("the run takes the tables of pgbench up as they are now: " + changed.What)
	return t.Set.Attach(ctx)
}

// adoptedSeed is the seed of data that were not made by a load of this program,
// where none is asked for.
const adoptedSeed = 1

// take takes over the data that were found, if they can be used as this one is
// configured.
func (t *TPCB) take(m *dataset.Metadata) error {
	f, err := factsOf(m.Facts, m.Size)
	if err != nil {
		return err
	}
	c, asked := &t.config, &t.asked
	switch {
	case *asked != size{} && f.size != *asked:
		return dataset.MismatchErrorf("the tpcb data in this database have %d branches, %d tellers and %d accounts, and %d, %d and %d are asked for: leave scale and ratio out, or run `%s`",
			f.size[branch], f.size[teller], f.size[account], asked[branch], asked[teller], asked[account], dataKind.Make)
	case !c.AnyRows && f.versions != c.Versions:
		return dataset.MismatchErrorf("the tpcb data in this database were loaded with versions=%t, and versions=%t is asked for: leave versions out, or run `%s`", f.versions, c.Versions, dataKind.Make)
	}
	t.facts = f
	return t.model.take(&t.facts)
}
