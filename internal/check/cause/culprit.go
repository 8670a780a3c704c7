package cause

import "stroppy/internal/isolation"

// Culprit is who is responsible for a violation. The zero value is not decided.
type Culprit uint8

const (
	NotDecided    Culprit = iota
	Database              // it broke its promise
	Configuration         // in this configuration the database does not promise it
	Application           // the way in which the application writes is not safe at this level
)

var culprits = [...]string{"undecided", "database", "configuration", "application"}

func (c Culprit) String() string { return culprits[c] }

// MarshalText carries a culprit through JSON by name.
func (c Culprit) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Caveat is a setting in effect under which a database does not promise to keep what it acknowledged.
type Caveat struct {
	Setting string `json:"setting"` // as people set it, such as "w=1"
	Quote   string `json:"quote"`   // what its documentation says
	Source  string `json:"source"`  // where
	Cure    string `json:"cure"`    // the setting to choose
}

// Promise is what a database promises in the configuration of a run. The zero value is unknown.
type Promise struct {
	Database  string
	Isolation string          // its own name for the isolation
	Level     isolation.Level // what it claims at that isolation
	Source    string          // where it claims that
	Expect    isolation.Level // the level that the verdict is about
	// Levels are its isolations with what it claims at each.
	Levels []IsolationLevel
	// Durable is where it promises that acknowledged writes stay; empty: not known.
	Durable string
	Caveats []Caveat
}

// IsolationLevel is an isolation of a database and the level that it claims there.
type IsolationLevel struct {
	Isolation string
	Level     isolation.Level
}

// Style is how the application of a run writes.
type Style struct {
	Update string // the value of the setting, such as "rmw"
	Unsafe bool   // it reads, computes and writes the result; otherwise the database computes, or it locks first
	Safe   string // the value that is safe at any level, such as "locked"; empty: there is none
}

// Judgement is who is responsible, and what shows it.
type Judgement struct {
	Culprit Culprit
	// Basis is the claim that was broken, or that does not include what was asked.
	Caveats []Caveat // of Configuration: the settings that do not promise it
	Asked   bool     // of Configuration: --expect asked for more than the isolation claims
	Source  string   // of Database: where it made the promise
	Durable bool     // of Database: the promise is durability; otherwise it is the isolation
	Claim   isolation.Level
	Broken  isolation.Level // the weakest level that forbids what was found; Unknown: none is named
	Update  string          // of Application: the unsafe way of writing
	Safe    string          // of Application: a safe one; empty: none
	// Isolations are those of the database that claim a level which forbids what was found.
	Isolations []string
}

// Judge decides who is responsible for a finding.
func Judge(f *Found, p Promise, s Style) Judgement {
	j := Judgement{Claim: p.Level, Broken: f.Forbidden}
	if f.Forbidden != isolation.Unknown {
		for _, l := range p.Levels {
			if l.Level.Includes(f.Forbidden) {
				j.Isolations = append(j.Isolations, l.Isolation)
			}
		}
	}
	switch f.Kind {
	case LostWrites, AlteredWrites, GhostWrites, DoubleWrites, Divergence:
		switch {
		case len(p.Caveats) > 0:
			j.Culprit, j.Caveats = Configuration, p.Caveats
		case p.Durable != "":
			j.Culprit, j.Source, j.Durable = Database, p.Durable, true
		}
	case LostUpdates, BrokenOrder:
		switch {
		case f.Forbidden == isolation.Unknown:
		case p.Level.Includes(f.Forbidden):
			j.Culprit, j.Source = Database, p.Source
		case f.Kind == LostUpdates && s.Unsafe:
			j.Culprit, j.Update, j.Safe = Application, s.Update, s.Safe
		case p.Level != isolation.Unknown && p.Expect.Includes(f.Forbidden):
			j.Culprit, j.Asked = Configuration, true
		}
	case WrongValues:
		if p.Level.Includes(isolation.ReadCommitted) && len(p.Caveats) == 0 {
			j.Culprit, j.Source = Database, p.Source
		}
	}
	return j
}
