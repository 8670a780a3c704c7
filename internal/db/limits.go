package db

// Limiter is satisfied by a database that takes only so much of what workloads
// write. It is asked once.
type Limiter interface {
	// MaxValue is how many bytes one value of a key-value store, or one text in a
	// row of a SQL database, may have.
	MaxValue() int

	// MaxCommit is how many bytes all that one transaction writes may have, keys
	// included; 0 is no bound of its own.
	MaxCommit() int
}
