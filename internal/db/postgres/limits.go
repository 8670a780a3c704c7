package postgres

// maxText is the longest VARCHAR that can be declared
// (https://www.postgresql.org/docs/current/datatype-character.html: n of varchar(n) is
// at most 10485760).
const maxText = 10_485_760

// MaxValue implements db.Limiter.
func (*Database) MaxValue() int { return maxText }

// MaxCommit implements db.Limiter: there is no bound on a transaction.
func (*Database) MaxCommit() int { return 0 }
