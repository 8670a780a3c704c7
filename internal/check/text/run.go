package text

import (
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
)

var runClauses = []wording{
	{fact.HealsUnknown{}, "the run was cut off, so it is not known what was healed"},
	{fact.EarlierLost{}, "the {book} had {Rows row} of earlier runs when the run began, and lacks them now"},
}

// run returns the clause of a fact about a run as a whole that needs more than a wording; empty for others.
func (s Speaker) run(f fact.Fact) string {
	switch f := f.(type) {
	case fact.FaultTrouble:
		return faultTrouble(f)
	case fact.FaultsDone:
		if f.Done == 1 {
			return "1 fault was injected, seen by its effect, and healed" + skipped(f.Skipped)
		}
		return s.fill("{Done fault} were injected, seen by their effect, and healed", f) + skipped(f.Skipped)
	case fact.NoFaultDone:
		return "no fault of the script was injected" + skipped(f.Skipped)
	case fact.OfRun:
		return fmt.Sprintf("run %s: %s", f.Run, s.Clause(f.What))
	}
	return ""
}

// skipped returns the number of skipped faults as the end of a clause; empty for 0.
func skipped(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 was skipped, as the script allows"
	}
	return fmt.Sprintf("; %s were skipped, as the script allows", check.Group(n))
}

func faultTrouble(f fact.FaultTrouble) string {
	at := fmt.Sprintf("%s at %.3g s ", f.Fault, f.AtSeconds)
	switch f.State {
	case fact.NotInjected:
		return at + "was not injected" + because(f.Error)
	case fact.NotHealed:
		return at + "was not healed" + because(f.Error)
	case fact.NotObserved:
		return at + "was injected, but its effect was not observed"
	}
	return at + "is not known to have been healed"
}

// because returns an error as the end of a clause; empty if there is none.
func because(problem string) string {
	if problem == "" {
		return ""
	}
	return ": " + problem
}
