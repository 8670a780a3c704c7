package schedule

import (
	"errors"

	"stroppy/internal/db"
)

// NewTable returns the table in the data model that a database speaks. A database whose
// model has no transaction of several steps is refused with the reason.
func NewTable(database db.Database) (Table, error) {
	switch d := database.(type) {
	case db.SQL:
		return NewSQL(d), nil
	case db.KV:
		return NewKV(d), nil
	case db.Records:
		switch limits := d.Limits(); {
		case limits.Simple:
			return nil, errors.New("the SQL of this database neither reads a record before it writes it nor writes it under a condition, so no schedule can be made of its transactions")
		case limits.Deferred:
			return nil, errors.New("a transaction of this database is one call of a procedure: no client's step comes between its steps, so no schedule can be made of them")
		}
		return NewRecords(d), nil
	}
	return nil, errors.New("this database has neither SQL nor keys nor records whose transactions have several steps, so no schedule can be made of them")
}
