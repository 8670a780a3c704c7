package fact

// The statements about a run beside its recording.

type (
	// FaultTrouble states that a fault of the script did not go as it should.
	FaultTrouble struct {
		Fault     string  `json:"fault"` // as the script has it
		AtSeconds float64 `json:"at_s"`
		State     Trouble `json:"state"`
		Error     string  `json:"error,omitempty"`
	}
	// FaultsDone states how many faults were injected, seen and healed, and how many were skipped.
	FaultsDone struct {
		Done    int `json:"done"`
		Skipped int `json:"skipped"`
	}
	// NoFaultDone states that no fault of the script was injected.
	NoFaultDone struct {
		Skipped int `json:"skipped"`
	}
	// HealsUnknown states that it is not known what was healed, because the run was cut off.
	HealsUnknown struct{}
	// OfRun is a statement about one of several runs.
	OfRun struct {
		Run  string `json:"run"`
		What Fact   `json:"what"`
	}
)

// Trouble is what went wrong with a fault.
type Trouble string

const (
	NotInjected Trouble = "not-injected"
	NotHealed   Trouble = "not-healed"
	HealUnknown Trouble = "heal-unknown"
	NotObserved Trouble = "not-observed" // it was injected, and its effect was not seen
)

func (FaultTrouble) Fact() string { return "fault-trouble" }
func (FaultsDone) Fact() string   { return "faults-done" }
func (NoFaultDone) Fact() string  { return "no-fault-done" }
func (HealsUnknown) Fact() string { return "heals-unknown" }
func (OfRun) Fact() string        { return "of-run" }
