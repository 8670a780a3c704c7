// Package fault holds values about the faults of a run: links and cuts, an observed effect, and the record of an
// injection.
package fault

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Seconds is a time.Duration that JSON has as a number of seconds. Up to 20 days it is exact to the
// nanosecond.
type Seconds time.Duration

// Seconds returns the duration as a number of seconds.
func (s Seconds) Seconds() float64 { return float64(s) / float64(time.Second) }

// MarshalJSON writes the number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(s.Seconds()) }

// UnmarshalJSON reads a number of seconds and rounds it to the nearest nanosecond.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	var number float64
	if err := json.Unmarshal(data, &number); err != nil {
		return err
	}
	const most = math.MaxInt64 / float64(time.Second)
	if math.Abs(number) >= most {
		return fmt.Errorf("%g s is out of range: the most is %.0f s", number, most)
	}
	*s = Round(number)
	return nil
}

// Round returns the duration that is nearest to a number of seconds.
func Round(seconds float64) Seconds { return Seconds(math.Round(seconds * float64(time.Second))) }

// Injection is one fault as it was injected, and a line of faults.jsonl. Times count from the
// start of the run on its monotonic clock. Nil means that it did not happen.
type Injection struct {
	Number    int      `json:"number"` // from 1, in the order of the first reports
	Line      int      `json:"line"`   // of the script, from 1; 0 is not known
	Fault     string   `json:"fault"`  // its text without the times
	Target    string   `json:"target"` // the chosen nodes, such as "n1 (leader)"; empty if it was not begun
	Scheduled Seconds  `json:"scheduled_s"`
	At        Seconds  `json:"at_s"`        // when it was begun, else when it was scheduled
	InEffect  *Seconds `json:"in_effect_s"` // when its effect was observed
	Healing   *Seconds `json:"healing_s"`   // when its heal was begun
	Healed    *Seconds `json:"healed_s"`    // when the end of its effect was observed, of a fault that did not fail
	Verified  string   `json:"verified"`    // how its effect was observed, and the end of the effect
	Late      string   `json:"late"`        // why it was begun later than scheduled, if that is known
	Error     string   `json:"error"`       // why it was not injected, or its effect was not observed
	HealError string   `json:"heal_error"`  // why it was not healed, or the end of its effect was not observed
	Skipped   string   `json:"skipped"`     // why it was left out although nothing is broken
	Joined    []string `json:"joined,omitempty"`
	Left      []string `json:"left,omitempty"` // Joined and Left: the nodes that came and went, by the fault or its heal

	// Over reports that nothing follows. An injection is reported when it is in effect, and
	// again when it is over.
	Over bool `json:"-"`
}

// Failed reports whether the fault could not be injected or healed. A skipped fault has not failed.
func (i *Injection) Failed() bool { return i.Error != "" || i.HealError != "" }

// Done reports whether the fault was injected.
func (i *Injection) Done() bool { return i.Error == "" && i.Skipped == "" }

// Active reports whether the fault was injected and is not healed yet.
func (i *Injection) Active() bool { return i.Done() && i.Healed == nil }

// Record is an injection and its effect on the database, which is measured after the load
// phase. Nil means that there was nothing to measure.
type Record struct {
	Injection
	// Outage is the longest time without a commit that began after the injection. It is 0 if
	// it is within the noise.
	Outage       *Seconds `json:"outage_s"`
	TPSBefore    *float64 `json:"tps_before"`
	TPSDuring    *float64 `json:"tps_during"`
	TPSAfter     *float64 `json:"tps_after"`
	SilentDuring *float64 `json:"silent_during,omitempty"` // share of the time until the heal without a commit, without pauses within the noise
	// Recovered is the time from the injection until the throughput was back to 90 % to stay; see
	// stats.Effect. It is 0 if the throughput did not fall.
	Recovered *Seconds `json:"recovered_s"`
	P99Before *float64 `json:"p99_before_ms"`
	P99During *float64 `json:"p99_during_ms"`
	P99After  *float64 `json:"p99_after_ms"`
	// Unknown counts the transactions whose client did not learn the outcome. Look-ups found some.
	Unknown        uint64 `json:"unknown"`
	FoundCommitted uint64 `json:"found_committed"`
	FoundAborted   uint64 `json:"found_aborted"`

	OutageAt   *Seconds `json:"outage_at_s"`   // when the outage began; nil if there was none
	LongestGap *Seconds `json:"longest_gap_s"` // the longest time without a commit, within the noise or not
	Noise      *Seconds `json:"noise_s"`       // a longer gap is an outage; see stats.Effect
	Uncompared string   `json:"uncompared"`    // why Recovered cannot be known
	// OutageCluster is the part of the outage until OutageLeader was seen to take writes, and
	// OutageClient is the rest, until a client committed. Nil if no node was seen to take the lead.
	OutageCluster *Seconds `json:"outage_cluster_s"`
	OutageClient  *Seconds `json:"outage_client_s"`
	OutageLeader  string   `json:"outage_leader"`
	OutageNamed   bool     `json:"outage_named"` // OutageCluster ends later, when clients could learn of the leader
}
