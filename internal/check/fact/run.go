package fact

// These facts are about the run, not its recording.

type (
	// FaultTrouble states that a fault of the script failed in some way.
	FaultTrouble struct {
		Fault     string  `json:"fault"` // as the script has it
		AtSeconds float64 `json:"at_s"`
		State     Trouble `json:"state"`
		Error     string  `json:"error,omitempty"`
	}
	// FaultsDone counts the faults that were injected, observed and healed, and the faults that were skipped.
	FaultsDone struct {
		Done    int `json:"done"`
		Skipped int `json:"skipped"`
	}
	// NoFaultDone states that no fault of the script was injected.
	NoFaultDone struct {
		Skipped int `json:"skipped"`
	}
	// HealsUnknown states that the heals are not known, because the run was cut off.
	HealsUnknown struct{}
	// EarlierLost states that rows of earlier runs were there at the start of a run, and are not there at the end.
	EarlierLost struct {
		Rows int `json:"rows"`
	}
	// OfRun assigns a fact to one of several runs.
	OfRun struct {
		Run  string `json:"run"`
		What Fact   `json:"what"`
	}
)

// Trouble is the way in which a fault failed.
type Trouble string

const (
	NotInjected Trouble = "not-injected"
	NotHealed   Trouble = "not-healed"
	HealUnknown Trouble = "heal-unknown"
	NotObserved Trouble = "not-observed" // injected, but its effect was not observed
)

func (FaultTrouble) Fact() string { return "fault-trouble" }
func (FaultsDone) Fact() string   { return "faults-done" }
func (NoFaultDone) Fact() string  { return "no-fault-done" }
func (HealsUnknown) Fact() string { return "heals-unknown" }
func (EarlierLost) Fact() string  { return "earlier-lost" }
func (OfRun) Fact() string        { return "of-run" }
