package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"stroppy/internal/db"
)

var _ db.Surveyed = (*Database)(nil)

// Look opens the database at url for a survey. The file must be there, and its journal mode stays.
func Look(ctx context.Context, url string) (db.Database, error) {
	d, err := locate(url)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(d.options.path); errors.Is(err, fs.ErrNotExist) {
		return nil, &db.Error{Class: db.Unavailable, Op: d.opOpen(), Err: errors.New("there is no such file, and a run would make it: name a file that exists")}
	}
	d.wanted, d.options.journal = d.options.journal, ""
	d.Sessions = NewSessions(isolations, func(ctx context.Context) (Conn, error) { return d.connect(ctx) }, d.options.busyTimeout)
	if d.admin, err = d.connect(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// Survey implements db.Surveyed.
func (d *Database) Survey(_ context.Context, info db.Info) (s db.Survey, err error) {
	mode := info.Setting("journal_mode")
	s.Judge("journal_mode", mode, d.wanted != "" && mode != d.wanted, db.Note,
		fmt.Sprintf("a run changes it to %s; add journal=delete to the URL to keep the file without a write-ahead log", d.wanted))
	return s, nil
}
