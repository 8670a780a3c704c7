package nemesis

import (
	"encoding/json"
	"math"
	"strconv"
)

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

// row is an injection as a line of faults.jsonl. Times are seconds; what did not
// happen is left out.
type row struct {
	Line      int     `json:"line"`
	Fault     string  `json:"fault"`
	Target    string  `json:"target,omitempty"`
	Scheduled seconds `json:"scheduled_s"`
	Injected  seconds `json:"at_s,omitempty"`
	InEffect  seconds `json:"in_effect_s,omitempty"`
	Healing   seconds `json:"healing_s,omitempty"`
	Healed    seconds `json:"healed_s,omitempty"`
	Late      string  `json:"late,omitempty"`
	Verified  string  `json:"verified,omitempty"`
	Err       string  `json:"error,omitempty"`
	HealErr   string  `json:"heal_error,omitempty"`
	Skipped   string  `json:"skipped,omitempty"`
}

// seconds are nanoseconds that JSON gets as seconds, to the microsecond.
type seconds int64

func (s seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, math.Round(float64(s)/1e3)/1e6, 'f', -1, 64), nil
}

func (s *seconds) UnmarshalJSON(text []byte) error {
	var f float64
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	*s = seconds(math.Round(f * 1e9))
	return nil
}

// MarshalJSON writes the injection as a line of faults.jsonl.
func (i Injection) MarshalJSON() ([]byte, error) {
	return json.Marshal(row{i.Line, i.Fault, i.Target, seconds(i.Scheduled), seconds(i.Injected), seconds(i.InEffect),
		seconds(i.Healing), seconds(i.Healed), i.Late, i.Verified, i.Err, i.HealErr, i.Skipped})
}

// UnmarshalJSON reads what MarshalJSON wrote, to the microsecond; it is over.
func (i *Injection) UnmarshalJSON(text []byte) error {
	var r row
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	*i = Injection{r.Line, r.Fault, r.Target, int64(r.Scheduled), int64(r.Injected), int64(r.InEffect),
		int64(r.Healing), int64(r.Healed), r.Late, r.Verified, r.Err, r.HealErr, r.Skipped, true}
	return nil
}
