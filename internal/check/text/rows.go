package text

import (
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

var rowHeadings = []wording{
	{fact.RowLost{}, "{# acknowledged one} lost in a row"},
	{fact.RowGhost{Unsent: true}, "{# row} with a last writer that no client sent"},
	{fact.RowGhost{}, "{# row} with a last writer that was not applied"},
}

var rowClauses = []wording{
	{fact.RowLostUpdate{}, "{By} read version {Read} of {Object}, {Lost} replaced it, and {By} overwrote that with " +
		"version {Made}"},
	{fact.RowIntermediate{}, "{Reader} read version {Version} of {Object}, which {Writer} made and overwrote itself"},
	{fact.RowLost{}, "{By} made version {Made} of {Object} and was acknowledged, and the row ends at version {Ends}"},
	{fact.RowGhost{Unsent: true}, "{Object} ends at version {Version} of {By}, which no client sent"},
	{fact.RowGhost{}, "{Object} ends at version {Version} of {By}, which was {Outcome}"},
	{fact.RowsEnd{}, "{Rows tracked row was} compared with the history, and none lacks an acknowledged write"},
	{fact.RowsUnversioned{Transactions: 1},
		"{Transactions transaction} wrote to a tracked table and left no version, so what it overwrote is not known"},
	{fact.RowsUnversioned{}, "{Transactions transaction} wrote to tracked tables and left no version, " +
		"so what they overwrote is not known"},
	{fact.RowsRestarted{}, "the scripts delete rows and insert them again, so the versions of rows such as {Object} " +
		"may start again"},
	{fact.RowGap{Count: 1}, "no recorded transaction made version {Version} of {Object}"},
	{fact.RowGap{}, "no recorded transaction made {Count version}, such as version {Version} of {Object}"},
	{fact.RowTwice{}, "{Object} is there twice, so the tracked column is no key"},
	{fact.RowsUpdated{}, "{Writes write was} recorded, and none replaced what its transaction had not read"},
}

// rows returns the clause of a fact about tracked rows that needs more than a wording; empty for others.
func (s Speaker) rows(f fact.Fact) string {
	switch f := f.(type) {
	case fact.RowsSerial:
		return tracked(f.Tracked) + s.fill("; {Transactions committed transaction}, {Dependencies dependency}, no cycle", f)
	case fact.RowOperation:
		switch {
		case f.Wrote:
			return s.fill("{Object}: made version {Version}", f)
		case f.Writer == 0:
			return s.fill("{Object}: read version {Version}", f)
		}
		return s.fill("{Object}: read version {Version} of {Writer}", f)
	}
	return ""
}

// tracked states the share of reads and writes that were tracked.
func tracked(f fact.Tracked) string {
	return "tracked were " + share(f.Reads, f.OtherReads, "read") + " and " + share(f.Writes, f.OtherWrites, "write")
}

func share(n, others uint64, noun string) string {
	switch {
	case n+others == 0:
		return "no " + noun
	case others == 0:
		return "all " + check.Plural(n, noun)
	}
	return fmt.Sprintf("%s (%.3g %%)", check.Plural(n, noun), 100*float64(n)/float64(n+others))
}
