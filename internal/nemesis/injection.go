package nemesis

// Injection is one fault that was done, or was to be done, to the cluster. Times
// are nanoseconds since the run's start on the run's monotonic clock; zero means
// that it did not happen.
type Injection struct {
	Line      int    // of the script, from 1
	Fault     string // the text of what was done, without its schedule
	Target    string // the nodes that were chosen, such as "n1 (leader)"
	Scheduled int64  // when it was due
	Injected  int64  // when it was begun
	InEffect  int64  // when its effect had been seen
	Healing   int64  // when its heal was begun
	Healed    int64  // when the end of its effect had been seen
	Late      string // why it was begun later than scheduled, where that is known
	Verified  string // how the effect was seen, and how its end
	Err       string // why it could not be injected, or its effect was not seen
	HealErr   string // why it could not be healed, or the end of its effect was not seen
	Skipped   string // why it was left out although nothing is broken

	// Over says that nothing follows. An injection is noted when it is in effect,
	// and again, changed, when it is over.
	Over bool
}

// Failed tells whether the fault could not be injected or healed. One that was
// skipped has not failed.
func (i Injection) Failed() bool { return i.Err != "" || i.HealErr != "" }
