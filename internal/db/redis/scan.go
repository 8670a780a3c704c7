package redis

import (
	"context"
	"errors"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

const (
	// firstPage is the page size of the first scan of a session, in entries:
	// about ten milliseconds of the server, which does nothing else meanwhile.
	firstPage = 10_000
	// longestPage is the most, about a second of the server; its own limit, from
	// which on it lets others know that it is busy, is 5 s (busy-reply-threshold).
	longestPage = 1_000_000
	// pageGrowth is the factor by which the pages of a session grow after a torn scan.
	pageGrowth = 10
)

// Scan reads page by page, each at one moment. If a commit comes between two pages they
// are not of one snapshot, and the scan ends with class Aborted; the session's next one
// takes longer pages. So beside writers a range should fit into one page, and costs them
// the time in which the server reads it. An empty from is the first key, an empty to the
// end of all keys. An error of entry's own is returned as it is. A key of the index
// without a value, deleted or evicted behind the driver's back, is no entry.
func (s *session) Scan(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error {
	const op = "scan"
	if err := s.Usable(); err != nil {
		return err
	}
	start, end := []byte{'-'}, []byte{'+'}
	if len(from) > 0 {
		start = append([]byte{'['}, from...)
	}
	if len(to) > 0 {
		end = append([]byte{'('}, to...)
	}
	fill := func(w *words) {
		w.all = append(w.all, 2, indexKey, countKey)
		w.add(start, end)
		w.all = append(w.all, s.page)
	}
	var first []any
	var key, value []byte
	for {
		if err := ctx.Err(); err != nil {
			return optimistic.Cancelled(op, err)
		}
		cmd, err := s.eval(ctx, s.db.scan, fill, true, false)
		if err != nil {
			return s.fail(op, err, optimistic.Reading)
		}
		if err := s.still(op); err != nil {
			return err
		}
		// The page is the count of commits, as text or nil before the first one; how many
		// members of the index it has, and the last of them; and keys and their values, alternately.
		page, _ := cmd.Val().([]any)
		if len(page) < 3 || len(page)%2 == 0 {
			return s.fail(op, errNoPage, optimistic.Reading)
		}
		members, counted := page[1].(int64)
		last, named := page[2].(string)
		if !counted || !named {
			return s.fail(op, errNoPage, optimistic.Reading)
		}
		if first == nil {
			first = page
		}
		if page[0] != first[0] {
			size := s.page
			s.page = min(s.page*pageGrowth, longestPage)
			return &db.Error{Class: db.Aborted, Code: "torn", Op: op, Err: fmt.Errorf(
				"a commit came between two pages of %d entries, so they are not of one snapshot: let the writers stop, or read fewer entries", size)}
		}
		for i := 3; i < len(page); i += 2 {
			k, _ := page[i].(string)
			v, _ := page[i+1].(string)
			key, value = append(key[:0], k...), append(value[:0], v...)
			if err := entry(key, value); err != nil {
				return err
			}
		}
		if members < int64(s.page) {
			return nil
		}
		start = append(append(start[:0], '('), last...)
	}
}

var errNoPage = errors.New("the scan script answered something else than a page")
