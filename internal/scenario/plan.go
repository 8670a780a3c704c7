package scenario

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/nemesis"
	"stroppy/internal/pace"
	"stroppy/internal/setting"
	"stroppy/internal/workload"
)

// Plan is a resolved scenario: only the seed and the loaded data are open. Nobody changes it.
type Plan struct {
	Scenario
	Named  Set            // settings that a flag, a variable or a file named
	Script nemesis.Script // the faults
	// Extended is set if the run lasts longer than by default, for its faults.
	Extended bool
	// FromVariable is set if STROPPY_DB named the database.
	FromVariable bool
}

// DatabaseVariable is the variable that stands for --db.
const DatabaseVariable = Prefix + "DB"

// enough is the number of times that each repeated fault comes in a run without a given length. quiet is the time
// that such a run goes on after the last heal.
const (
	enough = 3
	quiet  = 10 * time.Second
)

// Plan resolves the scenario. A run without a given length is long enough for its faults. A fault after the end is an
// error.
func (s Scenario) Plan(named Set) (Plan, error) {
	p := Plan{Scenario: s, Named: named}
	var err error
	if p.Script, err = parseScript(s.Nemesis); err != nil {
		return p, err
	}
	for _, fault := range p.Script {
		switch {
		case p.Duration == 0:
		case !named["duration"]:
			p.Duration = max(p.Duration, fault.Done(enough)+quiet)
		case fault.First() >= p.Duration:
			return p, fmt.Errorf("the fault %q comes first after %v, and the run ends after %v: give it a longer --duration", fault, fault.First(), p.Duration)
		}
	}
	p.Extended = p.Duration > s.Duration
	return p, nil
}

// parseScript reads faults, one a line.
func parseScript(text string) (script nemesis.Script, err error) {
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			continue
		}
		shown, _ := RedactScript(line)
		if FaultRedacted(line) {
			return nil, fmt.Errorf("the fault %q has xxxxx in place of a secret: put the secret back, or name a variable there, as in PGPASSWORD=$PGPASSWORD", shown)
		}
		fault, err := nemesis.Parse(line)
		if err != nil {
			// An error that repeats a part of a long line may end within a secret.
			if _, again := nemesis.Parse(shown); again != nil {
				err = again
			}
			return nil, err
		}
		script = append(script, fault)
	}
	return script, nil
}

// ShownScript returns the text of the faults, a line each, without secrets.
func (p *Plan) ShownScript() string {
	var lines []string
	for _, fault := range p.Script {
		lines = append(lines, fault.String())
	}
	shown, _ := RedactScript(strings.Join(lines, "\n"))
	return shown
}

// Attached returns the plan with what the database turned out to hold.
func (p Plan) Attached(spec workload.Spec, h history.Header) (Plan, error) {
	var err error
	if p.Scenario, err = p.With(spec.Loaded(h)); err != nil {
		return p, fmt.Errorf("read the identity of the data: %w", err)
	}
	p.Seed = h.Seed
	return p, nil
}

// InEffect returns the plan with the values that database and workload chose for unset settings. chosen has these
// values by name. A run of the result is the same run. A value that the scenario would refuse is left out.
func (p Plan) InEffect(chosen map[string]string) Plan {
	p.Config = workload.Clone(p.Config)
	if !p.Rate.Closed() || p.Think > 0 {
		chosen = maps.Clone(chosen)
		chosen["arrival"] = p.Arrivals().String()
	}
	for _, one := range p.Settings() {
		before, value := one.Get(), chosen[one.Name]
		if before != "" || value == "" || one.Local || one.Idle != nil && one.Idle() != "" {
			continue
		}
		if err := one.Set(value); err != nil || p.Validate() != nil {
			_ = one.Set(before) // it was so
		}
	}
	return p
}

// Arrivals returns how transactions arrive; the scenario has been checked.
func (p *Plan) Arrivals() pace.Arrival {
	a, _ := pace.ParseArrival(p.Arrival)
	return a
}

// Shown lists the names and values of all settings, without secrets.
func (p *Plan) Shown() [][2]string {
	var list [][2]string
	for _, one := range p.Settings() {
		if value := shown(one); !one.Local && value != "" {
			list = append(list, [2]string{one.Name, value})
		}
	}
	return list
}

// shown returns the value of a setting without secrets.
func shown(s setting.Setting) string {
	if s.Brief != nil {
		return s.Brief()
	}
	return (&Setting{Key: s.Name, Value: s.Get()}).Shown()
}

// Shown returns the value without secrets.
func (s *Setting) Shown() string {
	value := s.Value
	switch s.Key {
	case "db":
		value = Redact(value)
	case "nemesis":
		value, _ = RedactScript(value)
	case "probe":
		value, _ = RedactCommand(value)
	}
	return value
}

// Command returns the command that repeats this call, with the seed and no secret.
func (p *Plan) Command(command string) string {
	words := []string{"stroppy", command}
	if command == "run" || command == "sweep" {
		words = append(words, p.Workload)
	}
	for _, one := range p.Settings() {
		value, flag := shown(one), "--"+one.Name
		known := p.Named[one.Name] || one.Name == "seed" && p.Seed != 0
		switch {
		case one.Name == "node-resources": // which nothing reads: they would be in the cluster's parameters
		case one.Local || !known || value == "" || one.Name == "workload" || one.Idle != nil && one.Idle() != "":
		case one.Name == "db":
			words = append(words, flag, p.Address())
		case one.Switch():
			words = append(words, flag+"="+value)
		default:
			for line := range strings.SplitSeq(value, "\n") {
				words = append(words, flag, Quote(line))
			}
		}
	}
	return strings.Join(words, " ")
}

// Address returns the database's URL as a word of a command. A URL with a password is replaced by the variable that
// has it, or by a mask that every command refuses.
func (p *Plan) Address() string {
	shown := Redact(p.DB)
	if p.FromVariable && shown != p.DB {
		return `"$` + DatabaseVariable + `"`
	}
	return Quote(shown)
}

// Quote writes a word as a POSIX shell reads it back.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=@%+", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
