package fact

import "stroppy/internal/history"

// These facts are about rows that count their versions and name their last writer.

type (
	// RowLostUpdate states that a transaction overwrote a row, although another transaction had replaced the
	// version that it had read.
	RowLostUpdate struct {
		By     Member `json:"by"`
		Lost   Member `json:"lost"` // the transaction that had replaced the version
		Object Object `json:"object"`
		Read   uint64 `json:"read"` // versions
		Made   uint64 `json:"made"`
	}
	// RowIntermediate states that a transaction read a version that its writer overwrote itself.
	RowIntermediate struct {
		Reader  Member `json:"reader"`
		Writer  Member `json:"writer"`
		Object  Object `json:"object"`
		Version uint64 `json:"version"`
	}
	// RowLost states that an acknowledged transaction made a version, and the row has an earlier one in the end.
	RowLost struct {
		By     history.ID `json:"transaction"`
		Object Object     `json:"object"`
		Made   uint64     `json:"made"`
		Ends   uint64     `json:"ends"`
	}
	// RowGhost states that a row names a transaction as its last writer that was not applied or, with Unsent, that
	// no client sent.
	RowGhost struct {
		By      history.ID      `json:"transaction"`
		Object  Object          `json:"object"`
		Version uint64          `json:"version"`
		Outcome history.Outcome `json:"outcome"`
		Unsent  bool            `json:"unsent,omitempty"`
	}
	// RowsEnd states that the end state has every row in its latest version.
	RowsEnd struct {
		Rows int `json:"rows"`
	}
	// RowsSerial states that the dependencies over tracked rows have no cycle.
	RowsSerial struct {
		Transactions int `json:"transactions"`
		Dependencies int `json:"dependencies"`
		Tracked
	}
	// Tracked counts the reads and writes of rows that were recorded, and the statements that were not.
	Tracked struct {
		Reads       uint64 `json:"reads"`
		Writes      uint64 `json:"writes"`
		OtherReads  uint64 `json:"other_reads"`
		OtherWrites uint64 `json:"other_writes"`
	}
	// RowsUnversioned states that transactions wrote to tracked tables in a way that leaves the version unknown.
	RowsUnversioned struct {
		Transactions uint64 `json:"transactions"`
	}
	// RowsRestarted states that the versions of rows may start again, because rows are deleted and inserted.
	RowsRestarted struct {
		Object Object `json:"object"` // one of the rows
	}
	// RowGap states that no recorded transaction made a version.
	RowGap struct {
		Object  Object `json:"object"`
		Version uint64 `json:"version"`
		Count   int    `json:"count"` // of such versions
	}
	// RowTwice states that two rows have one key.
	RowTwice struct {
		Object Object `json:"object"`
	}
	// RowOperation describes what a transaction did with a row.
	RowOperation struct {
		Object  Object     `json:"object"`
		Wrote   bool       `json:"wrote"`
		Version uint64     `json:"version"` // read or made
		Writer  history.ID `json:"writer"`  // of the version that was read; 0: the row as the run found it
	}
	// RowsUpdated states that no transaction overwrote what it had not read.
	RowsUpdated struct {
		Writes uint64 `json:"writes"`
	}
)

func (RowLostUpdate) Fact() string   { return "row-lost-update" }
func (RowIntermediate) Fact() string { return "row-intermediate" }
func (RowLost) Fact() string         { return "row-lost" }
func (RowGhost) Fact() string        { return "row-ghost" }
func (RowsEnd) Fact() string         { return "rows-end" }
func (RowsSerial) Fact() string      { return "rows-serial" }
func (RowsUnversioned) Fact() string { return "rows-unversioned" }
func (RowsRestarted) Fact() string   { return "rows-restarted" }
func (RowGap) Fact() string          { return "row-gap" }
func (RowTwice) Fact() string        { return "row-twice" }
func (RowOperation) Fact() string    { return "row-operation" }
func (RowsUpdated) Fact() string     { return "rows-updated" }
