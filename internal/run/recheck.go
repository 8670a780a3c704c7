package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
	"stroppy/internal/isolation"
	"stroppy/internal/report"
	"stroppy/internal/workload"
)

// These keys of a history's header are for a later check.
const (
	keyExpect = "expect" // the level that the verdict is about

	keyNemesis        = "nemesis" // the script, a line a fault
	keyNodes          = "nodes"   // the names of those that are to be compared
	keyMaxOutage      = "max-outage"
	keyMaxDegradation = "max-degradation"
	keyThreshold      = "threshold" // a line each
)

// Promised returns the level that the verdict on a recorded run is about, as it
// was recorded; empty where it was not.
func Promised(h history.Header) string { return h.Keys[keyExpect] }

// Check checks recorded runs, or the content of a database, and writes the verdict into the result.json of Dir. If
// writing fails, the error is an *UnsavedError and the result is whole. The answer depends on the directories alone.
func Check(ctx context.Context, o Options) (*report.Result, error) {
	c := newConductor(o)
	check := c.recheck
	if len(o.Runs) > 0 {
		check = c.together
	}
	if err := check(ctx); err != nil {
		err = c.scrubbed(err)
		c.log.Error("check failed", "error", err)
		return c.result, err
	}
	c.log.Info("checked", "verdict", c.result.Verdict, "reason", c.result.Reason)
	if err := errors.Join(c.unkept, c.save()); err != nil && !errors.Is(err, fs.ErrPermission) {
		return c.result, &UnsavedError{err}
	}
	return c.result, nil
}

// recheck checks the run in the directory, or the content of the database.
func (c *conductor) recheck(ctx context.Context) error {
	c.untimed = !c.o.Fresh
	if c.o.Fresh {
		if err := c.describe(ctx); err != nil {
			return err
		}
		if err := c.fetch(ctx, nil); err != nil {
			return err
		}
		c.result.Workload, c.result.Seed, c.result.Finished = c.o.Spec.Name, c.o.Workload.Header().Seed, true
	}
	if err := c.readRun(); err != nil {
		return err
	}
	c.result.Study = c.o.Spec.Study
	if c.expect == isolation.Unknown {
		return fmt.Errorf("check %s: it does not say which level was promised: give it with --expect", c.o.Dir.Path)
	}
	if c.o.Workload != nil && !c.o.Fresh {
		if err := c.fetch(ctx, []*conductor{c}); err != nil {
			return err
		}
	}
	return c.verify(ctx, []string{c.o.Dir.Path}, func(results []check.Result) ([]check.Result, error) {
		results = c.whole(results)
		if !c.facts.Driven {
			results = withoutHistory(results)
		} else if err := c.recompute(); err != nil { // of a run that was cut off
			return nil, err
		}
		c.tables(ctx)
		if err := c.effects(); err != nil {
			return nil, err
		}
		c.acknowledgements()
		if err := c.judgeObjectives(c.facts.Header.Keys); err != nil {
			return nil, err
		}
		faults, err := c.judgeFaults(c.facts.Header)
		return append(results, faults...), err
	}, func(reason string) string {
		switch {
		case c.result.Verdict == "invalid":
		case !c.facts.Driven:
			reason = fmt.Sprintf("Only what the database holds was checked (claim: %s), and not what was acknowledged: "+
				"give the run directory of drive, as in `stroppy check RUN_DIR --db URL`.", c.expect)
		case !c.facts.Complete:
			reason = cutOff + reason
		}
		return endedEarly(c.result.Drive) + reason
	})
}

const cutOff = "The run was cut off, so not all that it sent is recorded. "

// facts holds the properties of a recorded history.
type facts struct {
	Header   history.Header
	Driven   bool   // there was a load phase
	Complete bool   // the history was closed
	Records  uint64 // transactions of a complete history
}

// readFacts reads the first and the last bytes of a run's history.
func readFacts(dir string) (facts, error) {
	recorded, err := history.Open(dir)
	if err != nil {
		return facts{}, err
	}
	defer recorded.Close()
	return facts{Header: recorded.Header(), Complete: recorded.Complete(), Records: recorded.Records(), Driven: check.Driven(recorded.Header())}, nil
}

// whole returns the results of the checks, undecided if the history has fewer transactions than
// were counted while they ran.
func (c *conductor) whole(results []check.Result) []check.Result {
	d := c.result.Drive
	if d == nil || d.Rebuilt || !c.facts.Complete || c.facts.Records == 0 {
		return results
	}
	if made := d.Committed + d.Aborted + d.Unknown; c.facts.Records < made {
		lacking := history.LacksTransactions(c.o.Dir.History(), c.facts.Records, made, report.FileName)
		return (&check.Files{Recordings: []history.Header{c.facts.Header}, Failed: []*history.Damage{lacking}}).Settle(c.o.Spec.Checks, results)
	}
	return results
}

// Header returns the header of the history in dir.
func Header(dir string) (history.Header, error) {
	f, err := readFacts((&Directory{Path: dir}).History())
	return f.Header, err
}

// readRun reads the result of the run in the directory, and the properties of its history. A run that was cut off
// before it had a result needs its history only.
func (c *conductor) readRun() error {
	before, err := report.Read(c.o.Dir.Path)
	switch {
	case err == nil:
		c.result = before
	case errors.As(err, new(report.NewerError)):
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: restore it from a copy, or remove it to check the recorded history alone", err)
	}
	if err := SameRun(c.o.Dir.Path, before); err != nil {
		return err
	}
	if c.facts, err = readFacts(c.o.Dir.History()); err == nil {
		err = c.identify()
	}
	if err != nil {
		return err
	}
	r, h := c.result, c.facts.Header
	r.LoadID, r.Violations = h.LoadID, nil
	if before == nil && !c.o.Fresh { // whether the database was whole again after its faults is not recorded
		r.Finished = c.facts.Complete && h.Keys[keyNemesis] == ""
		r.Workload, r.Database, r.DatabaseURL, r.Seed = h.Workload, h.Database, "", h.Seed
		r.StartedAt = time.Unix(0, h.Started).UTC().Format(time.RFC3339)
	}
	if c.expect == isolation.Unknown { // the history's header has a checksum, and result.json has none
		promised := Promised(h)
		if promised == "" && r.Claim != nil {
			promised = r.Claim.Expect
		}
		c.expect, _ = isolation.Parse(promised) // an unknown one is refused where it is needed
	}
	if r.Claim != nil && c.expect != isolation.Unknown {
		r.Claim.Expect = c.expect.String()
	}
	return nil
}

// fetch downloads the end state from the database that the runs, if any, were driven
// against. A directory without a history gets one that says which of them had ended.
func (c *conductor) fetch(ctx context.Context, runs []*conductor) error {
	var headers []history.Header
	var ended []string
	for _, r := range runs {
		headers = append(headers, r.facts.Header)
		if r.facts.Complete {
			ended = append(ended, r.number())
		}
	}
	if err := c.attachReadOnly(ctx, headers); err != nil {
		return err
	}
	if c.o.Fresh || len(c.o.Runs) > 0 {
		if err := c.empty(ended); err != nil {
			return err
		}
	}
	return c.download(ctx)
}

// ReloadedError reports that the database does not hold the load of the recorded run.
type ReloadedError struct{ problem string }

func (e *ReloadedError) Error() string { return e.problem }

// sameLoad refuses a recording of another data set than the database holds. Without load ids only the run numbers
// distinguish loads; they grow until data are loaded again.
func sameLoad(recorded, now history.Header) error {
	const lost = "name the database of the run with --db; if its data were loaded again since, the data of the run are gone"
	var problem string
	switch last := now.Run - 1; {
	case recorded.Seed != now.Seed || recorded.Objects != now.Objects:
		problem = fmt.Sprintf(" of size %d and seed %d, and this database has size %d and seed %d: %s",
			recorded.Objects, recorded.Seed, now.Objects, now.Seed, lost)
	case recorded.LoadID != now.LoadID:
		problem = ", and this database has another load of the same seed and size: " + lost
	case check.Driven(recorded) && recorded.Run > last:
		problem = fmt.Sprintf(", and this database has had %d runs: its data were loaded again since, and the data of the run are gone", last)
	default:
		return nil
	}
	return &ReloadedError{fmt.Sprintf("this is the recording of run %d of a data set%s", recorded.Run, problem)}
}

// attachReadOnly finds the data set that the runs were driven against.
func (c *conductor) attachReadOnly(ctx context.Context, runs []history.Header) error {
	if w, ok := c.o.Workload.(workload.Recalled); ok && len(runs) > 0 {
		w.Recall(runs[0])
	}
	c.enter("attach")
	loaded, err := c.o.Workload.AttachReadOnly(ctx)
	c.leave()
	if err != nil {
		return err
	}
	if c.result.Load == nil {
		c.result.Load = Loaded(loaded)
	}
	if c.volatile() {
		return nil
	}
	now := c.o.Workload.Header()
	c.result.LoadID = now.LoadID
	for _, h := range runs {
		if err := sameLoad(h, now); err != nil {
			return err
		}
	}
	return nil
}

// empty records that nothing was driven into this directory, and which runs had
// ended before the end state in it was downloaded.
func (c *conductor) empty(ended []string) error {
	keys := map[string]string{check.KeyDrive: check.DriveNone}
	if len(ended) > 0 {
		keys[check.KeyEnded] = strings.Join(ended, " ")
	}
	writer, err := history.Create(c.o.Dir.History(), c.header(0, keys), 1)
	if err != nil {
		return err
	}
	return errors.Join(writer.Client(0).Flush(), writer.Close(), c.identify())
}

// withoutHistory removes results that only a history could prove. An end state alone shows the books, and a violation
// counts.
func withoutHistory(results []check.Result) []check.Result {
	for i := range results {
		r := &results[i]
		if (r.Status == check.Valid || r.Status == check.NotApplicable && r.Required) && !r.StateAlone {
			r.Status, r.Required = check.Unknown, true
			r.Why = fact.NoHistory{}
		}
	}
	return results
}
