package text

import (
	"fmt"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

// titleOfRegisters is like title, for findings about registers.
func (s Speaker) titleOfRegisters(f *check.Finding) (title string, all bool) {
	n := func(noun string) string { return check.Plural(f.Count, noun) }
	switch f.Instances[0].(type) {
	case fact.RegisterForeignKey:
		title = n("record") + " returned with a key that nobody makes"
	case fact.RegisterDamagedValue:
		title = n("damaged value") + " read"
	case fact.RegisterUnwrittenValue:
		title = n("value") + " read of a transaction that wrote nothing there"
	case fact.RegisterOtherLength:
		title = n("value") + " read with another length than was written"
	case fact.RegisterMissingRecord:
		title = n("read") + " without a record that the load made"
	case fact.RegisterScanOrder:
		title = n("scan") + " out of order"
	case fact.RegisterScanCount:
		title = n("scan") + " with too many records"
	case fact.RegisterScanLoaded:
		title = n("gap") + " in scans where the load made a record"
	case fact.RegisterNoOrder:
		title = n("record") + " without an order of reads and writes"
	case fact.RegisterEndDamaged:
		title = n("damaged record") + " in the end state"
	case fact.RegisterEndLength:
		title = n("record") + " in the end state with another length than was written"
	case fact.RegisterEndMissing:
		title = n("record") + " of the load lost"
	case fact.RegisterEndLost:
		title = n("record") + " with acknowledged writes that are lost"
	case fact.RegisterUnexpected:
		title = n("row") + " in the end state that nobody makes"
	case fact.RegisterEndUnwritten:
		title = n("record") + " in the end state of a transaction that wrote nothing there"
	case fact.RegisterEndRefused:
		title = n("record") + " in the end state of a refused transaction"
	}
	return title, false
}

// registers returns the clause of a fact of registers; empty for others.
func (s Speaker) registers(f fact.Fact) string {
	for _, clause := range []func(fact.Fact) string{s.registerReads, s.registerScans, s.registerEnds, s.registerEdges, registerHolds} {
		if text := clause(f); text != "" {
			return text
		}
	}
	return ""
}

// registerReads returns the clause of a fact about reads of single records.
func (s Speaker) registerReads(f fact.Fact) string {
	switch f := f.(type) {
	case fact.RegisterForeignKey:
		return fmt.Sprintf("%s returned a key that neither the load nor a transaction makes, with a value of %s",
			s.Member(f.Reader), bytesOf(f.Bytes))
	case fact.RegisterDamagedValue:
		text := fmt.Sprintf("%s found a value of %s in %s that nobody wrote like this",
			s.Member(f.Reader), bytesOf(f.Bytes), s.On(f.Object))
		if len(f.Pieces) > 0 {
			text += ": " + piecesOf(f.Pieces, f.Compared)
		}
		return text
	case fact.RegisterUnwrittenValue:
		return fmt.Sprintf("%s found the value of %s in %s, where %[2]s wrote nothing",
			s.Member(f.Reader), s.writer(f.Writer), s.On(f.Object))
	case fact.RegisterOtherLength:
		return fmt.Sprintf("%s found the value of %s in %s with %s, and it was written with %s",
			s.Member(f.Reader), s.writer(f.Writer), s.On(f.Object), bytesOf(f.Found), bytesOf(f.Written))
	case fact.RegisterMissingRecord:
		return fmt.Sprintf("%s did not find %s, which the load made", s.Member(f.Reader), s.On(f.Object))
	case fact.RegisterDirtyRead:
		if f.Ahead != 0 {
			return fmt.Sprintf("%s found the value of %s in %s, and ended before the last try of %[2]s began; earlier "+
				"tries were refused",
				s.Member(f.Reader), s.writer(f.Writer), s.On(f.Object))
		}
		return fmt.Sprintf("%s found the value of %s in %s, and %[2]s was %[4]v",
			s.Member(f.Reader), s.writer(f.Writer), s.On(f.Object), f.Outcome)
	case fact.RegisterStaleRead:
		return s.staleRead(f)
	case fact.RegisterLostUpdate:
		return fmt.Sprintf("%s and %s both read the value of %s in %s, and both wrote in its place",
			s.Member(f.First), s.Member(f.Second), s.writer(f.Writer), s.On(f.Object))
	case fact.RegisterNoOrder:
		return s.noOrder(f)
	}
	return ""
}

func (s Speaker) staleRead(f fact.RegisterStaleRead) string {
	found := fmt.Sprintf("%s found the value of %s in %s", s.Member(f.Reader), s.writer(f.Writer), s.On(f.Object))
	if f.Absent {
		found = fmt.Sprintf("%s did not find %s", s.Member(f.Reader), s.On(f.Object))
	}
	known := "and was acknowledged"
	if f.Seen {
		known = "and others had seen its value"
	}
	return fmt.Sprintf("%s, but %s wrote there later %s %s before %s began",
		found, s.Member(f.By), known, lasting(f.Ago, f.AtLeast), s.Member(f.Reader))
}

func (s Speaker) noOrder(f fact.RegisterNoOrder) string {
	text := fmt.Sprintf("the reads and writes of %s have no order: ", s.On(f.Object))
	first, second := s.writer(f.First), s.writer(f.Second)
	switch f.Reason {
	case fact.ReadBeforeWrite:
		return text + fmt.Sprintf("the value of %s was read before the last try of %[1]s began", first)
	case fact.BeforeAndAfter:
		and := ""
		if f.Several {
			and = ", with what follows from it,"
		}
		return text + fmt.Sprintf("the value of %s%s must be there both before and after the value of %s%[2]s in real time",
			first, and, second)
	case fact.ReplacedTwice:
		return text + fmt.Sprintf("%s and %s both read one value and wrote in its place", first, second)
	case fact.ReplacedEarly:
		return text + fmt.Sprintf("the value of %s follows from the value of %s, and had been seen or acknowledged before "+
			"the latter was written or last read", second, first)
	case fact.ReplacedCircle:
		return text + fmt.Sprintf("the values of %s and %s each follow from the other", first, second)
	}
	return text + f.Reason
}

// registerScans returns the clause of a fact about scans.
func (s Speaker) registerScans(f fact.Fact) string {
	switch f := f.(type) {
	case fact.RegisterScanOrder:
		return fmt.Sprintf("%s returned %s after a key that is the same or greater", s.Member(f.Scan), s.On(f.Object))
	case fact.RegisterScanCount:
		return fmt.Sprintf("%s asked for %s and returned %s",
			s.Member(f.Scan), check.Plural(f.Limit, "record"), check.Group(f.Found))
	case fact.RegisterScanLoaded:
		return fmt.Sprintf("%s left out %s, which the load made", s.Member(f.Scan), s.On(f.Object))
	case fact.RegisterScanInsert:
		return fmt.Sprintf("%s left out %s, although %s was acknowledged %s before the scan began",
			s.Member(f.Scan), s.On(f.Object), s.Member(f.Insert), lasting(f.Ago, f.AtLeast))
	}
	return ""
}

// registerEnds returns the clause of a fact about the end state of records.
func (s Speaker) registerEnds(f fact.Fact) string {
	switch f := f.(type) {
	case fact.RegisterEndDamaged:
		return fmt.Sprintf("in the end state %s holds %s that nobody wrote like this", s.On(f.Object), bytesOf(f.Bytes))
	case fact.RegisterEndLength:
		return fmt.Sprintf("in the end state %s holds the value of %s with %s, and it was written with %s",
			s.On(f.Object), s.writer(f.Writer), bytesOf(f.Found), bytesOf(f.Written))
	case fact.RegisterEndMissing:
		return fmt.Sprintf("the load made %s, and it is not in the end state", s.On(f.Object))
	case fact.RegisterEndLost:
		text := fmt.Sprintf("%s wrote %s and was acknowledged, but the end state ", s.Member(f.Lost), s.On(f.Object))
		if f.Absent {
			text += "has no such record"
		} else {
			text += fmt.Sprintf("holds the value of %s, which was there before that write began", s.writer(f.Holds))
		}
		if f.Writes > 1 {
			text += fmt.Sprintf(" (%s of this record are lost)", check.Plural(f.Writes, "write"))
		}
		return text
	case fact.RegisterEndRepeated:
		return fmt.Sprintf("the end state has %s of the load, and the load made %s",
			check.Plural(f.Found, "record"), check.Group(f.Loaded))
	case fact.RegisterUnexpected:
		return "the end state has " + f.Text
	case fact.RegisterEndUnwritten:
		return fmt.Sprintf("in the end state %s holds the value of %s, and %[2]s wrote nothing there",
			s.On(f.Object), s.writer(f.Writer))
	case fact.RegisterEndRefused:
		return fmt.Sprintf("in the end state %s holds the value of %s, and %[2]s was %[3]v",
			s.On(f.Object), s.writer(f.Writer), f.Outcome)
	}
	return ""
}

// registerEdges returns the clause of an edge or an operation.
func (s Speaker) registerEdges(f fact.Fact) string {
	switch f := f.(type) {
	case fact.RegisterReplaced:
		if f.Absent {
			return fmt.Sprintf("%s did not find %s, and %s wrote it", s.Member(f.Reader), s.On(f.Object), s.Member(f.Writer))
		}
		return fmt.Sprintf("%s found the value of %s in %s, and %s wrote in its place",
			s.Member(f.Reader), s.writer(f.Value), s.On(f.Object), s.Member(f.Writer))
	case fact.RegisterReadOf:
		return fmt.Sprintf("%s wrote %s and was %v, and %s found that value",
			s.Member(f.Writer), s.On(f.Object), f.Outcome, s.Member(f.Reader))
	case fact.RegisterEnded:
		return fmt.Sprintf("%s was acknowledged %s before %s began",
			s.Member(f.First), lasting(f.Apart, f.AtLeast), s.Member(f.Second))
	case fact.RegisterSeenBefore:
		return fmt.Sprintf("others had seen the value of %s before %s began", s.writer(f.First), s.Member(f.Second))
	case fact.RegisterDidRead:
		return "read the value of " + s.writer(f.Writer)
	case fact.RegisterDidMiss:
		return "found no record"
	case fact.RegisterDidOmit:
		return "did not return it"
	case fact.RegisterDidWrite:
		return "wrote its own value"
	}
	return ""
}

// registerHolds returns the clause of a valid or undecided check of registers.
func registerHolds(f fact.Fact) string {
	switch f := f.(type) {
	case fact.RegisterValues:
		return fmt.Sprintf("%s read, each as the load or a transaction wrote it", areOf(f.Values, "value"))
	case fact.RegisterFresh:
		return "no read returned what an acknowledged write had replaced before the read began"
	case fact.RegisterUpdates:
		return fmt.Sprintf("%s both read and wrote a record, no two in place of one value",
			check.Plural(f.Updates, "transaction"))
	case fact.RegisterScans:
		return fmt.Sprintf("%s made, each in order and with all that had to be there", areOf(f.Scans, "scan"))
	case fact.RegisterOrder:
		return fmt.Sprintf("%s written, and the reads and writes of each have an order that agrees with real time",
			areOf(uint64(f.Records), "record"))
	case fact.RegisterEnd:
		return fmt.Sprintf("the end state has %s, each with a value that the last acknowledged write allows",
			check.Plural(f.Records, "record"))
	case fact.RegisterWritten:
		return fmt.Sprintf("the end state has %s, each with a value of the load or of one of %s that nobody refused",
			check.Plural(f.Records, "record"), check.Plural(f.Writes, "write"))
	case fact.RegisterOtherRuns:
		if len(f.Runs) == 1 && f.More == 0 {
			return fmt.Sprintf("values were read of run %d, whose recording was not given: give its directory too", f.Runs[0])
		}
		return fmt.Sprintf("values were read of the runs %s, whose recordings were not given: give their directories too",
			joined(check.Texts(f.Runs), len(f.Runs)+f.More))
	case fact.RegisterTooMany:
		return fmt.Sprintf("scans are compared only with loads of at most %s", check.Plural(f.Most, "record"))
	}
	return ""
}

// writer formats the writer of a value; ID 0 is the load.
func (s Speaker) writer(m fact.Member) string {
	if m.ID == 0 && m.Name == "" {
		return "the load"
	}
	return s.Member(m)
}

// bytesOf formats a length.
func bytesOf(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return check.Group(int(n)) + " bytes"
}

// lasting formats a duration, which is a lower bound or exact.
func lasting(d time.Duration, atLeast bool) string {
	if atLeast {
		return "at least " + check.Lasted(d)
	}
	return check.Lasted(d)
}

// areOf formats a count of a noun with the matching form of "to be".
func areOf(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return check.Plural(n, noun) + " were"
}

// piecesOf describes which transactions wrote the pieces of a value that was compared with other values.
func piecesOf(list []fact.Piece, compared int) string {
	parts := make([]string, 0, check.Shown)
	for i, p := range list[:min(len(list), check.Shown)] {
		whose := fmt.Sprintf("of nobody (%s compared)", check.Plural(compared, "value"))
		switch {
		case p.Known && p.Writer == 0:
			whose = "of the load"
		case p.Known:
			whose = fmt.Sprintf("of %v", p.Writer)
		}
		what, verb := fmt.Sprintf("bytes %d to %d ", p.From, p.To), "are "
		if p.From == p.To {
			what, verb = fmt.Sprintf("byte %d ", p.From), "is "
		}
		if i > 0 {
			what, verb = strings.TrimPrefix(what, "bytes "), ""
		}
		parts = append(parts, what+verb+whose)
	}
	return joined(parts, len(list))
}
