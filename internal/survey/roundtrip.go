package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stroppy/internal/db"
)

// measure times trivial requests. ping makes one; nil: a request of the data model does.
func (p *Page) measure(ctx context.Context, database db.Database, ping func(context.Context) error) {
	const name = "round trip"
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	begun := time.Now()
	if ping == nil {
		session, opened, err := open(ctx, database)
		if err != nil {
			p.unanswered(name, err)
			return
		}
		if opened == nil {
			return // the model has no trivial request
		}
		defer session.Close()
		ping = opened
		p.add(db.Fact{Name: "time to connect", Value: short(time.Since(begun)).String()})
	}
	if err := ping(ctx); err != nil { // it prepares the statement
		p.unanswered(name, err)
		return
	}
	var took []time.Duration
	for range pings {
		sent := time.Now()
		if err := ping(ctx); err != nil {
			if len(took) == 0 || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				p.unanswered(name, err)
				return
			}
			break
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	p.RoundTrip = &RoundTrip{Count: len(took), Median: took[len(took)/2], P99: took[(len(took)*99+99)/100-1]}
	p.add(db.Fact{Name: name, Value: fmt.Sprintf("median %v, p99 %v, of %d requests", short(p.RoundTrip.Median), short(p.RoundTrip.P99), len(took))})
}

// short returns a duration with few digits.
func short(d time.Duration) time.Duration {
	if d < 10*time.Microsecond {
		return d
	}
	return d.Round(time.Microsecond)
}

// open opens a session and returns its trivial request; nil: it has none.
func open(ctx context.Context, database db.Database) (interface{ Close() error }, func(context.Context) error, error) {
	options := db.SessionOptions{Mode: db.Interactive}
	switch model := database.(type) {
	case db.SQL:
		s, err := model.Session(ctx, options)
		one := &db.Statement{SQL: "SELECT 1", Columns: []db.Type{db.Integer}}
		return s, func(ctx context.Context) error {
			return s.Query(ctx, one, nil, func([]db.Value) error { return nil })
		}, err
	case db.KV:
		s, err := model.KVSession(ctx, options)
		key, entry := [][]byte{[]byte("stroppy probe")}, make([]db.Entry, 1)
		return s, func(ctx context.Context) error {
			if err := s.Begin(ctx, true); err != nil {
				return err
			}
			defer s.Rollback()
			return s.Read(ctx, key, entry)
		}, err
	}
	return nil, nil, nil
}
