package mysql

// maxText leaves room for other columns in a row, which has at most 65,535 bytes as
// declared, a VARCHAR with its whole length
// (https://dev.mysql.com/doc/refman/8.4/en/column-count-limit.html).
const maxText = 65_000

// MaxValue implements db.Limiter.
func (*Database) MaxValue() int { return maxText }

// MaxCommit implements db.Limiter: there is no bound on a transaction.
func (*Database) MaxCommit() int { return 0 }
