package text

import (
	"fmt"

	"stroppy/internal/check/fact"
)

// run returns the clause of a fact about a run beside its recording; empty for others.
func (s Speaker) run(f fact.Fact) string {
	switch f := f.(type) {
	case fact.FaultTrouble:
		return faultTrouble(f)
	case fact.FaultsDone:
		text := fmt.Sprintf("injected, seen by their effect, and healed: %d", f.Done)
		if f.Skipped > 0 {
			text += fmt.Sprintf("; skipped, as the script allows: %d", f.Skipped)
		}
		return text
	case fact.NoFaultDone:
		return fmt.Sprintf("no fault of the script was injected, and %d were skipped", f.Skipped)
	case fact.HealsUnknown:
		return "the run was cut off, so it is not known what was healed"
	case fact.OfRun:
		return fmt.Sprintf("run %s: %s", f.Run, s.Clause(f.What))
	}
	return ""
}

func faultTrouble(f fact.FaultTrouble) string {
	at := fmt.Sprintf("%s at %.3g s ", f.Fault, f.AtSeconds)
	switch f.State {
	case fact.NotInjected:
		return at + "was not injected: " + f.Error
	case fact.NotHealed:
		return at + "was not healed: " + f.Error
	case fact.NotObserved:
		return at + "was injected, but its effect was not observed"
	}
	return at + "is not known to have been healed"
}
