package check

import (
	"testing"

	"stroppy/internal/check/fact"
)

func TestJudgeTakesFindingsOfItsOwnCheck(t *testing.T) {
	undecided := fact.NoEnd{}
	for name, c := range map[string]struct {
		findings  []Finding
		undecided fact.Fact
		want      Status
	}{
		"no finding":               {nil, nil, Valid},
		"no finding and undecided": {nil, undecided, Unknown},
		"a finding":                {[]Finding{{Check: "total", Count: 1}}, undecided, Invalid},
		"one of another check":     {[]Finding{{Check: "ledger", Count: 1}}, nil, Valid},
		"one without a violation":  {[]Finding{{Check: "total"}}, undecided, Unknown},
	} {
		if got := (Result{Name: "total"}).Judge(c.findings, c.undecided, nil); got.Status != c.want {
			t.Errorf("%s: %v, want %v", name, got.Status, c.want)
		}
	}
}
