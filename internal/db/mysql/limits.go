package mysql

import "stroppy/internal/db"

// maxText leaves room for other columns in a row, which has at most 65,535 bytes as
// declared, a VARCHAR with its whole length
// (https://dev.mysql.com/doc/refman/8.4/en/column-count-limit.html).
const maxText = 65_000

// Limits implements db.Database.
func (*Database) Limits() db.Limits { return db.Limits{Value: maxText} }
