package sqlite

import (
	"strconv"

	"stroppy/internal/db"
)

// LimitPages makes the disk of a session's connection appear full after a number of further pages.
func LimitPages(s db.SQLSession, more int) error {
	c := s.(*session).c.(*conn)
	have, err := c.text("PRAGMA page_count")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(have)
	if err != nil {
		return err
	}
	return c.exec("PRAGMA max_page_count=" + strconv.Itoa(n+more))
}

// Path returns the path of the database's file.
func (d *Database) Path() string { return d.options.path }
