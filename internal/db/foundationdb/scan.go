//go:build fdb

package foundationdb

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

const (
	// renewAfter bounds the time for which a scan reads at one version, which is valid for five seconds.
	renewAfter = 3 * time.Second
	// pageTimeout bounds one transaction of a scan.
	pageTimeout = 10 * time.Second
	// pageEntries bounds a page: the scan checks the age of the version between two pages.
	pageEntries = 100
)

// scan reads a range page by page.
type scan struct {
	tr      fdb.Transaction
	version int64              // the version at which pages are read
	since   time.Time          // the time when the version was given
	from    []byte             // the start of the whole range
	at, to  []byte             // the range that is not read yet
	ahead   *fdb.RangeIterator // the entries from at on; nil: none yet at this version
}

// Scan reads pages at one version until the version is too old. Then it takes a newer version, if nothing that it has
// read was changed in between. A commit without writes checks this: it conflicts with every write to the range since
// the older version. So all entries are correct at the newer version too, and a scan of any length is one snapshot. If
// an entry that was read has changed, the scan is Aborted.
//
// An empty to is the end of all keys. An error of entry ends the scan and is returned unchanged.
func (s *session) Scan(ctx context.Context, from, to []byte, entry func(key, value []byte) error) error {
	const op = "scan"
	if err := s.Usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return optimistic.Cancelled(op, err)
	}
	if len(to) == 0 {
		to = []byte{0xff}
	}
	if string(from) >= string(to) {
		return nil
	}
	tr, err := s.client.CreateTransaction()
	if err != nil {
		return s.fail(ctx, op, err, optimistic.Reading)
	}
	defer whileUsed(ctx, tr)()
	c := &scan{tr: tr, from: from, at: append([]byte(nil), from...), to: to}
	for more := true; more; {
		var page []fdb.KeyValue
		if err = c.renew(); err == nil {
			page, more, err = c.page()
		}
		if err != nil {
			return s.scanFailed(ctx, err)
		}
		for i := range page {
			if err := entry(page[i].Key, page[i].Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// scanFailed returns the error of a scan, which is not part of the session's transaction.
func (s *session) scanFailed(ctx context.Context, err error) error {
	const op = "scan"
	if ended := ctx.Err(); ended != nil {
		return optimistic.Cancelled(op, ended)
	}
	if numberOf(err) == conflict {
		return &db.Error{Class: db.Aborted, Code: "1020", Op: op, Err: errMoved}
	}
	e, _ := failure(op, numberOf(err), said(err), optimistic.Reading)
	return s.Lose(e)
}

var errMoved = db.MessageError{Text: "what was read was changed before all was read, and one version can be read for five seconds only: scan while nothing writes, or read a sample"}

// renew gives the scan a version to read at, if it has none or the version is too old.
func (c *scan) renew() error {
	if c.version != 0 && time.Since(c.since) < renewAfter {
		return nil
	}
	since := time.Now()
	if c.version != 0 && string(c.at) > string(c.from) {
		if err := c.verify(); err != nil {
			return err
		}
	} else {
		if err := c.reset(); err != nil {
			return err
		}
		version, err := c.tr.GetReadVersion().Get()
		if err != nil {
			return err
		}
		c.version = version
	}
	c.since = since
	return nil
}

// reset makes the transaction ready for a version.
func (c *scan) reset() error {
	c.ahead = nil
	c.tr.Reset()
	return c.tr.Options().SetTimeout(pageTimeout.Milliseconds())
}

// verify takes the version of a commit. The commit fails if any entry that was read has changed since the version
// before. Its write conflict range belongs to a key that nobody uses.
func (c *scan) verify() error {
	if err := c.reset(); err != nil {
		return err
	}
	c.tr.SetReadVersion(c.version)
	nobody := binary.BigEndian.AppendUint64([]byte("\x00stroppy scan "), rand.Uint64())
	err := c.tr.AddReadConflictRange(fdb.KeyRange{Begin: fdb.Key(c.from), End: fdb.Key(c.at)})
	if err == nil {
		err = c.tr.AddWriteConflictKey(fdb.Key(nobody))
	}
	if err == nil {
		err = c.tr.Commit().Get()
	}
	if err != nil {
		return err
	}
	if c.version, err = c.tr.GetCommittedVersion(); err != nil {
		return err
	}
	if err = c.reset(); err == nil {
		c.tr.SetReadVersion(c.version)
	}
	return err
}

// page reads the next entries, and reports whether more may follow. The binding requests the next entries while the
// last entry of a page is handled.
func (c *scan) page() (entries []fdb.KeyValue, more bool, err error) {
	if c.ahead == nil {
		c.ahead = c.tr.Snapshot().GetRange(fdb.KeyRange{Begin: fdb.Key(c.at), End: fdb.Key(c.to)}, fdb.RangeOptions{Mode: fdb.StreamingModeWantAll}).Iterator()
	}
	for len(entries) < pageEntries {
		if !c.ahead.Advance() {
			return entries, false, nil
		}
		entry, err := c.ahead.Get()
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, entry)
	}
	c.at = append(append(c.at[:0], entries[len(entries)-1].Key...), 0)
	return entries, true, nil
}
