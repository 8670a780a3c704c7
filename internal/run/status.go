package run

import (
	"context"
	"encoding/json"
	"time"

	"stroppy/internal/db"
)

// StatusFile has one line for each look at what the database says of itself during the load
// phase. There is none where the database says nothing.
const StatusFile = "status.jsonl"

// statusEvery is the time between two looks.
const statusEvery = 5 * time.Second

// statusLine is one look, or why there was no answer.
type statusLine struct {
	AtSeconds float64         `json:"at_s"` // when it was asked for
	Status    json.RawMessage `json:"status,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// sampleStatus asks a database that describes its own state for it, until the function that
// it returns is called, which returns the first error of writing.
func (c *conductor) sampleStatus(ctx context.Context, start time.Time) func() error {
	reporter, ok := c.o.Database.(db.StatusReporter)
	if !ok {
		return func() error { return nil }
	}
	ctx, stop := context.WithCancel(ctx)
	var failed error
	end := Every(statusEvery, func() {
		line := statusLine{AtSeconds: time.Since(start).Seconds()}
		status, err := reporter.Status(ctx)
		if ctx.Err() != nil {
			return
		}
		if line.Status = status; err != nil {
			line.Status, line.Error = nil, c.o.Scrub(err.Error())
		}
		text, err := json.Marshal(line)
		if err == nil {
			err = c.o.Dir.Append(StatusFile, append(text, '\n'))
		}
		if failed == nil {
			failed = err
		}
	})
	return func() error {
		stop()
		end()
		return failed
	}
}
