// Package survey asks a database what a run would meet there: its settings, its roles and rights, the connection to it,
// and the round trip. It changes nothing.
package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stroppy/internal/db"
)

const (
	// Limit is the longest time of a survey, connecting included.
	Limit = 9 * time.Second
	// pings is the number of round trips that are measured, within pingLimit.
	pings     = 50
	pingLimit = 2 * time.Second
	// farClock is the offset of a clock from which on times of two logs cannot be compared.
	farClock = time.Second
)

// Problem is the name of a fact that has only advice.
const Problem = "problem"

// Page is the result of a survey.
type Page struct {
	Database  string
	Version   string
	Facts     []db.Fact
	RoundTrip *RoundTrip // nil: it was not measured
	Clock     *db.Clock  // nil: the server shows none
}

// RoundTrip is the time of trivial requests, one after another on one connection.
type RoundTrip struct {
	Count       int
	Median, P99 time.Duration
}

// Take surveys an open database. It returns an error only if the database does not answer the first question.
// A later question without an answer becomes a fact.
func Take(ctx context.Context, database db.Database) (*Page, error) {
	info, err := database.Info(ctx)
	if err != nil {
		return nil, err
	}
	p := &Page{Database: info.Name, Version: info.Version}
	p.claim(database)
	own := p.ask(ctx, database, info)
	p.measure(ctx, database, own.Ping)
	p.clock(own.Clock)
	p.connections(ctx, database)
	p.successors(ctx, database)
	for _, setting := range info.Settings {
		p.add(db.Fact{Name: setting.Name, Value: setting.Value})
	}
	for _, fact := range own.Facts {
		p.add(fact)
	}
	p.caveats(&info)
	return p, nil
}

// add adds a fact, or replaces the fact of the same name.
func (p *Page) add(fact db.Fact) {
	at := slices.IndexFunc(p.Facts, func(f db.Fact) bool { return f.Name == fact.Name })
	if at < 0 {
		p.Facts = append(p.Facts, fact)
		return
	}
	p.Facts[at] = fact
}

// judge adds a fact that names a problem if there is advice, and is good otherwise.
func (p *Page) judge(name, value string, severity db.Severity, advice string) {
	if advice == "" {
		severity = db.Good
	}
	p.add(db.Fact{Name: name, Value: value, Level: severity, Advice: advice})
}

// claim adds the isolation of a run that names none.
func (p *Page) claim(database db.Database) {
	claim, err := database.Claim("")
	if err != nil {
		p.judge("default isolation", "not known", db.Warning, err.Error())
		return
	}
	p.add(db.Fact{Name: "default isolation", Value: fmt.Sprintf("%s, which claims %s", claim.Isolation, claim.Level)})
	if named, ok := database.(db.Isolated); ok {
		p.add(db.Fact{Name: "isolations", Value: strings.Join(named.IsolationNames(), ", ")})
	}
}

// ask asks for the facts that only this kind of database has.
func (p *Page) ask(ctx context.Context, database db.Database, info db.Info) db.Survey {
	surveyed, ok := database.(db.Surveyed)
	if !ok {
		return db.Survey{}
	}
	own, err := surveyed.Survey(ctx, info)
	if err != nil {
		p.unanswered("survey", err)
	}
	return own
}

// unanswered adds a fact that could not be found out.
func (p *Page) unanswered(name string, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("there was no answer within %v", Limit)
	}
	p.judge(name, "incomplete", db.Warning, err.Error())
}

// clock adds the offset of the server's clock.
func (p *Page) clock(c *db.Clock) {
	if p.Clock = c; c == nil {
		return
	}
	advice := ""
	if c.Offset.Abs() > farClock+c.Uncertainty {
		advice = "times in logs of the server and of this machine cannot be compared; synchronize both clocks (NTP)"
	}
	p.judge("clock of the server", fmt.Sprintf("%+v ± %v", c.Offset.Round(10*time.Microsecond), c.Uncertainty.Round(10*time.Microsecond)), db.Note, advice)
}

// connections adds how many clients could connect now.
func (p *Page) connections(ctx context.Context, database db.Database) {
	limited, ok := database.(db.ConnectionLimited)
	if !ok {
		return
	}
	free, err := limited.FreeConnections(ctx)
	switch {
	case err != nil:
		p.unanswered("free connections", err)
	case !free.Known:
		p.add(db.Fact{Name: "free connections", Value: "not known"})
	default:
		advice := ""
		if free.Count < usualClients {
			advice = "clients of a run need one connection each; " + free.Remedy
		}
		p.judge("free connections", fmt.Sprintf("%d (%s)", free.Count, free.Limit), db.Warning, advice)
	}
}

// usualClients is about the number of connections of a run with default settings.
const usualClients = 12

// successors adds whether a supervised database could fail over.
func (p *Page) successors(ctx context.Context, database db.Database) {
	watched, ok := database.(db.FailsOver)
	if !ok {
		return
	}
	if err := watched.CheckSuccessors(ctx); err != nil {
		p.judge("fail-over", "no", db.Warning, err.Error())
	}
}

// caveats judges the settings that void the promise to keep acknowledged writes, and adds the warnings of a run.
func (p *Page) caveats(info *db.Info) {
	for _, c := range info.Caveats {
		name, value, _ := strings.Cut(c.Setting, "=")
		if strings.Contains(name, " ") {
			name, value = c.Setting, "" // it is no setting of its own
		}
		if known := info.Setting(name); known != "" && !strings.HasPrefix(known, value) { // it may have a remark
			value = known
		}
		p.judge(name, value, db.Warning, strings.TrimSuffix(c.Quote, ".")+"; cure: "+c.Cure)
	}
	for _, warning := range info.Warnings {
		p.Facts = append(p.Facts, db.Fact{Name: Problem, Level: db.Warning, Advice: strings.TrimSuffix(warning, ".")})
	}
	if info.Durable == "" && len(info.Caveats) == 0 {
		p.add(db.Fact{Name: "durability", Value: "no promise about acknowledged writes is known", Level: db.Note, Advice: "a loss in a crash is not a violation"})
	}
}
