package run

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/report"
	"stroppy/internal/scenario"
)

// identify sets the run to which the following files belong.
func (c *conductor) identify() error {
	id, err := history.IdentityIn(c.o.Dir.History())
	if err == nil && id != (history.Identity{}) {
		c.result.Identity = &id
	}
	return err
}

// ReadResult reads the result in dir, and refuses files that name different runs.
func ReadResult(dir string) (*report.Result, error) {
	r, err := report.Read(dir)
	if err != nil {
		return nil, err
	}
	return r, oneIdentity(dir, r)
}

// digests returns the SHA-256 of the existing files in dir that have no identity of their own, by name.
func digests(dir string) (map[string]string, error) {
	sums := map[string]string{}
	drawn, err := drawings(dir)
	if err != nil {
		return nil, fmt.Errorf("read the drawings of the run in %s: %w", dir, err)
	}
	for _, name := range append([]string{
		ScenarioFile, report.SeriesFile, report.AroundFile, report.KindsFile, report.HeatFile, report.ResourcesFile, ServerFile, StatusFile, ViolationsFile,
	}, drawn...) {
		sum, err := digest(dir, name)
		if err != nil {
			return nil, err
		}
		if sum != "" {
			sums[name] = sum
		}
	}
	return sums, nil
}

// evidence returns the files that checks read beside the history, and connections.jsonl. They name their run, and
// grow until it ends.
func evidence() []string { return []string{FaultsFile, NodesFile, ConnectionsFile} }

// digestsOf returns the digests of the files in dir that a result keeps. After the end of the run they include the
// evidence, which never changes then.
func digestsOf(dir string, r *report.Result) (map[string]string, error) {
	sums, err := digests(dir)
	if err != nil || !r.Finished {
		return sums, err
	}
	for _, name := range evidence() {
		sum := r.Files[name]
		if sum == "" {
			if sum, err = digest(dir, name); err != nil {
				return nil, err
			}
		}
		if sum != "" {
			sums[name] = sum
		}
	}
	return sums, nil
}

// digest returns the SHA-256 of a file in dir, in hexadecimal; empty if there is none.
func digest(dir, name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read %s of the run in %s: %w", name, dir, err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data)), nil
}

// changed returns an error that names a file if it is there and is not the one that the run left.
func changed(dir, name string, r *report.Result) error {
	left := r.Files[name]
	if left == "" {
		return nil
	}
	found, err := digest(dir, name)
	if err == nil && found != "" && found != left {
		err = fmt.Errorf("%s is not the one that the run left, by its SHA-256 in %s", name, report.FileName)
	}
	return err
}

// unchanged returns an error that names a file which is not the one that the run left. One
// that is missing was removed by a person, who knows.
func unchanged(dir string, r *report.Result) error {
	found, err := digests(dir)
	if err != nil {
		return err
	}
	for _, name := range append(slices.Sorted(maps.Keys(found)), ConnectionsFile) {
		if err := changed(dir, name, r); err != nil {
			return fmt.Errorf("read the run in %s: %w: restore it, or remove it", dir, err)
		}
	}
	return nil
}

// SameRun returns an error that names a file of the directory which was changed, or is of
// another run than the history beside it. The result may be nil.
func SameRun(dir string, r *report.Result) error {
	if r != nil {
		if err := unchanged(dir, r); err != nil {
			return err
		}
	}
	return oneIdentity(dir, r)
}

// oneIdentity is SameRun for the files that name their run.
func oneIdentity(dir string, r *report.Result) error {
	run, err := history.IdentityIn((&Directory{Path: dir}).History())
	if err != nil || run == (history.Identity{}) {
		return err
	}
	nodes, failedNodes := readNodes(dir)
	faults, failedFaults := readFaults(dir)
	connections, err := readConnections(dir)
	if err := cmp.Or(failedNodes, failedFaults, err); err != nil {
		return err
	}
	owners := map[string][]history.Identity{FaultsFile: faults.owners}
	own := func(name string, owner *history.Identity) {
		if owner != nil {
			owners[name] = []history.Identity{*owner}
		}
	}
	if r != nil {
		own(report.FileName, r.Identity)
	}
	if nodes != nil {
		own(NodesFile, nodes.Identity)
	}
	if connections != nil {
		own(ConnectionsFile, connections.Identity)
	}
	for _, name := range []string{report.FileName, NodesFile, FaultsFile, ConnectionsFile} {
		for _, owner := range owners[name] {
			if owner != run {
				return fmt.Errorf("read the run in %s: %s belongs to %s, but the history in the same directory belongs to %s: put the files of one run together", dir, name, owner, run)
			}
		}
	}
	return nil
}

// faultLine is a line of faults.jsonl.
type faultLine struct {
	fault.Injection
	Identity *history.Identity `json:"identity"`
}

type faultLines struct {
	cut     bool           // the last line has no end
	faults  []fault.Record // of each the last line about it, in the order of their times
	owners  []history.Identity
	damaged []string // a sentence for each line that is no fault
	lines   int
}

// readFaults reads the faults of a recorded run; none where there is no file.
func readFaults(dir string) (read faultLines, err error) {
	data, err := os.ReadFile(filepath.Join(dir, FaultsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return read, fmt.Errorf("read the faults of the run: %w", err)
	}
	damaged := func(how string) {
		read.damaged = append(read.damaged, fmt.Sprintf("Line %d of %s %s.", read.lines, FaultsFile, how))
	}
	for line := range bytes.Lines(data) {
		read.lines++
		var one faultLine
		switch err := json.Unmarshal(line, &one); {
		case err != nil && !bytes.HasSuffix(line, []byte("\n")):
			read.cut = true // the run was cut off in the middle of this line
			continue
		case err != nil || one.Number < 1:
			damaged("is no fault")
			continue
		case one.Identity == nil:
			damaged("does not name its run")
		case !slices.Contains(read.owners, *one.Identity):
			read.owners = append(read.owners, *one.Identity)
		}
		read.faults = slices.DeleteFunc(read.faults, func(f fault.Record) bool { return f.Number == one.Number })
		read.faults = append(read.faults, fault.Record{Injection: one.Injection})
	}
	slices.SortStableFunc(read.faults, func(a, b fault.Record) int { return cmp.Compare(a.At, b.At) })
	return read, nil
}

// unlikeScript compares the recorded faults with the script, which has a line for each fault. It
// returns a sentence for each fault that is not in the script and, if the run ended, for each that
// is missing.
func unlikeScript(read faultLines, script string, ended bool, nodes *nodesRecord) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	lines := strings.FieldsFunc(script, func(r rune) bool { return r == '\n' })
	came, faults := make([]bool, len(lines)), read.faults
	for _, f := range faults {
		if f.Line < 1 || f.Line > len(lines) || !scenario.Includes(lines[f.Line-1], f.Fault) {
			problem("Fault %d in %s, %s, is none of the script.", f.Number, FaultsFile, f.Fault)
			continue
		}
		came[f.Line-1] = true
	}
	if !ended || len(lines) == 0 {
		return problems
	}
	if nodes == nil {
		problem("%s is missing, so that how many faults there were is not known.", NodesFile)
		return problems
	}
	if nodes.FaultLines != read.lines {
		problem("%s has %d lines, and the run wrote %d.", FaultsFile, read.lines, nodes.FaultLines)
	}
	for n := range nodes.Faults {
		if !slices.ContainsFunc(faults, func(f fault.Record) bool { return f.Number == n+1 }) {
			problem("Fault %d of %d is missing from %s.", n+1, nodes.Faults, FaultsFile)
		}
	}
	for i, line := range lines {
		if !came[i] {
			problem("The fault %q of the script is missing from %s.", line, FaultsFile)
		}
	}
	return problems
}

// replaced returns an error if what was driven is known to have been loaded anew.
func (c *conductor) replaced(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, replacedWait)
	defer cancel()
	return c.o.Workload.CheckUnchanged(ctx)
}

// depart has the workload describe the data as this run leaves them, if no transaction of
// the run can change them later: the end state was downloaded, or each outcome is known.
func (c *conductor) depart(ctx context.Context) {
	if ctx.Err() != nil || c.o.Plan.NoCheck && c.result.Drive.Unknown > 0 || c.unwhole != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, departTime)
	defer cancel()
	if err := c.o.Workload.Leave(ctx); err != nil {
		c.log.Warn("the data could not be described for the next run", "error", err)
	}
}
