package text

import (
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

// titleOfLogs is like title, for findings about logs.
func (s Speaker) titleOfLogs(f *check.Finding) (title string, all bool) {
	n := func(noun string) string { return check.Plural(f.Count, noun) }
	appends := n(s.Words.One)
	switch f.Instances[0].(type) {
	case fact.LogLost:
		title = appends + " acknowledged and lost"
	case fact.LogLostPart:
		title = appends + " acknowledged and lost in part"
	case fact.LogSpoilt:
		title = appends + " acknowledged and damaged"
	case fact.LogRefused:
		title = appends + " reported as not applied, and in the log"
	case fact.LogClosed:
		title = appends + " closed by a look-up, and in the log"
	case fact.LogUnsent:
		title = appends + " in the log that no client sent"
	case fact.LogExtraEvent:
		title = appends + " with more events than were sent"
	case fact.LogTwice:
		title = appends + " in the log twice"
	case fact.LogUnexpected:
		title = n("row") + " that neither the load nor a client writes"
	case fact.LogDamaged:
		title = appends + " with damaged entries"
	case fact.LogLength:
		title = appends + " with events of another length than was sent"
	case fact.LogTorn:
		title = appends + " in the log in part"
	case fact.LogOtherStream:
		title = appends + " with entries in another stream"
	case fact.LogOtherPlace:
		title = appends + " at another place than was acknowledged"
	case fact.LogApart:
		title = appends + " with events that do not stand together in their order"
	case fact.LogBehindOwn:
		title = appends + " behind a later one of the same client"
	case fact.LogBehindLater:
		title = appends + " behind one that began after the acknowledgement"
	case fact.LogOverlap:
		title = appends + " acknowledged at a place of another one"
	case fact.LogHole:
		title = n("hole")
	case fact.LogShared:
		title = n("place") + " with two entries"
	case fact.LogEnd:
		title = n("stream") + " with an end that is not at the last entry"
	case fact.LogEndWriter:
		title = n("stream") + " with another writer of the last entry"
	case fact.LogTwoEnds:
		title = n("stream") + " with two ends"
	case fact.LogForeignStream:
		title = n("stream") + " that no load made"
	case fact.LogLostStream:
		title = n("stream") + " of the load lost"
	}
	return title, false
}

// logs returns the clause of a fact of logs; empty for others.
func (s Speaker) logs(f fact.Fact) string {
	for _, clause := range []func(fact.Fact) string{s.logAppends, s.logEntries, s.logOrder, s.logStreams, s.logHolds} {
		if text := clause(f); text != "" {
			return text
		}
	}
	return ""
}

// logAppends returns the clause of a fact about the fate of an append.
func (s Speaker) logAppends(f fact.Fact) string {
	switch f := f.(type) {
	case fact.LogLost:
		return fmt.Sprintf("%s with %s was acknowledged, and the log does not have it",
			s.Member(f.Append), check.Plural(f.Events, "event"))
	case fact.LogLostPart:
		return fmt.Sprintf("%s with %s was acknowledged, and the log does not have %s of them",
			s.Member(f.Append), check.Plural(f.Events, "event"), check.Group(f.Missing))
	case fact.LogSpoilt:
		return fmt.Sprintf("%s was acknowledged, and an event of it is damaged or has another length", s.Member(f.Append))
	case fact.LogRefused:
		return fmt.Sprintf("%s was %v, and it is in the log", s.Member(f.Append), f.Outcome)
	case fact.LogClosed:
		return fmt.Sprintf("the log has events of %s and a tombstone, by which a look-up had closed its place",
			s.Member(f.Append))
	case fact.LogUnsent:
		if f.Tombstone {
			return fmt.Sprintf("the log has a tombstone of %s, and no client sent it", s.Member(f.Append))
		}
		return fmt.Sprintf("%s is in the log, and no client sent it", s.Member(f.Append))
	case fact.LogTorn:
		return fmt.Sprintf("%s was sent with %s, and the log does not have %s of them",
			s.Member(f.Append), check.Plural(f.Events, "event"), check.Group(f.Missing))
	}
	return ""
}

// logEntries returns the clause of a fact about single entries.
func (s Speaker) logEntries(f fact.Fact) string {
	switch f := f.(type) {
	case fact.LogExtraEvent:
		return fmt.Sprintf("the log has event %d of %s, which was sent with %s, numbered from 0",
			f.Event, s.Member(f.Append), check.Plural(f.Events, "event"))
	case fact.LogTwice:
		return fmt.Sprintf("%s is in the log twice", s.entry(f.Append, f.Event, f.Tombstone))
	case fact.LogUnexpected:
		return "found in the log: " + f.Text
	case fact.LogDamaged:
		return fmt.Sprintf("%s, at place %d of %s, is not as it was written",
			s.entry(f.Append, f.Event, f.Tombstone), f.Place, s.On(f.Stream))
	case fact.LogLength:
		return fmt.Sprintf("event %d of %s is in the log with %s, and it was sent with %s",
			f.Event, s.Member(f.Append), bytesOf(f.Found), bytesOf(f.Sent))
	case fact.LogOtherStream:
		part := fmt.Sprintf("event %d", f.Event)
		if f.Tombstone {
			part = "tombstone"
		}
		return fmt.Sprintf("%s was sent to %s, and its %s is in %s", s.Member(f.Append), s.On(f.Sent), part, s.On(f.Found))
	case fact.LogOtherPlace:
		return fmt.Sprintf("event %d of %s was acknowledged at place %d of %s, and it stands at place %d",
			f.Event, s.Member(f.Append), f.Acknowledged, s.On(f.Stream), f.Found)
	case fact.LogApart:
		return fmt.Sprintf("event %d of %s stands at place %d of %s, and event %d is not right before it",
			f.Event, s.Member(f.Append), f.Place, s.On(f.Stream), f.Before)
	}
	return ""
}

// entry formats an event of an append, or its tombstone.
func (s Speaker) entry(of fact.Member, event uint32, tombstone bool) string {
	if tombstone {
		return "the tombstone of " + s.Member(of)
	}
	return fmt.Sprintf("event %d of %s", event, s.Member(of))
}

// logOrder returns the clause of a fact about the order of appends.
func (s Speaker) logOrder(f fact.Fact) string {
	stands := func(acknowledged bool) string {
		if acknowledged {
			return "was acknowledged at a place behind it"
		}
		return "stands behind it"
	}
	places := func(first, last uint64) string {
		if first == last {
			return fmt.Sprintf("place %d", first)
		}
		return fmt.Sprintf("places %d to %d", first, last)
	}
	switch f := f.(type) {
	case fact.LogBehindOwn:
		return fmt.Sprintf("in %s, %s of the same client was sent later, and %s %s",
			s.On(f.Stream), s.Member(f.Later), s.Member(f.Append), stands(f.Acknowledged))
	case fact.LogBehindLater:
		return fmt.Sprintf("in %s, %s was acknowledged before %s began, and %s",
			s.On(f.Stream), s.Member(f.Append), s.Member(f.Later), stands(f.Acknowledged))
	case fact.LogOverlap:
		return fmt.Sprintf("in %s, %s was acknowledged at %s, and %s at %s",
			s.On(f.Stream), s.Member(f.Append), places(f.First, f.Last), s.Member(f.Other), places(f.OtherFirst, f.OtherLast))
	}
	return ""
}

// logStreams returns the clause of a fact about streams.
func (s Speaker) logStreams(f fact.Fact) string {
	switch f := f.(type) {
	case fact.LogHole:
		empty := fmt.Sprintf("place %d of %s is empty", f.First, s.On(f.Stream))
		if f.First != f.Last {
			empty = fmt.Sprintf("the places %d to %d of %s are empty", f.First, f.Last, s.On(f.Stream))
		}
		return fmt.Sprintf("%s, and %s stands behind", empty, s.Member(f.Before))
	case fact.LogShared:
		return fmt.Sprintf("place %d of %s has two entries, the second of %s", f.Place, s.On(f.Stream), s.Member(f.Append))
	case fact.LogEnd:
		if f.Last == 0 {
			return fmt.Sprintf("%s ends at place %d by its own record, and it has no entries", s.On(f.Stream), f.End)
		}
		return fmt.Sprintf("%s ends at place %d by its own record, and its last entry is at place %d",
			s.On(f.Stream), f.End, f.Last)
	case fact.LogEndWriter:
		return fmt.Sprintf("%s names %s as the writer of its last entry, at place %d, and that entry is of %s",
			s.On(f.Stream), s.Member(f.Named), f.Place, s.Member(f.Writer))
	case fact.LogTwoEnds:
		return fmt.Sprintf("%s has two ends", s.On(f.Stream))
	case fact.LogForeignStream:
		if f.Entries {
			return fmt.Sprintf("%s has entries, and no load made it", s.On(f.Stream))
		}
		return fmt.Sprintf("%s is there, and no load made it", s.On(f.Stream))
	case fact.LogLostStream:
		return fmt.Sprintf("the load made %s, and it is gone", s.On(f.Stream))
	}
	return ""
}

// logHolds returns the clause of a valid or undecided check of logs.
func (s Speaker) logHolds(f fact.Fact) string {
	switch f := f.(type) {
	case fact.LogAppends:
		text := "no " + s.Words.One + " was acknowledged"
		if f.Acknowledged > 0 {
			text = fmt.Sprintf("%s acknowledged, and every event of them was read back whole",
				areOf(uint64(f.Acknowledged), s.Words.One))
		}
		if f.Unknown > 0 {
			text += fmt.Sprintf("; the log has %s of %s of unknown outcome",
				check.Group(f.Applied), check.Plural(f.Unknown, s.Words.One))
		}
		return text
	case fact.LogSent:
		text := fmt.Sprintf("the log has %s, all of which were sent, and no event of an aborted append",
			check.Plural(f.Entries, "entry"))
		if f.Tombstones > 0 {
			text += fmt.Sprintf("; %s left by look-ups", areOf(f.Tombstones, "tombstone"))
		}
		return text
	case fact.LogOnce:
		return "no event is in the log twice"
	case fact.LogWhole:
		return fmt.Sprintf("%s read back, each byte for byte as it was sent, and no batch is there in part",
			areOf(f.Events, "event"))
	case fact.LogOrder:
		return fmt.Sprintf("%s acknowledged, and each batch stands together at its acknowledged places, in the order of time",
			areOf(uint64(f.Appends), s.Words.One))
	case fact.LogContinuous:
		return fmt.Sprintf("the log has %s in %s, and no hole before the end of one",
			check.Plural(f.Entries, "entry"), check.Plural(f.Streams, "stream"))
	}
	return ""
}
