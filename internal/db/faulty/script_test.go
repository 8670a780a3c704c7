package faulty

import (
	"strings"
	"testing"
)

func TestScriptPrintsAndParsesBack(t *testing.T) {
	for _, text := range []string{
		"seed 0; cut commit 1",
		"seed 18446744073709551615; lose begin 0.05; refuse statement 0.001; delay read 0.1 2ms; late commit 0.25",
		"seed 7; lost-ack commit 0.01; stale-read read 0.5; lose look-up 0.3; cut reset 0.2; cut load 0.1; delay scan 1e-05 1m0s",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.String(); got != text {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
}

func TestScriptRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"seed x; cut commit 1":          "not a whole number",
		"seed 1; cut commit":            "FAULT STEP RATE",
		"seed 1; break commit 0.1":      `no fault "break"`,
		"seed 1; late begin 0.1":        "late happens at [commit]",
		"seed 1; cut commit 0":          "above 0",
		"seed 1; cut commit NaN":        "above 0",
		"seed 1; cut commit 0.1 2ms":    "nothing else has one",
		"seed 1; delay commit 0.1":      "needs a time",
		"seed 1; delay commit 0.1 -2ms": "positive duration",
		"seed 1; ":                      "FAULT STEP RATE",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, without %q", text, err, want)
		}
	}
}
