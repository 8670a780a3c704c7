package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/history"
)

// The keys of a history's header that say how a recording can be checked
// together with others.
const (
	// KeyDrive is DriveNone where nothing was driven: the directory holds what a
	// database held, and no run.
	KeyDrive  = "drive"
	DriveNone = "none"

	// KeyEnded are the runs that had ended before the end state in the directory
	// was downloaded, their numbers with spaces between.
	KeyEnded = "ended_runs"

	// KeyAuditAge is how old at least the state is that audits were asked to read, as
	// time.Duration writes it. In real time such an audit began before it was sent.
	KeyAuditAge = "audit_age"

	// KeyClock is the clock that the run's times are of, as Clock writes it. Runs
	// on the same clock can be set in one order of real time.
	KeyClock = "clock"
)

// Clock is a monotonic clock that several runs may share, and where on it a run's
// times begin: between From and To, in nanoseconds.
type Clock struct {
	ID       string // of the machine's boot; without spaces
	From, To int64
}

func (c Clock) String() string { return fmt.Sprintf("%s %d %d", c.ID, c.From, c.To) }

// ClockOf reads the clock of a recording; false where it has none.
func ClockOf(h history.Header) (Clock, bool) {
	words := strings.Fields(h.Keys[KeyClock])
	if len(words) != 3 {
		return Clock{}, false
	}
	from, err := strconv.ParseInt(words[1], 10, 64)
	to, wrong := strconv.ParseInt(words[2], 10, 64)
	return Clock{words[0], from, to}, err == nil && wrong == nil && from <= to
}

// AuditAge reads KeyAuditAge; 0 where audits read the present.
func AuditAge(h history.Header) time.Duration {
	age, err := time.ParseDuration(h.Keys[KeyAuditAge])
	if err != nil || age < 0 {
		return 0
	}
	return age
}

// Driven says that there is a run in the recording of this header.
func Driven(h history.Header) bool { return h.Keys[KeyDrive] != DriveNone }

// Ended returns the runs of KeyEnded.
func Ended(h history.Header) []uint64 {
	var runs []uint64
	for word := range strings.FieldsSeq(h.Keys[KeyEnded]) {
		if run, err := strconv.ParseUint(word, 10, 64); err == nil {
			runs = append(runs, run)
		}
	}
	return runs
}

// SameData says why recordings cannot be checked together, if they cannot: they
// are of different data sets or loads, or two are of one run. Two data sets of which
// neither has a load id look the same if they were loaded alike.
func SameData(paths []string, headers []history.Header) error {
	for i, h := range headers {
		first := headers[0]
		switch {
		case h.Workload != first.Workload:
			return fmt.Errorf("%s is of the workload %s and %s of %s: recordings are checked together if they are of the same data set", paths[0], first.Workload, paths[i], h.Workload)
		case h.Seed != first.Seed || h.Objects != first.Objects || h.Total != first.Total:
			return fmt.Errorf("%s and %s are of different data sets: one was loaded with seed %d and size %d, the other with seed %d and %d",
				paths[0], paths[i], first.Seed, first.Objects, h.Seed, h.Objects)
		case h.LoadID != first.LoadID:
			return fmt.Errorf("%s and %s are of different loads of one data set, loaded anew between them: check them one by one", paths[0], paths[i])
		case h.Database != first.Database:
			return fmt.Errorf("%s was recorded on %s and %s on %s: recordings are checked together if they are of the same data set", paths[0], first.Database, paths[i], h.Database)
		}
		same := func(other history.Header) bool { return Driven(other) && other.Run == h.Run }
		if n := slices.IndexFunc(headers[:i], same); Driven(h) && n >= 0 {
			return fmt.Errorf("%s and %s are both of run %d: leave out the copy, or check runs of different loads one by one", paths[n], paths[i], h.Run)
		}
	}
	return nil
}
