package redis

import (
	"context"
	"errors"
	"fmt"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

const (
	// firstPage is the page size of the first scan of a session, in entries. Such a page takes about ten milliseconds
	// of the server, which does nothing else meanwhile.
	firstPage = 10_000
	// longestPage is the maximum page size, in entries. Such a page takes about a second of the server. The server's
	// own limit is 5 s (busy-reply-threshold). After this time it answers other clients that it is busy.
	longestPage = 1_000_000
	// pageGrowth is the factor by which the pages of a session grow after a torn scan.
	pageGrowth = 10
)

// Scan reads page by page, each at one moment. If a commit comes between two pages, they are not of one snapshot. Then
// the scan ends with class Aborted, and the session's next scan has longer pages. So if other clients write, a range
// should fit into one page. The writers wait while the server reads the page.
//
// An empty from is the first key, an empty to is the end of all keys. An error of entry is returned unchanged. A key of
// the index without a value is not an entry: another client has deleted it, or the server has evicted it.
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
		// A page begins with three values: the count of commits, the number of members of the index in the page, and
		// the last of these members. The count is text, or nil before the first commit. Keys and their values follow,
		// alternately.
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
