package dbtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The files faulty_*_test.go wrap databases so that their sessions inject faults by a seeded script. Some faults lose,
// delay, cut or refuse a step, which every correct database may do. The other faults falsify results. Workloads and
// checks meet lost answers and wrong results in milliseconds and without a server.

// Fault names a fault that can happen at a step.
type Fault string

// Faults that a correct database may show.
const (
	Refuse Fault = "refuse" // nothing is sent, and the transaction is aborted
	Lose   Fault = "lose"   // the connection ends before the step is sent
	Cut    Fault = "cut"    // the connection ends after the step, before its answer
	Delay  Fault = "delay"  // the step is sent later
	Late   Fault = "late"   // the connection ends, and the commit arrives before or after the look-up of the transaction
)

// Faults that no correct database shows. The names are the names of planted bugs in package memory.
const (
	LostAck      Fault = "lost-ack"
	Ghost        Fault = "ghost"
	Torn         Fault = "torn"
	DoubleApply  Fault = "double-apply"
	PhantomMoney Fault = "phantom-money"
	Swap         Fault = "swap"
	DirtyRead    Fault = "dirty-read"
	StaleRead    Fault = "stale-read"
	ReadSkew     Fault = "read-skew"
	LongFork     Fault = "long-fork" // SQL only
	LostUpdate   Fault = "lost-update"
	WriteSkew    Fault = "write-skew"
	Overdraft    Fault = "overdraft"          // SQL only
	UnknownLies  Fault = "unknown-lies"       // SQL only
	FalseAck     Fault = "false-ack-on-crash" // SQL only
)

// Step is a step of the protocol of a session.
type Step string

const (
	Begin     Step = "begin"
	Statement Step = "statement" // SQL: Do
	Read      Step = "read"      // SQL: Flush; key-value store: Read
	Commit    Step = "commit"    // procedures: Call
	LookUp    Step = "look-up"   // the commits after an unknown one, until one succeeds
	Scan      Step = "scan"      // SQL: Query
	Reset     Step = "reset"
	Load      Step = "load" // the bulk load
)

// places lists the steps at which each fault can happen.
var places = map[Fault][]Step{
	Refuse: {Begin, Statement, Read, Commit, LookUp},
	Lose:   {Begin, Statement, Read, Commit, LookUp, Scan, Reset, Load},
	Cut:    {Begin, Statement, Read, Commit, LookUp, Scan, Reset, Load},
	Delay:  {Begin, Statement, Read, Commit, LookUp, Scan, Reset, Load},
	Late:   {Commit},

	LostAck: {Commit}, Ghost: {Commit}, Torn: {Commit}, DoubleApply: {Commit}, PhantomMoney: {Commit}, Swap: {Commit},
	Overdraft: {Commit}, UnknownLies: {Commit}, FalseAck: {Commit},
	DirtyRead: {Commit}, LostUpdate: {Read}, WriteSkew: {Read}, StaleRead: {Read}, ReadSkew: {Read}, LongFork: {Read},
}

// Rule injects a fault at a step with a probability.
type Rule struct {
	Fault Fault
	Step  Step
	Rate  float64       // share of these steps, in (0, 1]
	Wait  time.Duration // for Delay
}

// String returns the rule as parseScript reads it, for example "cut commit 0.01" or "delay read 0.1 2ms".
func (r Rule) String() string {
	text := fmt.Sprintf("%s %s %s", r.Fault, r.Step, strconv.FormatFloat(r.Rate, 'g', -1, 64))
	if r.Wait > 0 {
		text += " " + r.Wait.String()
	}
	return text
}

// Script holds the seed and the rules. The first rule that strikes at a step decides the fault; a delay does not end
// the search.
type Script struct {
	Seed  uint64
	Rules []Rule
}

// String returns the script as parseScript reads it, for example "seed 7; lose commit 0.01; cut read 0.02".
func (s Script) String() string {
	parts := []string{fmt.Sprintf("seed %d", s.Seed)}
	for _, r := range s.Rules {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, "; ")
}

// parseScript parses a script.
func parseScript(text string) (Script, error) {
	var s Script
	for i, part := range strings.Split(text, ";") {
		words := strings.Fields(part)
		if i == 0 && len(words) == 2 && words[0] == "seed" {
			seed, err := strconv.ParseUint(words[1], 10, 64)
			if err != nil {
				return s, fmt.Errorf("the seed %q of the script is not a whole number", words[1])
			}
			s.Seed = seed
			continue
		}
		rule, err := parseRule(words)
		if err != nil {
			return s, fmt.Errorf("rule %q of the script: %w", strings.TrimSpace(part), err)
		}
		s.Rules = append(s.Rules, rule)
	}
	return s, nil
}

// parseRule parses the words of a rule.
func parseRule(words []string) (r Rule, err error) {
	if len(words) < 3 || len(words) > 4 {
		return r, fmt.Errorf("write FAULT STEP RATE, and a time for a delay")
	}
	r.Fault, r.Step = Fault(words[0]), Step(words[1])
	steps, known := places[r.Fault]
	switch {
	case !known:
		return r, fmt.Errorf("unknown fault %q", r.Fault)
	case !slices.Contains(steps, r.Step):
		return r, fmt.Errorf("%s can only happen at %v", r.Fault, steps)
	case (len(words) == 4) != (r.Fault == Delay):
		return r, fmt.Errorf("a delay needs a time, and no other fault has one")
	}
	if r.Rate, err = strconv.ParseFloat(words[2], 64); err != nil || !(r.Rate > 0 && r.Rate <= 1) {
		return r, fmt.Errorf("the rate %q is not a number above 0 and at most 1", words[2])
	}
	if r.Fault == Delay {
		if r.Wait, err = time.ParseDuration(words[3]); err != nil || r.Wait <= 0 {
			return r, fmt.Errorf("the time %q is not a positive duration", words[3])
		}
	}
	return r, nil
}

// TestScriptParsesItsText checks that the text of a parsed script equals the input.
func TestScriptParsesItsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"seed 0; cut commit 1",
		"seed 18446744073709551615; lose begin 0.05; refuse statement 0.001; delay read 0.1 2ms; late commit 0.25",
		"seed 7; lost-ack commit 0.01; stale-read read 0.5; lose look-up 0.3; cut reset 0.2; cut load 0.1; delay scan 1e-05 1m0s",
	} {
		s, err := parseScript(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.String(); got != text {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
}

// TestParseScriptReportsInvalidRules checks the errors of invalid scripts.
func TestParseScriptReportsInvalidRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"seed x; cut commit 1":          "not a whole number",
		"seed 1; cut commit":            "FAULT STEP RATE",
		"seed 1; break commit 0.1":      `unknown fault "break"`,
		"seed 1; late begin 0.1":        "late can only happen at [commit]",
		"seed 1; cut commit 0":          "above 0",
		"seed 1; cut commit NaN":        "above 0",
		"seed 1; cut commit 0.1 2ms":    "no other fault has one",
		"seed 1; delay commit 0.1":      "needs a time",
		"seed 1; delay commit 0.1 -2ms": "positive duration",
		"seed 1; ":                      "FAULT STEP RATE",
	} {
		if _, err := parseScript(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, without %q", text, err, want)
		}
	}
}
