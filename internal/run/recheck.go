package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/workload"
)

// What a history's header keeps for a later check.
const (
	keyExpect = "expect" // the level that the verdict is about
	keyDrive  = "drive"  // driveNone: an end state alone, nothing was driven
	driveNone = "none"

	keyNemesis        = "nemesis" // the script, a line a fault
	keyNodes          = "nodes"   // there: every node is to be compared
	keyMaxOutage      = "max-outage"
	keyMaxDegradation = "max-degradation"
)

func withKey(keys map[string]string, key, value string) map[string]string {
	keys = maps.Clone(keys)
	if keys == nil {
		keys = map[string]string{}
	}
	keys[key] = value
	return keys
}

// CheckOptions are the check of a run that was driven before, or of what a
// database holds.
type CheckOptions struct {
	Dir    *Directory
	Expect isolation.Level // unknown: what the run recorded

	// Check is the workload's own.
	Check func(ctx context.Context, dir string, expect isolation.Level) ([]check.Result, error)

	// Workload and Database are there to download the end state; nil: the one
	// that the directory holds is used.
	Workload    workload.Workload
	Database    db.Database
	DatabaseURL string // as it may be shown
	Isolation   string
	Fresh       bool // the directory is new: there is no history, only what the database holds

	Stroppy  string
	Progress Progress
	Scrub    func(string) string
}

// Check holds a recorded run against what it promised, and writes the verdict
// into its result.json; where that fails the error is an *UnsavedError and the
// result is whole. The answer depends on the directory alone.
func Check(ctx context.Context, o CheckOptions) (*report.Result, error) {
	c := newConductor(Options{
		Workload: o.Workload, Database: o.Database, Dir: o.Dir, DatabaseURL: o.DatabaseURL, Isolation: o.Isolation,
		Expect: o.Expect, Stroppy: o.Stroppy, Progress: o.Progress, Scrub: o.Scrub,
	})
	err := c.recheck(ctx, o)
	if err != nil {
		err = c.scrubbed(err)
		c.log.Error("check failed", "error", err)
		return c.result, err
	}
	c.log.Info("checked", "verdict", c.result.Verdict, "reason", c.result.Reason)
	if err := c.save(); err != nil && !errors.Is(err, fs.ErrPermission) {
		return c.result, &UnsavedError{err}
	}
	return c.result, nil
}

func (c *conductor) recheck(ctx context.Context, o CheckOptions) error {
	if !o.Fresh {
		c.untimed = true
		if err := c.recall(); err != nil {
			return err
		}
	}
	if o.Workload != nil {
		if err := c.fetch(ctx, o.Fresh); err != nil {
			return err
		}
	}
	facts, err := Recall(o.Dir.History())
	if err != nil {
		return err
	}
	if c.o.Expect == isolation.Unknown {
		return fmt.Errorf("check %s: it does not say which level was promised: give it with --expect", o.Dir.Path)
	}
	c.enter("check")
	results, err := o.Check(ctx, o.Dir.Path, c.o.Expect)
	c.leave()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("check the run: %w", context.Cause(ctx))
	}
	if !facts.Driven {
		results = withoutHistory(results)
	}
	if err := c.effects(); err != nil {
		return err
	}
	faults, err := c.judgeFaults(facts.Header)
	if err != nil {
		return err
	}
	results = append(results, faults...)
	r := c.result
	decide(r, results, facts.Committed, c.o.Expect)
	switch {
	case r.Verdict == "invalid":
	case !facts.Driven:
		r.Reason = "Only what the database holds was checked, and not what was acknowledged: give the run directory of pay, as in `stroppy check RUN_DIR --db URL`."
	case !facts.Complete:
		r.Reason = "The run was cut off, so not all that it sent is recorded. " + r.Reason
	}
	return nil
}

// Facts are what a recorded history says about itself.
type Facts struct {
	Header    history.Header
	Driven    bool   // there was a drive
	Complete  bool   // the history was closed
	Committed uint64 // audits and the warm-up included
}

// Recall reads a run's history folder.
func Recall(dir string) (Facts, error) {
	recorded, err := history.Open(dir)
	if err != nil {
		return Facts{}, err
	}
	defer recorded.Close()
	f := Facts{Header: recorded.Header(), Complete: recorded.Complete()}
	f.Driven = f.Header.Keys[keyDrive] != driveNone
	for record, err := range recorded.Transactions() {
		if err != nil {
			break // the check tells of it
		}
		if record.Outcome == history.Committed && record.Kind != history.Audit {
			f.Committed++
		}
	}
	return f, nil
}

// Header reads what the history of the run in dir says about it.
func Header(dir string) (history.Header, error) {
	d := Directory{Path: dir}
	recorded, err := history.Open(d.History())
	if err != nil {
		return history.Header{}, err
	}
	defer recorded.Close()
	return recorded.Header(), nil
}

// recall takes up the result of the run in the directory. Of a run that was cut
// off before it had one, the history's header tells enough.
func (c *conductor) recall() error {
	before, err := report.Read(c.o.Dir.Path)
	switch {
	case err == nil:
		c.result = before
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	h, err := Header(c.o.Dir.Path)
	if err != nil {
		return err
	}
	r := c.result
	if before == nil {
		r.Workload, r.Database, r.DatabaseURL, r.Seed = h.Workload, h.Database, "", h.Seed
		r.StartedAt = time.Unix(0, h.Started).UTC().Format(time.RFC3339)
	}
	// The history's header has a checksum, and result.json has none.
	promised := h.Keys[keyExpect]
	if promised == "" && r.Claim != nil {
		promised = r.Claim.Expect
	}
	if c.o.Expect == isolation.Unknown {
		if c.o.Expect, err = isolation.Parse(promised); err != nil {
			c.o.Expect = isolation.Unknown // told where it is needed
		}
	}
	if r.Claim != nil && c.o.Expect != isolation.Unknown {
		r.Claim.Expect = c.o.Expect.String()
	}
	return nil
}

// fetch downloads the end state from the database.
func (c *conductor) fetch(ctx context.Context, fresh bool) error {
	if fresh {
		if err := c.describe(ctx); err != nil {
			return err
		}
	}
	c.enter("attach")
	loaded, err := c.o.Workload.Look(ctx)
	c.leave()
	if err != nil {
		return err
	}
	if fresh {
		c.result.Load, c.result.Workload = Loaded(loaded), c.o.Workload.Name()
		header := c.o.Workload.Header()
		header.Database, header.Started, header.Clients = c.result.Database, time.Now().UnixNano(), 0
		header.Keys = withKey(withKey(header.Keys, keyExpect, c.o.Expect.String()), keyDrive, driveNone)
		c.result.Seed, c.result.Finished = header.Seed, true
		if err := empty(c.o.Dir.History(), header); err != nil {
			return err
		}
	}
	return c.download(ctx)
}

// empty records that nothing was driven.
func empty(dir string, header history.Header) error {
	writer, err := history.Create(dir, header, 1)
	if err != nil {
		return err
	}
	return errors.Join(writer.Client(0).Flush(), writer.Close())
}

// withoutHistory takes back what only a history could prove: of an end state
// alone the books can be checked, and a violation is one all the same.
func withoutHistory(results []check.Result) []check.Result {
	for i := range results {
		r := &results[i]
		switch r.Name {
		case check.Total, check.NonNegative, check.Ledger:
			continue
		}
		if r.Status == check.Valid {
			r.Status, r.Required = check.Unknown, true
			r.Detail = "Not decided: there is no history of what was acknowledged; give the run directory of pay."
		}
	}
	return results
}
