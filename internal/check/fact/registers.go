package fact

import (
	"time"

	"stroppy/internal/history"
)

// These facts are about registers: single records that are read and written by key. A value is identified by
// the transaction that wrote it; ID 0 is the load.

// Piece is a range of bytes of a value, from byte From to byte To inclusive, counted from 0, with the writer
// of these bytes.
type Piece struct {
	From   int        `json:"from"`
	To     int        `json:"to"`
	Known  bool       `json:"known"` // false: the bytes occur in no value that they were compared with
	Writer history.ID `json:"writer"`
}

// RegisterForeignKey states that a scan returned a key that neither the load nor a transaction makes.
type RegisterForeignKey struct {
	Reader Member `json:"reader"`
	Bytes  int64  `json:"bytes"` // of its value
}

// RegisterDamagedValue states that a transaction read a value that no transaction wrote in this form.
type RegisterDamagedValue struct {
	Reader   Member  `json:"reader"`
	Object   Object  `json:"object"`
	Bytes    int64   `json:"bytes"`
	Pieces   []Piece `json:"pieces,omitempty"`   // none: its bytes were not kept
	Compared int     `json:"compared,omitempty"` // number of the record's values that it was compared with
}

// RegisterUnwrittenValue states that a transaction read a value whose named writer did not write the record.
type RegisterUnwrittenValue struct {
	Reader Member `json:"reader"`
	Writer Member `json:"writer"`
	Object Object `json:"object"`
}

// RegisterOtherLength states that a transaction read a value whose length differs from the length written.
type RegisterOtherLength struct {
	Reader  Member `json:"reader"`
	Writer  Member `json:"writer"`
	Object  Object `json:"object"`
	Found   int64  `json:"found_bytes"`
	Written int64  `json:"written_bytes"`
}

// RegisterMissingRecord states that a transaction did not find a record that the load made.
type RegisterMissingRecord struct {
	Reader Member `json:"reader"`
	Object Object `json:"object"`
}

// RegisterDirtyRead states that a transaction read a value of a refused transaction.
type RegisterDirtyRead struct {
	Reader  Member          `json:"reader"`
	Writer  Member          `json:"writer"`
	Object  Object          `json:"object"`
	Outcome history.Outcome `json:"outcome"` // of the writer
	// Ahead, if not 0, is the time from the end of the read to the beginning of the writer's last try. Then
	// only an earlier try was refused.
	Ahead time.Duration `json:"ahead_ns,omitempty"`
}

// RegisterStaleRead states that a transaction read a value that another write had replaced before the read
// began.
type RegisterStaleRead struct {
	Reader  Member        `json:"reader"`
	Object  Object        `json:"object"`
	Absent  bool          `json:"absent,omitempty"` // it found no record
	Writer  Member        `json:"writer"`           // of the value that it found
	By      Member        `json:"by"`               // who wrote after that
	Seen    bool          `json:"seen,omitempty"`   // another transaction had read By's value; else By was acknowledged
	Ago     time.Duration `json:"ago_ns"`           // from the replacement to the beginning of the read
	AtLeast bool          `json:"at_least,omitempty"`
}

// RegisterLostUpdate states that two transactions read one value and both replaced it.
type RegisterLostUpdate struct {
	First  Member `json:"first"`
	Second Member `json:"second"`
	Object Object `json:"object"`
	Writer Member `json:"writer"` // of the value that both read
}

// RegisterScanOrder states that a scan returned a record after one whose key is not smaller.
type RegisterScanOrder struct {
	Scan   Member `json:"scan"`
	Object Object `json:"object"`
}

// RegisterScanCount states that a scan returned more records than it asked for.
type RegisterScanCount struct {
	Scan  Member `json:"scan"`
	Limit int    `json:"limit"`
	Found int    `json:"found"`
}

// RegisterScanLoaded states that a scan omitted a record of the load.
type RegisterScanLoaded struct {
	Scan   Member `json:"scan"`
	Object Object `json:"object"`
}

// RegisterScanInsert states that a scan omitted a record whose insert had been acknowledged.
type RegisterScanInsert struct {
	Scan    Member        `json:"scan"`
	Object  Object        `json:"object"`
	Insert  Member        `json:"insert"`
	Ago     time.Duration `json:"ago_ns"` // from the acknowledgement until the scan began
	AtLeast bool          `json:"at_least,omitempty"`
}

// These constants name the reasons why the reads and writes of a record have no order. A value follows from
// another one if its writer had read the other one and replaced it.
const (
	// ReadBeforeWrite: the value of First was read before First began.
	ReadBeforeWrite = "read-before-write"
	// BeforeAndAfter: the writer and readers of First's value must come both before and after the writer and
	// readers of Second's value. With Several, this includes the values that follow from them.
	BeforeAndAfter = "before-and-after"
	// ReplacedTwice: First and Second both read one value and replaced it.
	ReplacedTwice = "replaced-twice"
	// ReplacedEarly: Second's value follows from First's. But it was seen or acknowledged before First, or a
	// reader of First's value, began.
	ReplacedEarly = "replaced-early"
	// ReplacedCircle: the values of First and Second each follow from the other.
	ReplacedCircle = "replaced-in-circle"
)

// RegisterNoOrder states that the reads and writes of a record have no order that agrees with real time.
type RegisterNoOrder struct {
	Object Object `json:"object"`
	Reason string `json:"reason"`
	First  Member `json:"first"`
	Second Member `json:"second"`

	Several bool `json:"several,omitempty"`
}

// RegisterEndDamaged states that the final value of a record is one that no transaction wrote in this form.
type RegisterEndDamaged struct {
	Object Object `json:"object"`
	Bytes  int64  `json:"bytes"`
}

// RegisterEndLength states that the length of a record's final value differs from the length written.
type RegisterEndLength struct {
	Object  Object `json:"object"`
	Writer  Member `json:"writer"`
	Found   int64  `json:"found_bytes"`
	Written int64  `json:"written_bytes"`
}

// RegisterEndMissing states that a record of the load is missing in the end state.
type RegisterEndMissing struct {
	Object Object `json:"object"`
}

// RegisterEndLost states that acknowledged writes of a record were lost: the final value was applied before
// they began.
type RegisterEndLost struct {
	Object Object `json:"object"`
	Absent bool   `json:"absent,omitempty"` // the record is missing in the end state
	Holds  Member `json:"holds"`            // the writer of the final value
	Lost   Member `json:"lost"`             // the lost write that began last
	Writes int    `json:"writes"`           // number of lost writes
}

// RegisterEndRepeated states that the end state has more records of the load than the load made.
type RegisterEndRepeated struct {
	Found  uint64 `json:"found"`
	Loaded uint64 `json:"loaded"`
}

// RegisterUnexpected describes a row that neither the load nor a transaction makes.
type RegisterUnexpected struct {
	Text string `json:"text"` // as the download describes it
}

// RegisterEndUnwritten states that the named writer of a record's final value did not write the record.
type RegisterEndUnwritten struct {
	Object Object `json:"object"`
	Writer Member `json:"writer"`
}

// RegisterEndRefused states that the final value of a record comes from a refused transaction.
type RegisterEndRefused struct {
	Object  Object          `json:"object"`
	Writer  Member          `json:"writer"`
	Outcome history.Outcome `json:"outcome"`
}

// These facts describe the edges and the transactions of an anomaly.

// RegisterReplaced states that a transaction replaced the value that another one had read.
type RegisterReplaced struct {
	Reader Member `json:"reader"`
	Object Object `json:"object"`
	Absent bool   `json:"absent,omitempty"` // the reader found no record
	Value  Member `json:"value"`            // the writer of the value found
	Writer Member `json:"writer"`
}

// RegisterReadOf states that a transaction read the value of another transaction.
type RegisterReadOf struct {
	Writer  Member          `json:"writer"`
	Outcome history.Outcome `json:"outcome"` // of the writer
	Object  Object          `json:"object"`
	Reader  Member          `json:"reader"`
}

// RegisterEnded states that a transaction was acknowledged before another one began.
type RegisterEnded struct {
	First   Member        `json:"first"`
	Second  Member        `json:"second"`
	Apart   time.Duration `json:"apart_ns"`
	AtLeast bool          `json:"at_least,omitempty"`
}

// RegisterSeenBefore states that the value of a transaction was read before another one began.
type RegisterSeenBefore struct {
	First  Member `json:"first"`
	Second Member `json:"second"`
}

// RegisterDidRead, RegisterDidMiss, RegisterDidOmit and RegisterDidWrite describe what a transaction did with
// the record: it read a value, found no value, omitted the record from a scan, or wrote its own value.
type (
	RegisterDidRead struct {
		Writer Member `json:"writer"`
	}
	RegisterDidMiss  struct{}
	RegisterDidOmit  struct{}
	RegisterDidWrite struct{}
)

// These facts describe what a valid check of registers covered.
type (
	// RegisterValues counts the values that were read. All had been written.
	RegisterValues struct {
		Values uint64 `json:"values"`
	}
	// RegisterFresh states that no read was stale.
	RegisterFresh struct{}
	// RegisterUpdates counts the transactions that read and wrote a record.
	RegisterUpdates struct {
		Updates uint64 `json:"updates"`
	}
	// RegisterScans counts the scans.
	RegisterScans struct {
		Scans uint64 `json:"scans"`
	}
	// RegisterOrder counts the written records. Each has an order.
	RegisterOrder struct {
		Records int `json:"records"`
	}
	// RegisterEnd counts the records of the end state. Each has an allowed value.
	RegisterEnd struct {
		Records uint64 `json:"records"`
	}
	// RegisterWritten counts the records of the end state, and the writes that produced their values.
	RegisterWritten struct {
		Records uint64 `json:"records"`
		Writes  uint64 `json:"writes"`
	}
)

// RegisterOtherRuns states that values of runs were read whose recordings were not given.
type RegisterOtherRuns struct {
	Runs []uint64 `json:"runs"` // the first few
	More int      `json:"more,omitempty"`
}

// RegisterTooMany states that the load made more records than a scan can be compared with.
type RegisterTooMany struct {
	Most uint64 `json:"most"`
}

func (RegisterForeignKey) Fact() string     { return "register-foreign-key" }
func (RegisterDamagedValue) Fact() string   { return "register-damaged-value" }
func (RegisterUnwrittenValue) Fact() string { return "register-unwritten-value" }
func (RegisterOtherLength) Fact() string    { return "register-other-length" }
func (RegisterMissingRecord) Fact() string  { return "register-missing-record" }
func (RegisterDirtyRead) Fact() string      { return "register-dirty-read" }
func (RegisterStaleRead) Fact() string      { return "register-stale-read" }
func (RegisterLostUpdate) Fact() string     { return "register-lost-update" }
func (RegisterScanOrder) Fact() string      { return "register-scan-order" }
func (RegisterScanCount) Fact() string      { return "register-scan-count" }
func (RegisterScanLoaded) Fact() string     { return "register-scan-lacks-loaded" }
func (RegisterScanInsert) Fact() string     { return "register-scan-lacks-insert" }
func (RegisterNoOrder) Fact() string        { return "register-no-order" }
func (RegisterEndDamaged) Fact() string     { return "register-end-damaged" }
func (RegisterEndLength) Fact() string      { return "register-end-length" }
func (RegisterEndMissing) Fact() string     { return "register-end-missing" }
func (RegisterEndLost) Fact() string        { return "register-end-lost" }
func (RegisterEndRepeated) Fact() string    { return "register-end-repeated" }
func (RegisterUnexpected) Fact() string     { return "register-unexpected" }
func (RegisterEndUnwritten) Fact() string   { return "register-end-unwritten" }
func (RegisterEndRefused) Fact() string     { return "register-end-refused" }
func (RegisterReplaced) Fact() string       { return "register-replaced" }
func (RegisterReadOf) Fact() string         { return "register-read-of" }
func (RegisterEnded) Fact() string          { return "register-ended-before" }
func (RegisterSeenBefore) Fact() string     { return "register-seen-before" }
func (RegisterDidRead) Fact() string        { return "register-did-read" }
func (RegisterDidMiss) Fact() string        { return "register-did-miss" }
func (RegisterDidOmit) Fact() string        { return "register-did-omit" }
func (RegisterDidWrite) Fact() string       { return "register-did-write" }
func (RegisterValues) Fact() string         { return "register-values" }
func (RegisterFresh) Fact() string          { return "register-fresh" }
func (RegisterUpdates) Fact() string        { return "register-updates" }
func (RegisterScans) Fact() string          { return "register-scans" }
func (RegisterOrder) Fact() string          { return "register-order" }
func (RegisterEnd) Fact() string            { return "register-end" }
func (RegisterWritten) Fact() string        { return "register-written" }
func (RegisterOtherRuns) Fact() string      { return "register-other-runs" }
func (RegisterTooMany) Fact() string        { return "register-too-many" }
