package db

// Limits are what a database takes of what workloads read and write. A field that is
// 0 has no bound of its own.
type Limits struct {
	Value  int // bytes of one value of a key-value store, or of one text in a row
	Commit int // bytes of all that one transaction writes, keys included
	Writes int // Sets and Deletes of one key-value transaction
	// Reads is how many keys one Read of a key-value store is best given. It is set
	// where that costs far less than several Reads of few, or fails less often beside
	// writers.
	Reads int
	// Connectionless says that the database has no connections, so that as many
	// transactions as are wanted are under way without one that they share.
	Connectionless bool
}
