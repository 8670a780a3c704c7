package text

import (
	"fmt"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

var registerHeadings = []wording{
	{fact.RegisterForeignKey{}, "{# record} returned with a key that nobody makes"},
	{fact.RegisterDamagedValue{}, "{# damaged value} read"},
	{fact.RegisterUnwrittenValue{}, "{# value} read of a transaction that wrote nothing there"},
	{fact.RegisterOtherLength{}, "{# value} read with another length than was written"},
	{fact.RegisterMissingRecord{}, "{# read} without a record that the load made"},
	{fact.RegisterScanOrder{}, "{# scan} out of order"},
	{fact.RegisterScanCount{}, "{# scan} with too many records"},
	{fact.RegisterScanLoaded{}, "{# gap} in scans where the load made a record"},
	{fact.RegisterNoOrder{}, "{# record} without an order of reads and writes"},
	{fact.RegisterEndDamaged{}, "{# damaged record} in the end state"},
	{fact.RegisterEndLength{}, "{# record} in the end state with another length than was written"},
	{fact.RegisterEndMissing{}, "{# record} of the load lost"},
	{fact.RegisterEndLost{}, "{# record} with acknowledged writes that are lost"},
	{fact.RegisterUnexpected{}, "{# row} in the end state that nobody makes"},
	{fact.RegisterEndUnwritten{}, "{# record} in the end state of a transaction that wrote nothing there"},
	{fact.RegisterEndRefused{}, "{# record} in the end state of a refused transaction"},
}

const noOrder = "the reads and writes of {Object} have no order: "

var registerClauses = []wording{
	// reads of single records
	{fact.RegisterForeignKey{},
		"{Reader} returned a key that neither the load nor a transaction makes, with a value of {Bytes byte}"},
	{fact.RegisterUnwrittenValue{},
		"{Reader} found the value of {Writer or the load} in {Object}, where {Writer or the load} wrote nothing"},
	{fact.RegisterOtherLength{}, "{Reader} found the value of {Writer or the load} in {Object} with {Found byte}, " +
		"and it was written with {Written byte}"},
	{fact.RegisterMissingRecord{}, "{Reader} did not find {Object}, which the load made"},
	{fact.RegisterLostUpdate{},
		"{First} and {Second} both read the value of {Writer or the load} in {Object}, and both wrote in its place"},
	{fact.RegisterNoOrder{Reason: fact.ReadBeforeWrite}, noOrder +
		"the value of {First or the load} was read before the last try of {First or the load} began"},
	{fact.RegisterNoOrder{Reason: fact.BeforeAndAfter, Several: true}, noOrder +
		"the value of {First or the load}, with what follows from it, must be there both before and after " +
		"the value of {Second or the load}, with what follows from it, in real time"},
	{fact.RegisterNoOrder{Reason: fact.BeforeAndAfter}, noOrder + "the value of {First or the load} must be there " +
		"both before and after the value of {Second or the load} in real time"},
	{fact.RegisterNoOrder{Reason: fact.ReplacedTwice}, noOrder +
		"{First or the load} and {Second or the load} both read one value and wrote in its place"},
	{fact.RegisterNoOrder{Reason: fact.ReplacedEarly}, noOrder +
		"the value of {Second or the load} follows from the value of {First or the load}, " +
		"and had been seen or acknowledged before the latter was written or last read"},
	{fact.RegisterNoOrder{Reason: fact.ReplacedCircle}, noOrder +
		"the values of {First or the load} and {Second or the load} each follow from the other"},
	{fact.RegisterNoOrder{}, noOrder + "{Reason}"},

	// scans
	{fact.RegisterScanOrder{}, "{Scan} returned {Object} after a key that is the same or greater"},
	{fact.RegisterScanCount{}, "{Scan} asked for {Limit record} and returned {Found ,}"},
	{fact.RegisterScanLoaded{}, "{Scan} left out {Object}, which the load made"},
	{fact.RegisterScanInsert{},
		"{Scan} left out {Object}, although {Insert} was acknowledged {Ago} before the scan began"},

	// the end state
	{fact.RegisterEndDamaged{}, "in the end state {Object} holds {Bytes byte} that nobody wrote like this"},
	{fact.RegisterEndLength{}, "in the end state {Object} holds the value of {Writer or the load} with {Found byte}, " +
		"and it was written with {Written byte}"},
	{fact.RegisterEndMissing{}, "the load made {Object}, and it is not in the end state"},
	{fact.RegisterEndRepeated{}, "the end state has {Found record} of the load, and the load made {Loaded ,}"},
	{fact.RegisterUnexpected{}, "the end state has {Text}"},
	{fact.RegisterEndUnwritten{}, "in the end state {Object} holds the value of {Writer or the load}, " +
		"and {Writer or the load} wrote nothing there"},
	{fact.RegisterEndRefused{}, "in the end state {Object} holds the value of {Writer or the load}, " +
		"and {Writer or the load} was {Outcome}"},

	// edges and operations
	{fact.RegisterReplaced{Absent: true}, "{Reader} did not find {Object}, and {Writer} wrote it"},
	{fact.RegisterReplaced{},
		"{Reader} found the value of {Value or the load} in {Object}, and {Writer} wrote in its place"},
	{fact.RegisterReadOf{}, "{Writer} wrote {Object} and was {Outcome}, and {Reader} found that value"},
	{fact.RegisterEnded{}, "{First} was acknowledged {Apart} before {Second} began"},
	{fact.RegisterSeenBefore{}, "others had seen the value of {First or the load} before {Second} began"},
	{fact.RegisterDidRead{}, "read the value of {Writer or the load}"},
	{fact.RegisterDidMiss{}, "found no record"},
	{fact.RegisterDidOmit{}, "did not return it"},
	{fact.RegisterDidWrite{}, "wrote its own value"},

	// a valid or undecided check
	{fact.RegisterValues{}, "{Values value was} read, each as the load or a transaction wrote it"},
	{fact.RegisterFresh{}, "no read returned what an acknowledged write had replaced before the read began"},
	{fact.RegisterUpdates{}, "{Updates transaction} both read and wrote a record, no two in place of one value"},
	{fact.RegisterScans{}, "{Scans scan was} made, each in order and with all that had to be there"},
	{fact.RegisterOrder{},
		"{Records record was} written, and the reads and writes of each have an order that agrees with real time"},
	{fact.RegisterEnd{},
		"the end state has {Records record}, each with a value that the last acknowledged write allows"},
	{fact.RegisterWritten{}, "the end state has {Records record}, each with a value of the load or of one of " +
		"{Writes write} that nobody refused"},
	{fact.RegisterTooMany{}, "scans are compared only with loads of at most {Most record}"},
}

// registers returns the clause of a fact of registers that needs more than a wording; empty for others.
func (s Speaker) registers(f fact.Fact) string {
	const found = "{Reader} found the value of {Writer or the load} in {Object}, "
	switch f := f.(type) {
	case fact.RegisterDamagedValue:
		text := s.fill("{Reader} found a value of {Bytes byte} in {Object} that nobody wrote like this", f)
		if len(f.Pieces) > 0 {
			text += ": " + piecesOf(f.Pieces, f.Compared)
		}
		return text
	case fact.RegisterDirtyRead:
		if f.Ahead != 0 {
			return s.fill(found+"and ended before the last try of {Writer or the load} began; "+
				"earlier tries were refused", f)
		}
		return s.fill(found+"and {Writer or the load} was {Outcome}", f)
	case fact.RegisterStaleRead:
		text, known := found, "and was acknowledged"
		if f.Absent {
			text = "{Reader} did not find {Object}, "
		}
		if f.Seen {
			known = "and others had seen its value"
		}
		return s.fill(text+"but {By} wrote there later "+known+" {Ago} before {Reader} began", f)
	case fact.RegisterEndLost:
		text := "{Lost} wrote {Object} and was acknowledged, but the end state "
		if f.Absent {
			text += "has no such record"
		} else {
			text += "holds the value of {Holds or the load}, which was there before that write began"
		}
		if f.Writes > 1 {
			text += " ({Writes write} of this record are lost)"
		}
		return s.fill(text, f)
	}
	return ""
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
