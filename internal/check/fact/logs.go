package fact

import "stroppy/internal/history"

// These facts are about logs: streams to which clients append batches of events. The positions of a stream
// are numbered from 1, and the events of a batch from 0.

// LogLost states that an acknowledged append is not in the log.
type LogLost struct {
	Append Member `json:"append"`
	Stream Object `json:"stream"`
	Events int    `json:"events"` // that it was sent with
}

// LogLostPart states that the log lacks some events of an acknowledged append.
type LogLostPart struct {
	Append  Member `json:"append"`
	Stream  Object `json:"stream"`
	Events  int    `json:"events"`
	Missing int    `json:"missing"`
}

// LogSpoilt states that an acknowledged append is in the log with an event that is damaged or has the wrong
// length.
type LogSpoilt struct {
	Append Member `json:"append"`
	Stream Object `json:"stream"`
}

// LogRefused states that an append was reported as not applied and is in the log.
type LogRefused struct {
	Append  Member          `json:"append"`
	Outcome history.Outcome `json:"outcome"`
}

// LogClosed states that the log has both events and a tombstone of an append: a look-up found the append's
// position free and closed it.
type LogClosed struct {
	Append Member `json:"append"`
}

// LogUnsent states that the log has events or a tombstone that no client sent.
type LogUnsent struct {
	Append    Member `json:"append"`
	Tombstone bool   `json:"tombstone,omitempty"`
}

// LogExtraEvent states that the log has an event after the last one of its append.
type LogExtraEvent struct {
	Append Member `json:"append"`
	Event  uint32 `json:"event"`
	Events int    `json:"events"` // that the append was sent with
}

// LogTwice states that the log has an event, or a tombstone, of an append twice.
type LogTwice struct {
	Append    Member `json:"append"`
	Event     uint32 `json:"event"`
	Tombstone bool   `json:"tombstone,omitempty"`
}

// LogUnexpected describes an entry that neither the load nor a client writes.
type LogUnexpected struct {
	Text string `json:"text"` // as the download describes it
}

// LogDamaged states that an entry differs from what its append wrote.
type LogDamaged struct {
	Append    Member `json:"append"`
	Event     uint32 `json:"event"`
	Tombstone bool   `json:"tombstone,omitempty"`
	Stream    Object `json:"stream"`
	Place     uint64 `json:"place"`
}

// LogLength states that the length of an event differs from the length sent.
type LogLength struct {
	Append Member `json:"append"`
	Event  uint32 `json:"event"`
	Found  int64  `json:"found_bytes"`
	Sent   int64  `json:"sent_bytes"`
}

// LogTorn states that only a part of an append is in the log.
type LogTorn struct {
	Append  Member `json:"append"`
	Stream  Object `json:"stream"`
	Events  int    `json:"events"`
	Missing int    `json:"missing"`
}

// LogOtherStream states that an event or a tombstone is not in the stream of its append.
type LogOtherStream struct {
	Append    Member `json:"append"`
	Event     uint32 `json:"event"`
	Tombstone bool   `json:"tombstone,omitempty"`
	Sent      Object `json:"sent_to"`
	Found     Object `json:"found_in"`
}

// LogOtherPlace states that an event is not at the acknowledged position.
type LogOtherPlace struct {
	Append       Member `json:"append"`
	Event        uint32 `json:"event"`
	Stream       Object `json:"stream"`
	Acknowledged uint64 `json:"acknowledged_place"`
	Found        uint64 `json:"found_place"`
}

// LogApart states that an event does not directly follow the previous event of its batch.
type LogApart struct {
	Append Member `json:"append"`
	Event  uint32 `json:"event"`
	Stream Object `json:"stream"`
	Place  uint64 `json:"place"`
	Before uint32 `json:"before"` // the event that should be there
}

// LogBehindOwn states that an append is placed after a later one of the same client.
type LogBehindOwn struct {
	Append       Member `json:"append"`
	Later        Member `json:"later"`
	Stream       Object `json:"stream"`
	Acknowledged bool   `json:"acknowledged,omitempty"` // by their acknowledged positions; otherwise by the log
}

// LogBehindLater states that an append was acknowledged before another one began, but is placed after it.
type LogBehindLater struct {
	Append       Member `json:"append"`
	Later        Member `json:"later"`
	Stream       Object `json:"stream"`
	Acknowledged bool   `json:"acknowledged,omitempty"`
}

// LogOverlap states that two appends were acknowledged with the same position.
type LogOverlap struct {
	Append     Member `json:"append"`
	First      uint64 `json:"first_place"`
	Last       uint64 `json:"last_place"`
	Other      Member `json:"other"`
	OtherFirst uint64 `json:"other_first_place"`
	OtherLast  uint64 `json:"other_last_place"`
	Stream     Object `json:"stream"`
}

// LogHole states that positions before an entry are empty.
type LogHole struct {
	Stream Object `json:"stream"`
	First  uint64 `json:"first_place"`
	Last   uint64 `json:"last_place"`
	Before Member `json:"before"` // whose entry comes next
}

// LogShared states that a position has two entries.
type LogShared struct {
	Stream Object `json:"stream"`
	Place  uint64 `json:"place"`
	Append Member `json:"append"` // of the second one
}

// LogEnd states that the recorded end of a stream is not the end of its entries.
type LogEnd struct {
	Stream Object `json:"stream"`
	End    uint64 `json:"end_place"`
	Last   uint64 `json:"last_place"` // of its entries; 0: it has none
}

// LogEndWriter states that a stream and its last entry name different writers.
type LogEndWriter struct {
	Stream Object `json:"stream"`
	Place  uint64 `json:"place"`
	Named  Member `json:"named"`
	Writer Member `json:"writer"`
}

// LogTwoEnds states that a stream has two ends.
type LogTwoEnds struct {
	Stream Object `json:"stream"`
}

// LogForeignStream states that a stream, or a stream's entries, exist that no load made.
type LogForeignStream struct {
	Stream  Object `json:"stream"`
	Entries bool   `json:"entries,omitempty"`
}

// LogLostStream states that a stream of the load is missing.
type LogLostStream struct {
	Stream Object `json:"stream"`
}

// These facts describe what a valid check of logs covered.
type (
	// LogAppends counts the acknowledged appends, which are all in the log, and the appends of unknown
	// outcome.
	LogAppends struct {
		Acknowledged int `json:"acknowledged"`
		Unknown      int `json:"unknown"`
		Applied      int `json:"applied"` // number of unknown ones that are in the log
	}
	// LogSent counts the entries and the tombstones among them. All were sent.
	LogSent struct {
		Entries    uint64 `json:"entries"`
		Tombstones uint64 `json:"tombstones"`
	}
	// LogOnce states that no event occurs twice.
	LogOnce struct{}
	// LogWhole counts the events and batches. All are complete.
	LogWhole struct {
		Events uint64 `json:"events"`
	}
	// LogOrder counts the acknowledged appends. They are in the order of real time.
	LogOrder struct {
		Appends int `json:"appends"`
	}
	// LogContinuous counts the entries of streams without a hole.
	LogContinuous struct {
		Entries uint64 `json:"entries"`
		Streams uint64 `json:"streams"`
	}
)

func (LogLost) Fact() string          { return "log-lost" }
func (LogLostPart) Fact() string      { return "log-lost-part" }
func (LogSpoilt) Fact() string        { return "log-spoilt" }
func (LogRefused) Fact() string       { return "log-refused" }
func (LogClosed) Fact() string        { return "log-closed" }
func (LogUnsent) Fact() string        { return "log-unsent" }
func (LogExtraEvent) Fact() string    { return "log-extra-event" }
func (LogTwice) Fact() string         { return "log-twice" }
func (LogUnexpected) Fact() string    { return "log-unexpected" }
func (LogDamaged) Fact() string       { return "log-damaged" }
func (LogLength) Fact() string        { return "log-length" }
func (LogTorn) Fact() string          { return "log-torn" }
func (LogOtherStream) Fact() string   { return "log-other-stream" }
func (LogOtherPlace) Fact() string    { return "log-other-place" }
func (LogApart) Fact() string         { return "log-apart" }
func (LogBehindOwn) Fact() string     { return "log-behind-own" }
func (LogBehindLater) Fact() string   { return "log-behind-later" }
func (LogOverlap) Fact() string       { return "log-overlap" }
func (LogHole) Fact() string          { return "log-hole" }
func (LogShared) Fact() string        { return "log-shared-place" }
func (LogEnd) Fact() string           { return "log-end" }
func (LogEndWriter) Fact() string     { return "log-end-writer" }
func (LogTwoEnds) Fact() string       { return "log-two-ends" }
func (LogForeignStream) Fact() string { return "log-foreign-stream" }
func (LogLostStream) Fact() string    { return "log-lost-stream" }
func (LogAppends) Fact() string       { return "log-appends" }
func (LogSent) Fact() string          { return "log-sent" }
func (LogOnce) Fact() string          { return "log-once" }
func (LogWhole) Fact() string         { return "log-whole" }
func (LogOrder) Fact() string         { return "log-order" }
func (LogContinuous) Fact() string    { return "log-continuous" }
