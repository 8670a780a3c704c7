package dataset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/workload"
)

// Remove removes the data of a load of this kind and of its runs, and nothing else. It returns
// a *StateError for data without the mark of a load of this program. The mark is removed last, so
// the next removal finishes an interrupted one.
func (s *Set) Remove(ctx context.Context) (r workload.Removed, err error) {
	if s.volatile {
		return r, nil
	}
	m, err := s.store.Read(ctx)
	switch {
	case err != nil:
		return r, err
	case m.Found && !s.kind.readable(m.Schema):
		return r, StateErrorf("the %s in this database has schema version %d and this program knows %d: remove it with the program that made it", s.kind.Noun, m.Schema, s.kind.Schema)
	case !m.Found:
		what, err := s.store.Foreign(ctx)
		if err == nil && what != "" {
			err = StateErrorf("%s, which was not made by this program and stays", what)
		}
		return r, err
	}
	things := s.kind.Things
	if m.Size == 1 {
		things = strings.TrimSuffix(things, "s")
	}
	r.What = fmt.Sprintf("%s of %s %s and seed %d", s.kind.Noun, check.Group(m.Size), things, m.Seed)
	marked := s.kind.NewLoad(m.Seed, m.Size, m.Facts)
	marked.Run = m.Run
	if r.Names, err = s.store.Remove(ctx, marked); err != nil {
		err = fmt.Errorf("remove the %s: %w", s.kind.Noun, err)
	}
	return r, err
}

// Remove implements Store.
func (q *SQL) Remove(ctx context.Context, m Metadata) (names []string, err error) {
	if err := q.Begin(ctx, m); err != nil {
		return nil, err
	}
	for _, table := range append(slices.Clone(q.Tables), q.kind.Table) {
		there, err := q.Exists(ctx, table)
		if err == nil && there {
			err = q.Each(ctx, "DROP TABLE "+table)
			names = append(names, "table "+table)
		}
		if err != nil {
			return names, err
		}
	}
	return names, nil
}

// Drops returns the statements that remove the tables of the data.
func (q *SQL) Drops() (list []string) {
	for _, table := range q.Tables {
		list = append(list, "DROP TABLE IF EXISTS "+table)
	}
	return list
}

// Remove implements Store.
func (d *Records) Remove(ctx context.Context, m Metadata) (names []string, err error) {
	if d.Database.Limits().Simple {
		return nil, StateErrorf("the SQL of this database cannot drop tables: create its domain again")
	}
	if err := d.mark(ctx, m); err != nil {
		return nil, err
	}
	for _, c := range append(slices.Clip(d.contents.Collections), d.facts) {
		there, err := d.Database.Exists(ctx, c)
		if err == nil && there {
			err = d.Database.Drop(ctx, c)
		}
		if err != nil {
			return names, err
		}
		if there {
			names = append(names, "collection "+c.Name)
		}
	}
	return names, nil
}
