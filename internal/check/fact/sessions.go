package fact

import "time"

// These facts are about histories of other tools: registers that are read and written in sessions. Members
// and values keep their names from the history. The initial state, which wrote every key before all
// transactions, is a member too.

// SessionRead states that a transaction read a value that no isolation level allows.
type SessionRead struct {
	Reader Member    `json:"reader"`
	Object Object    `json:"object"`
	Value  string    `json:"value"`
	Wrong  WrongRead `json:"wrong"`
	Writer *Member   `json:"writer,omitempty"` // for an intermediate read: the writer that overwrote it
	Own    string    `json:"own,omitempty"`    // for OwnMissed: the value that the reader had written
}

// WrongRead is the reason why a transaction must not read a value.
type WrongRead string

const (
	ThinAir      WrongRead = "thin-air"     // no transaction wrote it
	OfAborted    WrongRead = "aborted"      // only an aborted transaction wrote it
	Intermediate WrongRead = "intermediate" // its writer overwrote it before it committed
	FutureOwn    WrongRead = "future"       // its reader wrote it only later
	OwnMissed    WrongRead = "own-missed"   // its reader had written another value
)

// SessionMissed states that a transaction read a value and missed a later one.
type SessionMissed struct {
	Reader Member  `json:"reader"`
	Object Object  `json:"object"`
	Value  string  `json:"value"`
	Writer *Member `json:"writer,omitempty"` // of the value; nil: no transaction wrote it
	Missed string  `json:"missed"`
	By     Member  `json:"missed_writer"`

	// The reader follows By for one of three reasons: their session, a read of AlsoValue of By from
	// AlsoObject, or, if AlsoObject is empty, the reads of others.
	Session    bool   `json:"session,omitempty"`
	AlsoObject Object `json:"also_object,omitempty"`
	AlsoValue  string `json:"also_value,omitempty"`

	Length int `json:"length,omitempty"` // number of transactions in the resulting cycle
}

// SessionCircle states that a transaction precedes itself through reads and a time order.
type SessionCircle struct {
	By    Member    `json:"by"`
	Order TimeOrder `json:"order,omitempty"`
}

// TimeOrder is an order of transactions other than their dependencies.
type TimeOrder string

const (
	NoTime     TimeOrder = ""
	OfSessions TimeOrder = "sessions"
	OfRealTime TimeOrder = "real-time"
)

// SessionLostUpdate states that two transactions read one value and both replaced it.
type SessionLostUpdate struct {
	First  Member `json:"first"`
	Second Member `json:"second"`
	Object Object `json:"object"`
	Value  string `json:"value"`
}

// SessionCycle states that a transaction precedes itself through dependencies.
type SessionCycle struct {
	By     Member `json:"by"`
	Length int    `json:"length"`
	Why    []Fact `json:"why,omitempty"` // for a cycle of two: both dependencies
}

// SessionEitherOrder states that both orders of two writes to an object lead to a cycle.
type SessionEitherOrder struct {
	Cycle     Fact   `json:"cycle"` // if Earlier was written before Later
	Object    Object `json:"object"`
	Earlier   string `json:"earlier"`
	Later     string `json:"later"`
	Otherwise []Fact `json:"otherwise,omitempty"` // the cycle of the other order; empty: not shown
	Forced    bool   `json:"forced,omitempty"`    // the other order contradicts reads and writes alone
	More      int    `json:"more,omitempty"`      // number of further pairs of writes that have no order
}

// SessionNoOrder states that every order of some pairs of writes leads to a cycle.
type SessionNoOrder struct {
	Pairs int `json:"pairs"`
}

// SessionInitial states that the initial state precedes a transaction.
type SessionInitial struct {
	Second Member `json:"second"`
}

// SessionTime states that a transaction ended before another began.
type SessionTime struct {
	First  Member        `json:"first"`
	Second Member        `json:"second"`
	Order  TimeOrder     `json:"order"`
	Apart  time.Duration `json:"apart_ns,omitempty"` // 0: not known
}

// SessionReadOf states that a transaction read a value of another one.
type SessionReadOf struct {
	Writer Member `json:"writer"`
	Reader Member `json:"reader"`
	Object Object `json:"object"`
	Value  string `json:"value"`
}

// SessionOverwrote states that a transaction wrote over the value that another one read.
type SessionOverwrote struct {
	Reader Member `json:"reader"`
	Writer Member `json:"writer"`
	Object Object `json:"object"`
	Value  string `json:"value"`
	Made   string `json:"made"`
}

// SessionReplaced states that a transaction wrote over the value that another one wrote.
type SessionReplaced struct {
	First  Member `json:"first"`
	Second Member `json:"second"`
	Object Object `json:"object"`
	Value  string `json:"value"`
	Made   string `json:"made"`
}

// SessionBefore states that a transaction precedes another one.
type SessionBefore struct {
	First  Member `json:"first"`
	Second Member `json:"second"`
}

// SessionHolds states that the transactions have an order that the level allows.
type SessionHolds struct {
	Level string `json:"level"`
}

// SessionBroken states that a violation of another level also breaks this level.
type SessionBroken struct {
	Anomaly string `json:"anomaly,omitempty"`
	At      string `json:"at"`
}

// SessionWritesOpen states that the reads do not determine the order of some writes, and that the search for
// an order reached its limit.
type SessionWritesOpen struct{}

// SessionNoTimes states that a history has no order of real time.
type SessionNoTimes struct{}

func (SessionRead) Fact() string        { return "session-read" }
func (SessionMissed) Fact() string      { return "session-missed" }
func (SessionCircle) Fact() string      { return "session-circle" }
func (SessionLostUpdate) Fact() string  { return "session-lost-update" }
func (SessionCycle) Fact() string       { return "session-cycle" }
func (SessionEitherOrder) Fact() string { return "session-either-order" }
func (SessionNoOrder) Fact() string     { return "session-no-order" }
func (SessionInitial) Fact() string     { return "session-initial" }
func (SessionTime) Fact() string        { return "session-time" }
func (SessionReadOf) Fact() string      { return "session-read-of" }
func (SessionOverwrote) Fact() string   { return "session-overwrote" }
func (SessionReplaced) Fact() string    { return "session-replaced" }
func (SessionBefore) Fact() string      { return "session-before" }
func (SessionHolds) Fact() string       { return "session-level-holds" }
func (SessionBroken) Fact() string      { return "session-level-broken" }
func (SessionWritesOpen) Fact() string  { return "session-writes-open" }
func (SessionNoTimes) Fact() string     { return "session-no-times" }
