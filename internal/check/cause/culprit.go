package cause

import (
	"stroppy/internal/check/fact"
	"stroppy/internal/isolation"
)

// Culprit is the party responsible for a violation. The zero value means that it is not decided.
type Culprit uint8

const (
	NotDecided    Culprit = iota
	Database              // broke its promise
	Configuration         // the database makes no such promise in this configuration
	Application           // the application's way of writing is not safe at this level
)

var culprits = [...]string{"undecided", "database", "configuration", "application"}

func (c Culprit) String() string { return culprits[c] }

// MarshalText returns the name of the culprit.
func (c Culprit) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Caveat is a setting under which a database does not promise to keep acknowledged writes.
type Caveat struct {
	Setting string `json:"setting"` // in the user's form, such as "w=1"
	Quote   string `json:"quote"`   // from the documentation
	Source  string `json:"source"`  // of the quote
	Cure    string `json:"cure"`    // the recommended setting
}

// Promise holds the promises of a database in the configuration of a run. The zero value is unknown.
type Promise struct {
	Database  string
	Isolation string          // the database's own name
	Level     isolation.Level // the level that it claims
	Source    string          // of the claim
	Expect    isolation.Level // the level that the verdict uses
	// Levels lists all isolations of the database with the level claimed for each.
	Levels []IsolationLevel
	// Durable is the source of the promise that acknowledged writes persist; empty: not known.
	Durable string
	Caveats []Caveat
}

// IsolationLevel is an isolation of a database and the level that the database claims for it.
type IsolationLevel struct {
	Isolation string
	Level     isolation.Level
}

// Style describes how the application of a run writes.
type Style struct {
	Update string // the value of the setting, such as "rmw"
	Unsafe bool   // it reads, computes and writes the result without a lock
	Safe   string // the value that is safe at any level, such as "locked"; empty: none
}

// Judgement states who is responsible, with the evidence.
type Judgement struct {
	Culprit Culprit
	Caveats []Caveat        // for Configuration: the settings that weaken durability
	Asked   bool            // for Configuration: --expect is stronger than the claimed level
	Source  string          // for Database: where it made the promise
	Durable bool            // for Database: the promise is durability; otherwise it is isolation
	Claim   isolation.Level // the level that was broken, or that is weaker than the one asked for
	Broken  isolation.Level // the weakest level that forbids the violation; Unknown: none
	Update  string          // for Application: the unsafe way of writing
	Safe    string          // for Application: a safe way; empty: none
	Scripts bool            // for NotDecided: the user's own SQL may be at fault too
	// Isolations lists the database's isolation levels whose claim forbids the violation.
	Isolations []string
}

// Judge decides who is responsible for a finding.
func Judge(f *Found, p Promise, s Style) Judgement {
	j := Judgement{Claim: p.Level, Broken: f.Forbidden}
	if f.Forbidden != isolation.Unknown {
		j.Isolations = p.names(f.Forbidden)
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
	case BrokenInvariants:
		j.Scripts = true
		if p.Level != isolation.Unknown && !p.Level.Includes(isolation.Serializable) {
			j.Isolations = p.names(isolation.Serializable)
		}
	case WrongSums:
		// Without an end state in which all books close, another program may have written the balance.
		if len(f.Instances) == 0 {
			break
		}
		if read, ok := f.Instances[0].(fact.GarbageRead); ok && read.Ended && p.Level.Includes(f.Forbidden) {
			j.Culprit, j.Source = Database, p.Source
		}
	case WrongValues:
		if p.Level.Includes(isolation.ReadCommitted) && len(p.Caveats) == 0 {
			j.Culprit, j.Source = Database, p.Source
		}
	}
	return j
}

// names returns the isolations that claim a level.
func (p *Promise) names(level isolation.Level) (list []string) {
	for _, l := range p.Levels {
		if l.Level.Includes(level) {
			list = append(list, l.Isolation)
		}
	}
	return list
}
