package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/history"
)

// These keys of a history's header decide whether a recording can be checked together with others.
const (
	// KeyDrive is DriveNone if the directory holds the content of a database but no run.
	KeyDrive  = "drive"
	DriveNone = "none"

	// KeyEnded lists the numbers of the runs that had ended before the end state was downloaded, separated by
	// spaces.
	KeyEnded = "ended_runs"

	// KeyAuditAge is the minimal age of the state that audits were asked to read, in the format of
	// time.Duration. In real time, such an audit began before it was sent.
	KeyAuditAge = "audit_age"

	// KeyClock identifies the clock of the run's times, in the format of Clock. Runs on the same clock have a
	// common order in real time.
	KeyClock = "clock"
)

// Clock is a monotonic clock that several runs may share. The run's times begin on that clock between From
// and To, in nanoseconds.
type Clock struct {
	ID       string // the ID of the machine's boot; without spaces
	From, To int64
}

func (c Clock) String() string { return fmt.Sprintf("%s %d %d", c.ID, c.From, c.To) }

// ClockOf returns the clock of a recording. It reports false if the recording names none.
func ClockOf(h history.Header) (Clock, bool) {
	words := strings.Fields(h.Keys[KeyClock])
	if len(words) != 3 {
		return Clock{}, false
	}
	from, err := strconv.ParseInt(words[1], 10, 64)
	to, wrong := strconv.ParseInt(words[2], 10, 64)
	return Clock{words[0], from, to}, err == nil && wrong == nil && from <= to
}

// AuditAge returns the value of KeyAuditAge, and 0 if audits read the present state.
func AuditAge(h history.Header) time.Duration {
	age, err := time.ParseDuration(h.Keys[KeyAuditAge])
	if err != nil || age < 0 {
		return 0
	}
	return age
}

// Driven reports whether the recording of this header contains a run.
func Driven(h history.Header) bool { return h.Keys[KeyDrive] != DriveNone }

// Ended returns the run numbers of KeyEnded.
func Ended(h history.Header) []uint64 {
	var runs []uint64
	for word := range strings.FieldsSeq(h.Keys[KeyEnded]) {
		if run, err := strconv.ParseUint(word, 10, 64); err == nil {
			runs = append(runs, run)
		}
	}
	return runs
}

// SameData returns an error if recordings cannot be checked together: they belong to different data sets or
// loads, or two belong to one run. Data sets without load IDs are equal if they were loaded with the same
// seed and size.
func SameData(paths []string, headers []history.Header) error {
	for i, h := range headers {
		first := headers[0]
		switch {
		case h.Workload != first.Workload:
			return fmt.Errorf("%s has the workload %s and %s has %s: check only recordings of one data set together", paths[0], first.Workload, paths[i], h.Workload)
		case h.Seed != first.Seed || h.Objects != first.Objects || h.Total != first.Total:
			return fmt.Errorf("%s and %s are of different data sets: one was loaded with seed %d and size %d, the other with seed %d and %d",
				paths[0], paths[i], first.Seed, first.Objects, h.Seed, h.Objects)
		case h.LoadID != first.LoadID:
			return fmt.Errorf("%s and %s have different loads of one data set: check them one by one", paths[0], paths[i])
		case h.Database != first.Database:
			return fmt.Errorf("%s was recorded on %s and %s on %s: check only recordings of one data set together", paths[0], first.Database, paths[i], h.Database)
		}
		same := func(other history.Header) bool { return Driven(other) && other.Run == h.Run }
		if n := slices.IndexFunc(headers[:i], same); Driven(h) && n >= 0 {
			return fmt.Errorf("%s and %s are both of run %d: leave out the copy, or check runs of different loads one by one", paths[n], paths[i], h.Run)
		}
	}
	return nil
}
