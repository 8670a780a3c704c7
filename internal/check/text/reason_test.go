package text

import (
	"strings"
	"testing"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/isolation"
)

func TestReasonNamesTheRequiredUndecidedChecks(t *testing.T) {
	results := []check.Result{
		{Name: "total", Required: true, Status: check.Valid},
		{Name: "strict", Status: check.Unknown, Why: fact.CutOff{}},
		{Name: "ledger", Required: true, Status: check.Unknown, Why: fact.NoEnd{}},
	}
	got := Speaker{}.Reason(results, check.Unknown, 5, isolation.Serializable)
	if !strings.HasPrefix(got, "The check ledger could not be decided") || strings.Contains(got, "cut off") {
		t.Errorf("the reason is %q", got)
	}
}
