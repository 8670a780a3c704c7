package db

import (
	"context"
	"fmt"
	"time"
)

// Surveyed is implemented by a database that knows more than its Info about what a run would meet there.
type Surveyed interface {
	// Survey asks the server that takes writes, and changes nothing. info is the answer of Info. A fact that this user
	// may not see is left out, or its value says so.
	Survey(ctx context.Context, info Info) (Survey, error)
}

// Survey holds the facts about a server and about the connection to it.
type Survey struct {
	Facts []Fact
	Clock *Clock // nil: the server shows no clock
	// Ping makes one round trip; nil: a read of the data model is one.
	Ping func(ctx context.Context) error
}

// Fact is a setting or another property of a server that a run depends on.
type Fact struct {
	Name  string   `json:"name"`
	Value string   `json:"value"`
	Level Severity `json:"level,omitempty"` // what the value means for a run
	// Advice holds the consequence of the value and what to change, without a period at the end.
	Advice string `json:"advice,omitempty"`
}

// Severity is the weight of a fact.
type Severity string

const (
	Good    Severity = "ok"
	Note    Severity = "note"    // a run behaves differently
	Warning Severity = "warning" // a run loses data, stops, or cannot begin
)

// Add adds a fact without a judgement. An empty value is left out.
func (s *Survey) Add(name, format string, args ...any) {
	if value := fmt.Sprintf(format, args...); value != "" {
		s.Facts = append(s.Facts, Fact{Name: name, Value: value})
	}
}

// Judge adds a fact that is good, or has this severity and advice if bad is set. An empty value is left out.
func (s *Survey) Judge(name, value string, bad bool, severity Severity, advice string) {
	switch {
	case value == "":
	case bad:
		s.Facts = append(s.Facts, Fact{name, value, severity, advice})
	default:
		s.Facts = append(s.Facts, Fact{Name: name, Value: value, Level: Good})
	}
}

// Clock is the offset of a server's clock: server time minus client time.
type Clock struct {
	Offset      time.Duration
	Uncertainty time.Duration // half of the round trip of the question
}

// clockQuestions is the number of questions of ReadClock.
const clockQuestions = 5

// ReadClock asks a server for its time over an open connection, and keeps the answer of the shortest round trip.
func ReadClock(ask func() (time.Time, error)) (*Clock, error) {
	var best *Clock
	for range clockQuestions {
		sent := time.Now()
		server, err := ask()
		took := time.Since(sent)
		if err != nil {
			return nil, err
		}
		if c := (Clock{server.Sub(sent.Add(took / 2)), took / 2}); best == nil || c.Uncertainty < best.Uncertainty {
			best = &c
		}
	}
	return best, nil
}
