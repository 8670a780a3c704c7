package fact

import (
	"time"

	"stroppy/internal/history"
)

// The statements about accounts and their ledger, and about rows without versions. Amounts and
// balances are in the units of the workload, such as cents.

type (
	// Objects states how many objects of a kind the end state has and the load made. If the
	// numbers are equal, the objects are not the same.
	Objects struct {
		Noun  string `json:"noun"`
		Found uint64 `json:"found"`
		Made  uint64 `json:"made"`
	}
	// Sum states to what the balances add up, in the end and at the load.
	Sum struct {
		End      int64  `json:"end"`
		Load     int64  `json:"load"`
		Accounts uint64 `json:"accounts"`
		Overflow bool   `json:"overflow,omitempty"` // End, or its difference from Load, is more than 64 bits hold
	}
	// Negative states that a transaction left a balance below zero.
	Negative struct {
		Object  Object     `json:"object"`
		By      history.ID `json:"transaction"`
		Balance int64      `json:"balance"`
		Version uint64     `json:"version"`
		Ended   bool       `json:"ended"` // the end state has it; else opening balance and ledger show it
	}
	// NeverNegative states that no balance is below zero, in the end or by the ledger before.
	NeverNegative struct{}
	// ForeignRow states that the end state has a row that neither the load nor a client made.
	ForeignRow struct {
		Row string `json:"row"`
	}
	// ForeignLeg states that the ledger has a part of a transaction on an object that no load made.
	ForeignLeg struct {
		By     history.ID `json:"transaction"`
		Object Object     `json:"object,omitempty"`
	}
	// Books states that an account does not hold what its opening balance and the ledger make.
	Books struct {
		Object  Object `json:"object"`
		Balance int64  `json:"balance"`
		Want    int64  `json:"want"`
		Version uint64 `json:"version"`
		Legs    int    `json:"legs"` // of the ledger, which is the version that the account should have
	}
	// BooksClose states that the books of all accounts close.
	BooksClose struct {
		Accounts uint64 `json:"accounts"`
	}
	// SameVersion states that two transactions both made one version of an account. Ledger: they
	// are the makers by the ledger alone, and no update was lost. Closes: the balance has both amounts.
	SameVersion struct {
		First   Member `json:"first"`
		Second  Member `json:"second"`
		Object  Object `json:"object"`
		Version uint64 `json:"version"`
		Ledger  bool   `json:"by_ledger,omitempty"`
		Closes  bool   `json:"closes,omitempty"`
	}
	// NoSuchLeg states that an account names a transaction as the maker of its last version, and
	// the ledger has no part of that transaction for it.
	NoSuchLeg struct {
		Object  Object     `json:"object"`
		By      history.ID `json:"transaction"`
		Version uint64     `json:"version"`
	}
	// LaterLeg states that the ledger has a later version of an account than its last one.
	LaterLeg struct {
		Object  Object `json:"object"`
		Version uint64 `json:"version"` // the last one
	}
	// ImpossibleVersion states that the ledger has a version that its account cannot have had.
	ImpossibleVersion struct {
		By history.ID `json:"transaction"`
	}
	// UnexplainedBalance states that a transaction read a balance that the ledger does not explain.
	UnexplainedBalance struct {
		By      history.ID `json:"transaction"`
		Object  Object     `json:"object"`
		Balance int64      `json:"balance"`
		Version uint64     `json:"version"`
	}
	// Presence states that an account which clients opened is there although it was closed
	// (There), or is not there although it was not.
	Presence struct {
		Object Object `json:"object"`
		There  bool   `json:"there"`
	}

	// Lost states that a transaction was acknowledged and is not in the end state.
	Lost struct {
		By history.ID `json:"transaction"`
	}
	// Altered states that the parts of a transaction in the end state are not those that were sent.
	Altered struct {
		By      history.ID `json:"transaction"`
		Unknown bool       `json:"unknown,omitempty"` // its outcome is unknown; else it was acknowledged
	}
	// NotFound states that a transaction did not find an object that the load had made.
	NotFound struct {
		By history.ID `json:"transaction"`
	}
	// AllThere states that all acknowledged transactions are there.
	AllThere struct {
		Count int `json:"count"`
	}
	// Ghost states that a transaction which was aborted or rejected is there.
	Ghost struct {
		By      history.ID      `json:"transaction"`
		Outcome history.Outcome `json:"outcome"`
	}
	// ClosedGhost states that a transaction was applied after a look-up had closed its id.
	ClosedGhost struct {
		By history.ID `json:"transaction"`
	}
	// NeverSent states that a transaction is there, or a tombstone of it, that no client sent.
	NeverSent struct {
		By        history.ID `json:"transaction"`
		Tombstone bool       `json:"tombstone,omitempty"`
	}
	// NoGhosts states that nothing is there that should not be.
	NoGhosts struct{}
	// UnsentReads states that what transactions read which no client sent is not known.
	UnsentReads struct {
		Count int `json:"count"`
	}
	// Twice states that a transaction is in the ledger twice for one object.
	Twice struct {
		By history.ID `json:"transaction"`
	}
	// TwoVersions states that a transaction was seen as the maker of two versions of an object. Open: whether it
	// was applied twice is not known, because the books of the object do not close.
	TwoVersions struct {
		By     history.ID `json:"transaction"`
		Object Object     `json:"object"`
		Made   uint64     `json:"made"`
		Seen   uint64     `json:"seen"`
		Open   bool       `json:"open,omitempty"`
	}
	// NoneTwice states that no transaction was applied twice.
	NoneTwice struct{}

	// AuditSum states that a whole audit saw another total than that of the load.
	AuditSum struct {
		By    history.ID `json:"transaction"`
		Saw   int64      `json:"saw"`
		Total int64      `json:"total"`
	}
	// AuditTorn states that an audit saw no consistent cut.
	AuditTorn struct {
		By history.ID `json:"transaction"`
	}
	// AuditsAgree states how many audits saw what they should.
	AuditsAgree struct {
		Whole   int `json:"whole"`
		Sampled int `json:"sampled"`
	}
	// NoAudit states that no audit was completed, in one of several runs if Several.
	NoAudit struct {
		Several bool `json:"several,omitempty"`
	}
	// NoAudits states that no audits were asked for.
	NoAudits struct{}

	// OverLimit states that accounts which clients opened hold more together, or lack more, than
	// the rule allows. By read it; 0: the end state shows it.
	OverLimit struct {
		By     history.ID `json:"transaction,omitempty"`
		Object Object     `json:"object"` // one of the accounts
		Low    int64      `json:"low,omitempty"`
		Sum    int64      `json:"sum"`
		Most   int64      `json:"most"`
	}
	// UnderLimit states that no such rule was broken.
	UnderLimit struct {
		Limit int64 `json:"limit"`
		Low   int64 `json:"low"`
		Cover int64 `json:"cover"`
	}
)

// Fate says what became of a transaction whose effect another one read.
type Fate uint8

const (
	NeverRecorded Fate = iota // no client sent it
	NotApplied                // it was aborted or rejected, or its outcome is unknown, and it is not there
	Vanished                  // it was acknowledged and then was not there
	AppliedAs                 // it made another version there
	AppliedLater              // it was applied later, as another version
	MadeNot                   // it did not make that version
)

var fates = [...]string{"never recorded", "not applied", "vanished", "applied as another version", "applied later", "did not make the version"}

func (f Fate) String() string { return fates[f] }

// MarshalText carries a fate through JSON by name.
func (f Fate) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

type (
	// LostUpdate states that two transactions read one version and both made the next one.
	LostUpdate struct {
		First   Member `json:"first"`
		Second  Member `json:"second"`
		Object  Object `json:"object"`
		Version uint64 `json:"version"` // that both made
	}
	// OddRead states that a transaction read a version as made by another one that did not make it.
	OddRead struct {
		Reader  Member          `json:"reader"`
		Writer  Member          `json:"writer"` // ID 0: the load
		Object  Object          `json:"object"`
		Version uint64          `json:"version"`
		Balance int64           `json:"balance"`
		Fate    Fate            `json:"fate"`
		Outcome history.Outcome `json:"outcome"`           // of the writer
		As      uint64          `json:"made,omitempty"`    // the version that the writer made
		Ended   bool            `json:"ended,omitempty"`   // there is an end state
		Aborted bool            `json:"aborted,omitempty"` // it was aborted or rejected, and is in the ledger all the same
	}
	// ReadAs states that a transaction read a version as made by another one.
	ReadAs struct {
		Reader  history.ID `json:"reader"`
		Writer  history.ID `json:"writer"` // 0: the load
		Object  Object     `json:"object"`
		Version uint64     `json:"version"`
		Balance int64      `json:"balance"`
	}
	// GarbageRead states that a transaction read a balance that no transaction wrote.
	GarbageRead struct {
		Reader  Member `json:"reader"`
		Object  Object `json:"object"`
		Version uint64 `json:"version"`
		Balance int64  `json:"balance"`
		Want    int64  `json:"want"`
		Ended   bool   `json:"ended,omitempty"` // there is an end state, whose ledger makes Want; else the recordings do
	}
	// Dependency states why one transaction must come before another.
	Dependency struct {
		From    Member        `json:"from"`
		To      Member        `json:"to"`
		Kind    string        `json:"kind"`             // ww, wr, rw, predicate or real time
		Object  Object        `json:"object,omitempty"` // empty: not known
		Version uint64        `json:"version"`
		Apart   time.Duration `json:"apart_ns,omitempty"` // of real time: from the end of From to the beginning of To
		Low     int64         `json:"low,omitempty"`      // of a predicate: the balance that it is about
	}
	// Cycle states that each transaction must come before the next, and the last before the first.
	Cycle struct {
		Steps []Dependency `json:"steps"` // the first few
		All   int          `json:"transactions"`
	}
	// Component states that a transaction is one of several of which each must come before every other.
	Component struct {
		By  history.ID `json:"transaction"`
		All int        `json:"transactions"`
	}
	// Operation states what a transaction saw and made of an object.
	Operation struct {
		Object  Object `json:"object,omitempty"` // empty: it is clear which
		Read    bool   `json:"read"`
		Version uint64 `json:"version"`
		Balance int64  `json:"balance"`
		Wrote   bool   `json:"wrote"`
		Made    uint64 `json:"made,omitempty"` // the version
		Amount  int64  `json:"amount,omitempty"`
	}
	// Serial states that the dependencies have no cycle.
	Serial struct {
		Transactions int `json:"transactions"`
		Dependencies int `json:"dependencies"`
	}
	// WithRealTime states that the order of all transactions agrees with real time.
	WithRealTime struct{}
	// NotSerializable states that what breaks a weaker level breaks this one too.
	NotSerializable struct{}
	// NoOrder states that no transaction was applied.
	NoOrder struct{}
)

type (
	// Growth states by how much the balances of each group grew, and what was added.
	Growth struct {
		Groups []Group `json:"groups"`
		Added  int64   `json:"added"`
		Driven bool    `json:"driven"` // Added is of committed transactions; else of the rows of the history
	}
	// Group is one group of rows.
	Group struct {
		Name string `json:"name"`
		Grew int64  `json:"grew"`
	}
	// RowBooks states that a row does not hold what its opening and the added amounts make.
	RowBooks struct {
		Object  Object `json:"object"`
		Balance int64  `json:"balance"`
		Want    int64  `json:"want"`
	}
	// RowsFit states that all rows hold what they should. Bare: it was compared with what was acknowledged;
	// Partly: of some runs.
	RowsFit struct {
		Rows    uint64 `json:"rows"`
		Bare    bool   `json:"bare,omitempty"`
		Partly  bool   `json:"partly,omitempty"`
		Foreign int64  `json:"foreign,omitempty"` // rows of the history of somebody else
	}
	// ForeignAmounts states that the history has amounts on rows that no load made.
	ForeignAmounts struct {
		Groups []string `json:"groups"`
	}
	// Loose states that transactions of unknown outcome leave nothing that shows whether they were applied.
	Loose struct {
		First []history.ID `json:"transactions"`
		Count int          `json:"count"`
	}
	// Emptied states that rows of somebody else are gone that were there when the tables were first driven.
	Emptied struct {
		Rows int `json:"rows"`
	}
	// Shared states that somebody else has worked on the tables since they were first driven.
	Shared struct {
		Rows int `json:"rows"`
	}
	// BareRun states that a run kept no history and that its recording was not given, or was cut off.
	BareRun struct {
		Run    uint64 `json:"run"`
		CutOff bool   `json:"cut_off,omitempty"`
	}
	// Reasons states several reasons.
	Reasons struct {
		List []Fact `json:"reasons"`
	}
	// NoPath states that no order of an account's transactions explains what this one read.
	NoPath struct {
		By      history.ID `json:"transaction"`
		Object  Object     `json:"object"`
		Balance int64      `json:"balance"`
		Amount  int64      `json:"amount"`
	}
	// NoTimelyPath states that no such order agrees with real time.
	NoTimelyPath struct {
		By     history.ID `json:"transaction"`
		Object Object     `json:"object"`
	}
	// Paths states that an order of so many transactions explains every balance that was read.
	Paths struct {
		Transactions int `json:"transactions"`
	}
	// UnsurePaths states that the order on some accounts is not known: which transactions were
	// applied, or in which real time (RealTime).
	UnsurePaths struct {
		Accounts int  `json:"accounts"`
		RealTime bool `json:"real_time,omitempty"`
	}
)

func (Objects) Fact() string            { return "objects" }
func (Sum) Fact() string                { return "sum" }
func (Negative) Fact() string           { return "negative" }
func (NeverNegative) Fact() string      { return "never-negative" }
func (ForeignRow) Fact() string         { return "foreign-row" }
func (ForeignLeg) Fact() string         { return "foreign-leg" }
func (Books) Fact() string              { return "books" }
func (BooksClose) Fact() string         { return "books-close" }
func (SameVersion) Fact() string        { return "same-version" }
func (NoSuchLeg) Fact() string          { return "no-such-leg" }
func (LaterLeg) Fact() string           { return "later-leg" }
func (ImpossibleVersion) Fact() string  { return "impossible-version" }
func (UnexplainedBalance) Fact() string { return "unexplained-balance" }
func (Presence) Fact() string           { return "presence" }
func (Lost) Fact() string               { return "lost" }
func (Altered) Fact() string            { return "altered" }
func (NotFound) Fact() string           { return "not-found" }
func (AllThere) Fact() string           { return "all-there" }
func (Ghost) Fact() string              { return "ghost" }
func (ClosedGhost) Fact() string        { return "closed-ghost" }
func (NeverSent) Fact() string          { return "never-sent" }
func (NoGhosts) Fact() string           { return "no-ghosts" }
func (UnsentReads) Fact() string        { return "unsent-reads" }
func (Twice) Fact() string              { return "twice" }
func (TwoVersions) Fact() string        { return "two-versions" }
func (NoneTwice) Fact() string          { return "none-twice" }
func (AuditSum) Fact() string           { return "audit-sum" }
func (AuditTorn) Fact() string          { return "audit-torn" }
func (AuditsAgree) Fact() string        { return "audits-agree" }
func (NoAudit) Fact() string            { return "no-audit" }
func (NoAudits) Fact() string           { return "no-audits" }
func (OverLimit) Fact() string          { return "over-limit" }
func (UnderLimit) Fact() string         { return "under-limit" }
func (LostUpdate) Fact() string         { return "lost-update" }
func (OddRead) Fact() string            { return "odd-read" }
func (ReadAs) Fact() string             { return "read-as" }
func (GarbageRead) Fact() string        { return "garbage-read" }
func (Dependency) Fact() string         { return "dependency" }
func (Cycle) Fact() string              { return "cycle" }
func (Component) Fact() string          { return "component" }
func (Operation) Fact() string          { return "operation" }
func (Serial) Fact() string             { return "serial" }
func (WithRealTime) Fact() string       { return "with-real-time" }
func (NotSerializable) Fact() string    { return "not-serializable" }
func (NoOrder) Fact() string            { return "no-order" }
func (Growth) Fact() string             { return "growth" }
func (RowBooks) Fact() string           { return "row-books" }
func (RowsFit) Fact() string            { return "rows-fit" }
func (ForeignAmounts) Fact() string     { return "foreign-amounts" }
func (Loose) Fact() string              { return "loose" }
func (Emptied) Fact() string            { return "emptied" }
func (Shared) Fact() string             { return "shared" }
func (BareRun) Fact() string            { return "bare-run" }
func (Reasons) Fact() string            { return "reasons" }
func (NoPath) Fact() string             { return "no-path" }
func (NoTimelyPath) Fact() string       { return "no-timely-path" }
func (Paths) Fact() string              { return "paths" }
func (UnsurePaths) Fact() string        { return "unsure-paths" }
