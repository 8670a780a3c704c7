package fact

import "time"

// The facts of histories of other tools: registers that are read and written in sessions. Members
// and values have the names of the history. The initial state, which wrote every key before all
// transactions, is a member too.

// SessionRead states that a transaction read a value that no isolation level allows.
type SessionRead struct {
	Reader Member    `json:"reader"`
	Object Object    `json:"object"`
	Value  string    `json:"value"`
	Wrong  WrongRead `json:"wrong"`
	Writer *Member   `json:"writer,omitempty"` // of an intermediate read: who wrote and overwrote the value
	Own    string    `json:"own,omitempty"`    // of OwnMissed: what the reader had written itself
}

// WrongRead is why a value must not be read.
type WrongRead string

const (
	ThinAir      WrongRead = "thin-air"     // nobody wrote it
	OfAborted    WrongRead = "aborted"      // only an aborted transaction wrote it
	Intermediate WrongRead = "intermediate" // its writer overwrote it before it committed
	FutureOwn    WrongRead = "future"       // its reader wrote it only afterwards
	OwnMissed    WrongRead = "own-missed"   // its reader had written another value
)

// SessionMissed states that a transaction read a value and missed one that came after it.
type SessionMissed struct {
	Reader Member  `json:"reader"`
	Object Object  `json:"object"`
	Value  string  `json:"value"`
	Writer *Member `json:"writer,omitempty"` // of the value; nil: nobody wrote it
	Missed string  `json:"missed"`
	By     Member  `json:"missed_writer"`

	// Why the reader comes after By: in their session, else because it read AlsoValue of By from
	// AlsoObject, and if that is empty, through the reads of others.
	Session    bool   `json:"session,omitempty"`
	AlsoObject Object `json:"also_object,omitempty"`
	AlsoValue  string `json:"also_value,omitempty"`

	Length int `json:"length,omitempty"` // how many transactions the cycle that follows from it has
}

// SessionCircle states that a transaction comes before itself by what was read, and by an order.
type SessionCircle struct {
	By    Member    `json:"by"`
	Order TimeOrder `json:"order,omitempty"`
}

// TimeOrder is an order of transactions beside what they read and wrote.
type TimeOrder string

const (
	NoTime     TimeOrder = ""
	OfSessions TimeOrder = "sessions"
	OfRealTime TimeOrder = "real-time"
)

// SessionLostUpdate states that two transactions read one value and both wrote in its place.
type SessionLostUpdate struct {
	First  Member `json:"first"`
	Second Member `json:"second"`
	Object Object `json:"object"`
	Value  string `json:"value"`
}

// SessionCycle states that a transaction comes before itself through dependencies.
type SessionCycle struct {
	By     Member `json:"by"`
	Length int    `json:"length"`
	Why    []Fact `json:"why,omitempty"` // of a cycle of two: both dependencies
}

// SessionEitherOrder states that two values were written to an object and that both orders of them
// lead to a cycle.
type SessionEitherOrder struct {
	Cycle     Fact   `json:"cycle"` // if Earlier was written before Later
	Object    Object `json:"object"`
	Earlier   string `json:"earlier"`
	Later     string `json:"later"`
	Otherwise []Fact `json:"otherwise,omitempty"` // the cycle of the other order; none: it is not shown
	Forced    bool   `json:"forced,omitempty"`    // the other order contradicts reads and writes alone
	More      int    `json:"more,omitempty"`      // further pairs of writes of which no order helps
}

// SessionNoOrder states that every order of some pairs of writes leads to a cycle.
type SessionNoOrder struct {
	Pairs int `json:"pairs"`
}

// SessionInitial states that the initial state comes before a transaction.
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

// SessionBefore states that a transaction comes before another one.
type SessionBefore struct {
	First  Member `json:"first"`
	Second Member `json:"second"`
}

// SessionHolds states that the transactions have an order that a level allows.
type SessionHolds struct {
	Level string `json:"level"`
}

// SessionBroken states that a level is broken by what breaks another one.
type SessionBroken struct {
	Anomaly string `json:"anomaly,omitempty"`
	At      string `json:"at"`
}

// SessionWritesOpen states that the reads do not show the order of some writes, and that the search
// for an order reached its bound.
type SessionWritesOpen struct{}

// SessionNoTimes states that a history does not have the order of real time.
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
