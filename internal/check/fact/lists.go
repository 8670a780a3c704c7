package fact

import (
	"time"

	"stroppy/internal/history"
)

// The statements of the checker of lists.

// Element is the display name of a list's element. It is empty for a position at which a read found nothing.
type Element string

// Elements are the elements of a list, in their order.
type Elements struct {
	Length int       `json:"length"` // of the whole list
	Last   []Element `json:"last"`   // its last elements; the first Length-len(Last) are left out
}

// ListRead is the result of reading a list, as the transaction recorded it.
type ListRead struct {
	Reader Member   `json:"reader"`
	On     Object   `json:"list"`
	Read   Elements `json:"read"`
}

// ListGarbage states that a transaction read an element that no transaction appended.
type ListGarbage struct {
	ListRead
	Element Element `json:"element"`
}

// ListForeign states that the end state has an element that no transaction appended.
type ListForeign struct {
	On      Object   `json:"list"`
	End     Elements `json:"end"` // of the list up to the element
	Element Element  `json:"element"`
}

// ListUnexpected states that the end state contains something that no transaction writes.
type ListUnexpected struct {
	Found string `json:"found"` // as the download described it
}

// ListDuplicate states that a list has an element twice. If TakenBack is true, the end state
// has it at most once: the other one was of a try that was rolled back.
type ListDuplicate struct {
	On        Object   `json:"list"`
	Element   Element  `json:"element"`
	Known     Elements `json:"known"` // of the list up to the second of the two
	TakenBack bool     `json:"taken_back,omitempty"`
}

// ListDisorder states that a list has two appends of one transaction in the wrong order, or only the later
// one.
type ListDisorder struct {
	By      Member   `json:"by"`
	On      Object   `json:"list"`
	Element Element  `json:"element"` // the later one
	Known   Elements `json:"known"`   // the longest version of the list that was read
}

// ListContradiction states that neither of two reads of a list is a prefix of the other. The reader is the
// zero member if one of the two is the end state.
type ListContradiction struct {
	ListRead
	Other Elements `json:"other"` // what other reads have
}

// ListOtherRow states that two reads found different elements at the same position. The reader is the zero
// member if one of the two is the end state.
type ListOtherRow struct {
	ListRead
	Place int     `json:"place"` // from 1
	Found Element `json:"found"`
	Other Element `json:"other"`
}

// ListOtherBase states that a read found an element after other elements than those that its writer had
// recorded when it appended the element. The reader is the zero member if the end state was read.
type ListOtherBase struct {
	ListRead
	Element Element  `json:"element"`
	Writer  Member   `json:"writer"`
	Base    Elements `json:"base"`    // what the writer had read before it appended the element
	Retried bool     `json:"retried"` // the writer made more than one try
}

// ListAppendedTwice states that one element was appended twice.
type ListAppendedTwice struct {
	First   Member  `json:"first"`
	Second  Member  `json:"second"`
	On      Object  `json:"list"`
	Element Element `json:"element"`
}

// ListAborted states that a transaction read an element of a transaction that was aborted.
type ListAborted struct {
	ListRead
	Writer  Member  `json:"writer"`
	Element Element `json:"element"`
}

// ListDirtyAppend states that a transaction appended to a list that contained an element of an aborted
// transaction.
type ListDirtyAppend struct {
	By        Member  `json:"by"`
	On        Object  `json:"list"`
	Element   Element `json:"element"`
	Writer    Member  `json:"writer"`
	Behind    Element `json:"behind"`              // the first such element
	Elsewhere bool    `json:"elsewhere,omitempty"` // the writer was not aborted, but appended it behind other elements
}

// ListHole states that a transaction appended a row to a list after a row that is missing from the end state.
type ListHole struct {
	By      Member  `json:"by"`
	On      Object  `json:"list"`
	Element Element `json:"element"`
	Place   int     `json:"place"` // of the element, from 1
}

// ListHalfway states that a transaction read a list between two appends of another one.
type ListHalfway struct {
	ListRead
	Writer Member `json:"writer"`
}

// ListFuture states that a transaction read an element that it appended only later.
type ListFuture struct {
	ListRead
	Element Element `json:"element"`
}

// ListOwnMissing states that a transaction did not find an element that it had appended
// itself. If Range is true, it read a range that the list belongs to, and did not find the list.
type ListOwnMissing struct {
	ListRead
	Element Element `json:"element"`
	Range   bool    `json:"range,omitempty"`
}

// ListPartSeen states that a transaction saw one write of another transaction and missed another. If Later is
// true, the missed read came after the read that saw a write.
type ListPartSeen struct {
	ListRead          // that misses a write
	Missing  Element  `json:"missing"`
	Writer   Member   `json:"writer"`
	SeenOn   Object   `json:"seen_on"` // may be the same list
	Seen     Elements `json:"seen"`
	Later    bool     `json:"later"`
}

// ListLost states that an acknowledged append is not in the end state.
type ListLost struct {
	By      Member   `json:"by"`
	On      Object   `json:"list"`
	Element Element  `json:"element"`
	End     Elements `json:"end"`
}

// ListGhost states that the end state has an append of a transaction that was not committed.
type ListGhost struct {
	By      Member          `json:"by"`
	Outcome history.Outcome `json:"outcome"`
	On      Object          `json:"list"`
	Element Element         `json:"element"`
}

// ListLostUpdate states that two transactions read the same version of a list and both
// appended to it.
type ListLostUpdate struct {
	First  Member   `json:"first"`
	Second Member   `json:"second"`
	On     Object   `json:"list"`
	Read   Elements `json:"read"`
}

// ListCycle states that each of the members must precede the next, and the last must precede the first.
type ListCycle struct {
	Members []Member `json:"members"` // the first few
	Length  int      `json:"length"`
	Why     []Fact   `json:"why,omitempty"` // of a cycle of two transactions
}

func (ListGarbage) Fact() string       { return "list-garbage" }
func (ListForeign) Fact() string       { return "list-foreign-element" }
func (ListUnexpected) Fact() string    { return "list-unexpected" }
func (ListDuplicate) Fact() string     { return "list-duplicate" }
func (ListDisorder) Fact() string      { return "list-disorder" }
func (ListContradiction) Fact() string { return "list-contradiction" }
func (ListOtherRow) Fact() string      { return "list-other-row" }
func (ListOtherBase) Fact() string     { return "list-other-base" }
func (ListAppendedTwice) Fact() string { return "list-appended-twice" }
func (ListAborted) Fact() string       { return "list-aborted-read" }
func (ListDirtyAppend) Fact() string   { return "list-dirty-append" }
func (ListHole) Fact() string          { return "list-hole" }
func (ListHalfway) Fact() string       { return "list-intermediate-read" }
func (ListFuture) Fact() string        { return "list-future-read" }
func (ListOwnMissing) Fact() string    { return "list-own-append-missing" }
func (ListPartSeen) Fact() string      { return "list-part-seen" }
func (ListLost) Fact() string          { return "list-append-lost" }
func (ListGhost) Fact() string         { return "list-ghost" }
func (ListLostUpdate) Fact() string    { return "list-lost-update" }
func (ListCycle) Fact() string         { return "list-cycle" }

// These facts explain why one transaction precedes another.

// ListPair holds two transactions; First precedes Second.
type ListPair struct {
	First  Member `json:"first"`
	Second Member `json:"second"`
}

// ListBefore states the order of two transactions without a reason.
type ListBefore struct{ ListPair }

// ListEnded states that the first transaction ended before the second began.
type ListEnded struct {
	ListPair
	By time.Duration `json:"by_ns,omitempty"` // 0: by how long is not known
}

// ListSession states that a client received the reply to the first transaction before it began the second.
type ListSession struct{ ListPair }

// ListEither states that both transactions appended unread elements to a list, and that the cycle assumes
// that the first came first.
type ListEither struct {
	ListPair
	On Object `json:"list"`
}

// ListSaw states that the second transaction read an element that the first appended.
type ListSaw struct {
	ListPair
	On      Object   `json:"list"`
	Read    Elements `json:"read"`
	Element Element  `json:"element"`
}

// ListBehind states that the second transaction appended to a list behind the first.
type ListBehind struct {
	ListPair
	On      Object  `json:"list"`
	Element Element `json:"element"` // of the first
	Next    Element `json:"next"`    // of the second
}

// ListMissed states that the first transaction read a list without an element that the second
// appended.
type ListMissed struct {
	ListPair
	On      Object   `json:"list"`
	Read    Elements `json:"read"`
	Element Element  `json:"element"`
}

// ListRangeMissed states that the first transaction read a range without a list that the
// second made.
type ListRangeMissed struct {
	ListPair
	On Object `json:"list"`
}

// ListDeleted states that the second transaction deleted a list that the first had read, or to which the
// first had appended Wrote.
type ListDeleted struct {
	ListPair
	On    Object   `json:"list"`
	Wrote Element  `json:"wrote,omitempty"`
	Read  Elements `json:"read"`
}

// ListOverwritten states that the second transaction wrote the version in the end state, which lacks the
// write of the first.
type ListOverwritten struct {
	ListPair
	On      Object   `json:"list"`
	Element Element  `json:"element"` // of the first
	End     Elements `json:"end"`
}

func (ListBefore) Fact() string      { return "list-before" }
func (ListEnded) Fact() string       { return "list-ended-before" }
func (ListSession) Fact() string     { return "list-same-client" }
func (ListEither) Fact() string      { return "list-either-first" }
func (ListSaw) Fact() string         { return "list-saw" }
func (ListBehind) Fact() string      { return "list-behind" }
func (ListMissed) Fact() string      { return "list-missed" }
func (ListRangeMissed) Fact() string { return "list-range-missed" }
func (ListDeleted) Fact() string     { return "list-deleted-after" }
func (ListOverwritten) Fact() string { return "list-overwritten" }

// These facts describe the operations of a transaction.

// ListAppended is an append.
type ListAppended struct {
	On      Object  `json:"list"`
	Element Element `json:"element"`
}

// ListOwnRead is a read of a list. Known is false if the reply was lost or fits no version.
type ListOwnRead struct {
	On    Object   `json:"list"`
	Known bool     `json:"known"`
	Read  Elements `json:"read"`
}

// ListDelete is the deletion of a list.
type ListDelete struct {
	On Object `json:"list"`
}

// ListRange is a read of all lists between two, both included.
type ListRange struct {
	Low   Object `json:"low"`
	High  Object `json:"high"`
	Found int    `json:"found"`
}

// ListMore is the number of further operations of a transaction.
type ListMore struct {
	Operations int `json:"operations"`
}

func (ListAppended) Fact() string { return "list-append" }
func (ListOwnRead) Fact() string  { return "list-own-read" }
func (ListDelete) Fact() string   { return "list-delete" }
func (ListRange) Fact() string    { return "list-range" }
func (ListMore) Fact() string     { return "list-more" }

// These facts explain how results are decided, and why some are not.

// ListsAgree states that all reads of each list agree and that each element was appended. If Prefixes is
// true, each read of a list is a prefix of the same list.
type ListsAgree struct {
	Prefixes bool `json:"prefixes"`
}

// ListsDurable states that the end state has every acknowledged append. If Overwritten is true, an append was
// overwritten by a transaction that had read the list without it.
type ListsDurable struct {
	Overwritten bool `json:"overwritten"`
}

// ListsNoGhost states that each element of the end state belongs to a transaction that committed or may have
// committed.
type ListsNoGhost struct{}

// ListsOrdered states that all transactions have an order. The fields name the other orders that it agrees
// with.
type ListsOrdered struct {
	Transactions int  `json:"transactions"`
	Dependencies int  `json:"dependencies"`
	Sessions     bool `json:"sessions,omitempty"`
	RealTime     bool `json:"real_time,omitempty"`
}

// ListLevelHolds states that a history keeps an isolation level.
type ListLevelHolds struct{}

// ListBroken states that a violation found at a weaker level also breaks this level.
type ListBroken struct {
	Anomaly string `json:"anomaly,omitempty"` // empty: see the weaker level
	At      string `json:"at"`
}

// ListCausalOpen states that neither a weaker nor a stronger level decides causal consistency.
type ListCausalOpen struct{}

// ListNotRecorded states that no append of an element was recorded, in a recording that is not complete. The
// reader is the zero member if the element is in the end state.
type ListNotRecorded struct {
	Reader  Member  `json:"reader"`
	On      Object  `json:"list"`
	Element Element `json:"element"`
}

// ListMakers states that a list was deleted and that its maker is not known.
type ListMakers struct {
	On      Object `json:"list"`
	Unknown bool   `json:"unknown"` // transactions of unknown outcome may have; else none was recorded
}

// ListDeletedTwice states that two transactions deleted one list.
type ListDeletedTwice struct {
	ListPair
	On Object `json:"list"`
}

// ListUnreadRow states that no transaction read the element at a position of a list, although later elements
// exist.
type ListUnreadRow struct {
	On    Object `json:"list"`
	Place int    `json:"place"`
}

// ListPerhapsOverwritten states that an append is not in the end state, and that it may have
// been overwritten or lost.
type ListPerhapsOverwritten struct {
	On      Object  `json:"list"`
	Element Element `json:"element"`
}

// ListNoTimes states that a history has no times of a common clock.
type ListNoTimes struct{}

// ListClocks states that the clocks are not known exactly enough to decide.
type ListClocks struct {
	Within time.Duration `json:"within_ns"`
}

// ListSameVersion states that several transactions overwrote the same version of a list in an unknown order.
type ListSameVersion struct{}

// ListBaseUnknown states that it is not recorded which version a transaction had read before it wrote.
type ListBaseUnknown struct{}

// ListUnreadAppends states that several transactions appended elements to a list that no transaction read.
type ListUnreadAppends struct{}

// ListAbsent states that a list which was made and deleted was read as absent. It is not known whether the
// read came before the creation or after the deletion.
type ListAbsent struct{}

// ListHistoryLacks states that the recording lacks a transaction but has later ones of the same client.
type ListHistoryLacks struct {
	Transaction history.ID `json:"transaction"`
}

// ListHistoryRepeats states that the recording has a transaction twice, or after a later one of the same
// client.
type ListHistoryRepeats struct {
	Transaction history.ID `json:"transaction"`
}

func (ListsAgree) Fact() string             { return "lists-agree" }
func (ListsDurable) Fact() string           { return "lists-durable" }
func (ListsNoGhost) Fact() string           { return "lists-no-ghost" }
func (ListsOrdered) Fact() string           { return "lists-ordered" }
func (ListLevelHolds) Fact() string         { return "list-level-holds" }
func (ListCausalOpen) Fact() string         { return "list-causal-open" }
func (ListBroken) Fact() string             { return "list-level-broken" }
func (ListNotRecorded) Fact() string        { return "list-append-not-recorded" }
func (ListMakers) Fact() string             { return "list-maker-unknown" }
func (ListDeletedTwice) Fact() string       { return "list-deleted-twice" }
func (ListUnreadRow) Fact() string          { return "list-unread-row" }
func (ListPerhapsOverwritten) Fact() string { return "list-perhaps-overwritten" }
func (ListNoTimes) Fact() string            { return "list-no-times" }
func (ListClocks) Fact() string             { return "list-clocks" }
func (ListSameVersion) Fact() string        { return "list-same-version" }
func (ListBaseUnknown) Fact() string        { return "list-base-unknown" }
func (ListUnreadAppends) Fact() string      { return "list-unread-appends" }
func (ListAbsent) Fact() string             { return "list-absent" }
func (ListHistoryLacks) Fact() string       { return "list-history-lacks" }
func (ListHistoryRepeats) Fact() string     { return "list-history-repeats" }
