package text

import (
	"fmt"

	"stroppy/internal/check/fact"
)

var logHeadings = []wording{
	{fact.LogLost{}, "{# one} acknowledged and lost"},
	{fact.LogLostPart{}, "{# one} acknowledged and lost in part"},
	{fact.LogSpoilt{}, "{# one} acknowledged and damaged"},
	{fact.LogRefused{}, "{# one} reported as not applied, and in the log"},
	{fact.LogClosed{}, "{# one} closed by a look-up, and in the log"},
	{fact.LogUnsent{}, "{# one} in the log that no client sent"},
	{fact.LogExtraEvent{}, "{# one} with more events than were sent"},
	{fact.LogTwice{}, "{# one} in the log twice"},
	{fact.LogUnexpected{}, "{# row} that neither the load nor a client writes"},
	{fact.LogDamaged{}, "{# one} with damaged entries"},
	{fact.LogLength{}, "{# one} with events of another length than was sent"},
	{fact.LogTorn{}, "{# one} in the log in part"},
	{fact.LogOtherStream{}, "{# one} with entries in another stream"},
	{fact.LogOtherPlace{}, "{# one} at another place than was acknowledged"},
	{fact.LogApart{}, "{# one} with events that do not stand together in their order"},
	{fact.LogBehindOwn{}, "{# one} behind a later one of the same client"},
	{fact.LogBehindLater{}, "{# one} behind one that began after the acknowledgement"},
	{fact.LogOverlap{}, "{# one} acknowledged at a place of another one"},
	{fact.LogHole{}, "{# hole}"},
	{fact.LogShared{}, "{# place} with two entries"},
	{fact.LogEnd{}, "{# stream} with an end that is not at the last entry"},
	{fact.LogEndWriter{}, "{# stream} with another writer of the last entry"},
	{fact.LogTwoEnds{}, "{# stream} with two ends"},
	{fact.LogForeignStream{}, "{# stream} that no load made"},
	{fact.LogLostStream{}, "{# stream} of the load lost"},
}

var logClauses = []wording{
	// the fate of an append
	{fact.LogLost{}, "{Append} with {Events event} was acknowledged, and the log does not have it"},
	{fact.LogLostPart{},
		"{Append} with {Events event} was acknowledged, and the log does not have {Missing ,} of them"},
	{fact.LogSpoilt{}, "{Append} was acknowledged, and an event of it is damaged or has another length"},
	{fact.LogRefused{}, "{Append} was {Outcome}, and it is in the log"},
	{fact.LogClosed{}, "the log has events of {Append} and a tombstone, by which a look-up had closed its place"},
	{fact.LogUnsent{Tombstone: true}, "the log has a tombstone of {Append}, and no client sent it"},
	{fact.LogUnsent{}, "{Append} is in the log, and no client sent it"},
	{fact.LogTorn{}, "{Append} was sent with {Events event}, and the log does not have {Missing ,} of them"},

	// single entries
	{fact.LogExtraEvent{},
		"the log has event {Event} of {Append}, which was sent with {Events event}, numbered from 0"},
	{fact.LogTwice{Tombstone: true}, "the tombstone of {Append} is in the log twice"},
	{fact.LogTwice{}, "event {Event} of {Append} is in the log twice"},
	{fact.LogUnexpected{}, "found in the log: {Text}"},
	{fact.LogDamaged{Tombstone: true},
		"the tombstone of {Append}, at place {Place} of {Stream}, is not as it was written"},
	{fact.LogDamaged{}, "event {Event} of {Append}, at place {Place} of {Stream}, is not as it was written"},
	{fact.LogLength{}, "event {Event} of {Append} is in the log with {Found byte}, and it was sent with {Sent byte}"},
	{fact.LogOtherStream{Tombstone: true}, "{Append} was sent to {Sent}, and its tombstone is in {Found}"},
	{fact.LogOtherStream{}, "{Append} was sent to {Sent}, and its event {Event} is in {Found}"},
	{fact.LogOtherPlace{}, "event {Event} of {Append} was acknowledged at place {Acknowledged} of {Stream}, " +
		"and it stands at place {Found}"},
	{fact.LogApart{},
		"event {Event} of {Append} stands at place {Place} of {Stream}, and event {Before} is not right before it"},

	// the order of appends
	{fact.LogBehindOwn{Acknowledged: true}, "in {Stream}, {Later} of the same client was sent later, " +
		"and {Append} was acknowledged at a place behind it"},
	{fact.LogBehindOwn{}, "in {Stream}, {Later} of the same client was sent later, and {Append} stands behind it"},
	{fact.LogBehindLater{Acknowledged: true}, "in {Stream}, {Append} was acknowledged before {Later} began, " +
		"and was acknowledged at a place behind it"},
	{fact.LogBehindLater{}, "in {Stream}, {Append} was acknowledged before {Later} began, and stands behind it"},

	// streams
	{fact.LogShared{}, "place {Place} of {Stream} has two entries, the second of {Append}"},
	{fact.LogEnd{}, "{Stream} ends at place {End} by its own record, and its last entry is at place {Last!}"},
	{fact.LogEnd{}, "{Stream} ends at place {End} by its own record, and it has no entries"},
	{fact.LogEndWriter{},
		"{Stream} names {Named} as the writer of its last entry, at place {Place}, and that entry is of {Writer}"},
	{fact.LogTwoEnds{}, "{Stream} has two ends"},
	{fact.LogForeignStream{Entries: true}, "{Stream} has entries, and no load made it"},
	{fact.LogForeignStream{}, "{Stream} is there, and no load made it"},
	{fact.LogLostStream{}, "the load made {Stream}, and it is gone"},

	// a valid or undecided check
	{fact.LogSent{}, "the log has {Entries entry}, all of which were sent, and no event of an aborted append; " +
		"{Tombstones! tombstone was} left by look-ups"},
	{fact.LogSent{}, "the log has {Entries entry}, all of which were sent, and no event of an aborted append"},
	{fact.LogOnce{}, "no event is in the log twice"},
	{fact.LogWhole{},
		"{Events event was} read back, each byte for byte as it was sent, and no batch is there in part"},
	{fact.LogOrder{}, "{Appends one was} acknowledged, and each batch stands together at its acknowledged places, " +
		"in the order of time"},
	{fact.LogContinuous{}, "the log has {Entries entry} in {Streams stream}, and no hole before the end of one"},
}

// logs returns the clause of a fact of logs that needs more than a wording; empty for others.
func (s Speaker) logs(f fact.Fact) string {
	switch f := f.(type) {
	case fact.LogOverlap:
		return fmt.Sprintf("in %s, %s was acknowledged at %s, and %s at %s", s.On(f.Stream),
			s.Member(f.Append), places(f.First, f.Last), s.Member(f.Other), places(f.OtherFirst, f.OtherLast))
	case fact.LogHole:
		empty := "the places {First} to {Last} of {Stream} are empty"
		if f.First == f.Last {
			empty = "place {First} of {Stream} is empty"
		}
		return s.fill(empty+", and {Before} stands behind", f)
	case fact.LogAppends:
		text := "no {one} was acknowledged"
		if f.Acknowledged > 0 {
			text = "{Acknowledged one was} acknowledged, and every event of them was read back whole"
		}
		if f.Unknown > 0 {
			text += "; the log has {Applied ,} of {Unknown one} of unknown outcome"
		}
		return s.fill(text, f)
	}
	return ""
}

// places formats a range of places.
func places(first, last uint64) string {
	if first == last {
		return fmt.Sprintf("place %d", first)
	}
	return fmt.Sprintf("places %d to %d", first, last)
}
