package fact

import (
	"time"

	"stroppy/internal/history"
)

// These facts are about accounts and their ledger, and about rows without versions. Amounts and balances are
// in the units of the workload, such as cents.

type (
	// Objects counts the objects of a kind in the end state and in the load. If the numbers are equal, the
	// objects differ.
	Objects struct {
		Noun  string `json:"noun"`
		Found uint64 `json:"found"`
		Made  uint64 `json:"made"`
	}
	// Sum compares the sum of the balances at the end with the sum at the load.
	Sum struct {
		End      int64  `json:"end"`
		Load     int64  `json:"load"`
		Accounts uint64 `json:"accounts"`
		Overflow bool   `json:"overflow,omitempty"` // End, or its difference from Load, exceeds 64 bits
	}
	// Negative states that a transaction left a balance below zero.
	Negative struct {
		Object  Object     `json:"object"`
		By      history.ID `json:"transaction"`
		Balance int64      `json:"balance"`
		Version uint64     `json:"version"`
		Ended   bool       `json:"ended"` // seen in the end state; otherwise computed from the ledger
	}
	// NeverNegative states that no balance is negative, neither at the end nor earlier by the ledger.
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
	// Books states that the balance of an account differs from its opening balance plus the ledger's amounts.
	Books struct {
		Object  Object `json:"object"`
		Balance int64  `json:"balance"`
		Want    int64  `json:"want"`
		Version uint64 `json:"version"`
		Legs    int    `json:"legs"` // number of legs in the ledger, which should be the account's version
	}
	// BooksClose states that all accounts agree with the ledger.
	BooksClose struct {
		Accounts uint64 `json:"accounts"`
	}
	// SameVersion states that two transactions both made one version of an account. Ledger means that only
	// the ledger shows it and that no update was lost. Closes means that the balance includes both amounts.
	SameVersion struct {
		First   Member `json:"first"`
		Second  Member `json:"second"`
		Object  Object `json:"object"`
		Version uint64 `json:"version"`
		Ledger  bool   `json:"by_ledger,omitempty"`
		Closes  bool   `json:"closes,omitempty"`
	}
	// NoSuchLeg states that an account names a transaction as the maker of its last version. The ledger has no part of
	// that transaction for the account.
	NoSuchLeg struct {
		Object  Object     `json:"object"`
		By      history.ID `json:"transaction"`
		Version uint64     `json:"version"`
	}
	// LaterLeg states that the ledger has a version of an account that is later than the account's own.
	LaterLeg struct {
		Object  Object `json:"object"`
		Version uint64 `json:"version"` // the account's own
	}
	// ImpossibleVersion states that the ledger has a version that the account cannot have had.
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
	// Presence states that an account that clients opened is present although it was closed (There), or
	// missing although it was not closed.
	Presence struct {
		Object Object `json:"object"`
		There  bool   `json:"there"`
	}

	// Lost states that an acknowledged transaction is missing from the end state.
	Lost struct {
		By history.ID `json:"transaction"`
	}
	// Altered states that the parts of a transaction in the end state differ from the parts sent.
	Altered struct {
		By      history.ID `json:"transaction"`
		Unknown bool       `json:"unknown,omitempty"` // outcome unknown; otherwise acknowledged
	}
	// NotFound states that a transaction did not find an object of the load.
	NotFound struct {
		By history.ID `json:"transaction"`
	}
	// AllThere states that all acknowledged transactions are in the end state.
	AllThere struct {
		Count int `json:"count"`
	}
	// Ghost states that an aborted or rejected transaction is in the end state.
	Ghost struct {
		By      history.ID      `json:"transaction"`
		Outcome history.Outcome `json:"outcome"`
	}
	// ClosedGhost states that a transaction was applied after a look-up had closed its id.
	ClosedGhost struct {
		By history.ID `json:"transaction"`
	}
	// NeverSent states that a transaction or a tombstone exists that no client sent.
	NeverSent struct {
		By        history.ID `json:"transaction"`
		Tombstone bool       `json:"tombstone,omitempty"`
	}
	// NoGhosts states that the end state has no unexpected transaction.
	NoGhosts struct{}
	// UnsentReads states that some transactions were not sent by a known client, so their reads are not
	// known.
	UnsentReads struct {
		Count int `json:"count"`
	}
	// Twice states that the ledger has a transaction twice for one object.
	Twice struct {
		By history.ID `json:"transaction"`
	}
	// TwoVersions states that a transaction was seen as the maker of two versions of an object. Open means
	// that a double application cannot be proved, because the object does not agree with the ledger.
	TwoVersions struct {
		By     history.ID `json:"transaction"`
		Object Object     `json:"object"`
		Made   uint64     `json:"made"`
		Seen   uint64     `json:"seen"`
		Open   bool       `json:"open,omitempty"`
	}
	// NoneTwice states that no transaction was applied twice.
	NoneTwice struct{}

	// AuditSum states that a complete audit saw another total than the load's.
	AuditSum struct {
		By    history.ID `json:"transaction"`
		Saw   int64      `json:"saw"`
		Total int64      `json:"total"`
	}
	// AuditTorn states that an audit did not see a consistent cut.
	AuditTorn struct {
		By history.ID `json:"transaction"`
	}
	// AuditsAgree counts the audits. All saw the expected total.
	AuditsAgree struct {
		Whole   int `json:"whole"`
		Sampled int `json:"sampled"`
	}
	// NoAudit states that no audit was completed. Several means: in one of several runs.
	NoAudit struct {
		Several bool `json:"several,omitempty"`
	}
	// NoAudits states that no audits were requested.
	NoAudits struct{}

	// OverLimit states that the total of accounts that clients opened is beyond the limit of a rule. By is
	// the transaction that read it; 0: the end state shows it.
	OverLimit struct {
		By     history.ID `json:"transaction,omitempty"`
		Object Object     `json:"object"` // one of the accounts
		Low    int64      `json:"low,omitempty"`
		Sum    int64      `json:"sum"`
		Most   int64      `json:"most"`
	}
	// UnderLimit states that the rule was never broken.
	UnderLimit struct {
		Limit int64 `json:"limit"`
		Low   int64 `json:"low"`
		Cover int64 `json:"cover"`
	}
)

// Fate states how a transaction ended whose effect another transaction read.
type Fate uint8

const (
	NeverRecorded Fate = iota // no client sent it
	NotApplied                // aborted, rejected or of unknown outcome, and not in the end state
	Vanished                  // acknowledged, but missing afterwards
	AppliedAs                 // made another version
	AppliedLater              // was applied later, as another version
	MadeNot                   // did not make that version
)

var fates = [...]string{"never recorded", "not applied", "vanished", "applied as another version", "applied later", "did not make the version"}

func (f Fate) String() string { return fates[f] }

// MarshalText returns the name of the fate.
func (f Fate) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

type (
	// LostUpdate states that two transactions read one version and both made the next.
	LostUpdate struct {
		First   Member `json:"first"`
		Second  Member `json:"second"`
		Object  Object `json:"object"`
		Version uint64 `json:"version"` // the version that both made
	}
	// OddRead states that a transaction read a version and its writer, but that writer did not make the
	// version.
	OddRead struct {
		Reader  Member          `json:"reader"`
		Writer  Member          `json:"writer"` // ID 0: the load
		Object  Object          `json:"object"`
		Version uint64          `json:"version"`
		Balance int64           `json:"balance"`
		Fate    Fate            `json:"fate"`
		Outcome history.Outcome `json:"outcome"`           // of the writer
		As      uint64          `json:"made,omitempty"`    // the version that the writer did make
		Ended   bool            `json:"ended,omitempty"`   // there is an end state
		Aborted bool            `json:"aborted,omitempty"` // the writer was aborted or rejected, but is in the ledger
	}
	// ReadAs names the writer of a version that a transaction read.
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
		Ended   bool   `json:"ended,omitempty"` // Want is from the end state; otherwise from the recordings
	}
	// Dependency states why one transaction must precede another.
	Dependency struct {
		From    Member        `json:"from"`
		To      Member        `json:"to"`
		Kind    string        `json:"kind"`             // ww, wr, rw, predicate or real time
		Object  Object        `json:"object,omitempty"` // empty: not known
		Version uint64        `json:"version"`
		Apart   time.Duration `json:"apart_ns,omitempty"` // for real time: from the end of From to the beginning of To
		Low     int64         `json:"low,omitempty"`      // for a predicate: its balance
	}
	// Cycle states that each transaction must precede the next, and the last must precede the first.
	Cycle struct {
		Steps []Dependency `json:"steps"` // the first few
		All   int          `json:"transactions"`
	}
	// Component states that a transaction belongs to a group in which each transaction must precede every
	// other.
	Component struct {
		By  history.ID `json:"transaction"`
		All int        `json:"transactions"`
	}
	// Operation describes what a transaction read and wrote of an object.
	Operation struct {
		Object  Object `json:"object,omitempty"` // empty: clear from the context
		Read    bool   `json:"read"`
		Version uint64 `json:"version"`
		Balance int64  `json:"balance"`
		Wrote   bool   `json:"wrote"`
		Made    uint64 `json:"made,omitempty"` // the version written
		Amount  int64  `json:"amount,omitempty"`
	}
	// Serial states that the dependencies have no cycle.
	Serial struct {
		Transactions int `json:"transactions"`
		Dependencies int `json:"dependencies"`
	}
	// WithRealTime states that the order of all transactions agrees with real time.
	WithRealTime struct{}
	// NotSerializable states that a violation of a weaker level also breaks this level.
	NotSerializable struct{}
	// NoOrder states that no transaction was applied, so there is nothing to order.
	NoOrder struct{}
)

type (
	// Growth compares the growth of the balances of each group with the amounts added.
	Growth struct {
		Groups []Group `json:"groups"`
		Added  int64   `json:"added"`
		Driven bool    `json:"driven"` // Added is from committed transactions; otherwise from the rows of the history
	}
	// Group holds the sums of one group of rows.
	Group struct {
		Name string `json:"name"`
		Grew int64  `json:"grew"`
	}
	// RowBooks states that the balance of a row differs from its opening balance plus the added amounts.
	RowBooks struct {
		Object  Object `json:"object"`
		Balance int64  `json:"balance"`
		Want    int64  `json:"want"`
	}
	// RowsFit states that all rows have the expected balances. Bare means that they were compared with
	// acknowledged transactions; Partly means that this was so for some runs.
	RowsFit struct {
		Rows    uint64 `json:"rows"`
		Bare    bool   `json:"bare,omitempty"`
		Partly  bool   `json:"partly,omitempty"`
		Foreign int64  `json:"foreign,omitempty"` // rows of the history that no run wrote
	}
	// ForeignAmounts states that the history has amounts on rows that no load made.
	ForeignAmounts struct {
		Groups []string `json:"groups"`
	}
	// Loose states that transactions of unknown outcome leave no trace that would show whether they were
	// applied.
	Loose struct {
		First []history.ID `json:"transactions"`
		Count int          `json:"count"`
	}
	// Emptied states that rows which existed before the first run are missing.
	Emptied struct {
		Rows int `json:"rows"`
	}
	// Shared states that other programs have used the tables since the first run.
	Shared struct {
		Rows int `json:"rows"`
	}
	// BareRun states that a run kept no history, and that its recording was not given or was cut off.
	BareRun struct {
		Run    uint64 `json:"run"`
		CutOff bool   `json:"cut_off,omitempty"`
	}
	// Reasons combines several reasons.
	Reasons struct {
		List []Fact `json:"reasons"`
	}
	// NoPath states that no order of an account's transactions explains a read balance.
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
	// Paths states that an order of the transactions explains every balance that was read.
	Paths struct {
		Transactions int `json:"transactions"`
	}
	// UnsurePaths states that the order is not known on some accounts: which transactions were applied or,
	// with RealTime, in which order of real time.
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
