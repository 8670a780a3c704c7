package bank

import (
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/isolation"
)

// dialectOnly is a SQL database that is never asked anything.
type dialectOnly struct {
	db.SQL
	dialect db.Dialect
}

func (d *dialectOnly) Dialect() *db.Dialect { return &d.dialect }

func (d *dialectOnly) Claim(string) (db.Claim, error) {
	return db.Claim{Level: isolation.Serializable}, nil
}

// TestLockedUpdateNeedsLockingReads checks that update=locked is refused before the load if the database has no
// locking reads.
func TestLockedUpdateNeedsLockingReads(t *testing.T) {
	for _, locks := range []bool{true, false} {
		for _, update := range []string{Atomic, Locked, RMW} {
			d := &dialectOnly{dialect: db.Dialect{
				Placeholder: func(int) string { return "?" }, TextType: func(int) string { return "TEXT" }, NoLockingRead: !locks,
			}}
			_, err := newSQLModel(d, &Config{Update: update})
			refused := update == Locked && !locks
			if (err != nil) != refused || refused && !strings.Contains(err.Error(), "take atomic or rmw") {
				t.Errorf("%s, locks %v: %v", update, locks, err)
			}
		}
	}
}
