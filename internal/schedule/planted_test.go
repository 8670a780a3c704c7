package schedule

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"stroppy/internal/db/memory"
)

// planted is the reference with a fault: operations of some kinds go by what is committed when
// they are carried out, and not by the transaction's snapshot.
type planted struct {
	Table
	kinds   []Kind
	commits *atomic.Int64
}

func (p planted) Client(ctx context.Context, isolation string) (Client, error) {
	c, err := p.Table.Client(ctx, isolation)
	if err != nil {
		return nil, err
	}
	fresh, err := p.Table.Client(ctx, isolation)
	return &plantedClient{c.(*kvClient), fresh, p}, err
}

type plantedClient struct {
	*kvClient
	fresh Client
	planted
}

func (c *plantedClient) Commit(ctx context.Context) error {
	err := c.kvClient.Commit(ctx)
	c.commits.Add(1)
	return err
}

// await returns when another transaction has committed, as if it had a lock, or after a while.
func (c *plantedClient) await() {
	before := c.commits.Load()
	for began := time.Now(); c.commits.Load() == before && time.Since(began) < 200*time.Millisecond; {
		time.Sleep(time.Millisecond)
	}
}

func (c *plantedClient) Do(ctx context.Context, o Operation) (r Result, err error) {
	if !slices.Contains(c.kinds, o.Kind) {
		return c.kvClient.Do(ctx, o)
	}
	read := o
	if !o.Kind.reads() {
		read.Kind = Find
		c.await()
	}
	if err := c.fresh.Begin(ctx, true); err != nil {
		return r, err
	}
	if r, err = c.fresh.Do(ctx, read); err != nil {
		return r, err
	}
	if err := c.fresh.Commit(ctx); err != nil || o.Kind.reads() {
		return r, err
	}
	for _, row := range r.Rows {
		if o.Kind == DeleteWhere {
			c.Delete(c.of.key(row.ID))
		} else {
			c.Set(c.of.key(row.ID), kvValue(row.Amount+o.Amount))
		}
	}
	return affected(len(r.Rows)), nil
}

func (c *plantedClient) Close() error { return errors.Join(c.fresh.Close(), c.kvClient.Close()) }

// TestSchedulesFindPlantedFaults checks that the schedules of own reads and of predicates behind a lock find
// faults that are planted on the reference.
func TestSchedulesFindPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		kinds []Kind
		want  map[Anomaly][]string
	}{
		{"each read has a snapshot of its own", []Kind{Read}, map[Anomaly][]string{
			Internal: {"a row that was read, by key", "a row that was read, after a write of another, by key"},
		}},
		{"an update or a deletion passes over a row that left its predicate", []Kind{AddWhere, DeleteWhere}, map[Anomaly][]string{
			GSingle: {
				"update, a row that moves away, by a predicate, without an index", "update, a row that is deleted, by a predicate, without an index",
				"delete, a row that moves away, by a predicate, without an index", "delete, a row that is deleted, by a predicate, without an index",
			},
		}},
	} {
		d, err := memory.Open("memory:")
		if err != nil {
			t.Fatal(err)
		}
		list, err := RunAll(t.Context(), planted{NewKV(d), c.kinds, new(atomic.Int64)}, "", Options{Wait: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[Anomaly][]string{}
		for _, o := range list {
			if o.State == Seen {
				seen[o.Anomaly] = append(seen[o.Anomaly], o.Variant)
			}
		}
		for a, variants := range c.want {
			for _, v := range variants {
				if !slices.Contains(seen[a], v) {
					t.Errorf("%s: %s %s is not seen: %q", c.name, a, v, seen[a])
				}
			}
		}
	}
}
