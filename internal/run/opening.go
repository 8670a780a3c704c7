package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"stroppy/internal/history"
	"stroppy/internal/scenario"
)

// opening keeps the state of the data at the start of a run, if earlier runs have changed what was loaded. The checks
// then need no other recording. If that fails, a note says before the load phase which recordings they need.
func (c *conductor) opening(ctx context.Context) error {
	h := c.o.Workload.Header()
	unchecked := c.o.Plan.NoCheck && c.o.Command != "drive"
	if !c.o.Spec.Opening || h.Run <= 1 || unchecked || c.volatile() {
		return nil
	}
	c.enter("opening")
	defer c.leave()
	dir := filepath.Join(c.o.Dir.Path, history.OpeningFolder)
	err := keepEnd(dir, func(end *history.EndWriter) error {
		return c.o.Workload.EndState(ctx, end, func(done, total uint64) { c.o.Progress.Show(State{Done: done, Total: total}) })
	})
	var opening *history.Base
	if err == nil {
		opening, err = history.ReadBase(dir, h)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		c.opened = opening.Fingerprint()
		return nil
	}
	c.log.Warn("the state at the start cannot be taken as the loaded data", "error", err)
	if c.o.Note != nil {
		c.o.Note(fmt.Sprintf("the verdict of this run needs the recordings of earlier runs, because %s: `stroppy check%s` checks them together",
			c.o.Scrub(err.Error()), c.recordings(h)))
	}
	return os.RemoveAll(dir)
}

// mostRecordings is the largest number of recordings that a sentence names.
const mostRecordings = 5

// recordings returns the directories of all runs on the data, as words of a command. It finds recordings beside this one.
func (c *conductor) recordings(h history.Header) (words string) {
	found := map[uint64]string{}
	paths, _ := filepath.Glob(filepath.Join(filepath.Dir(c.o.Dir.Path), "*", HistoryDir))
	for _, path := range paths {
		dir := filepath.Dir(path)
		if other, err := Header(dir); err == nil && other.Workload == h.Workload && other.LoadID == h.LoadID && other.LoadID != "" {
			found[other.Run] = dir
		}
	}
	if h.Run-1 > mostRecordings {
		return " RUN_DIR… " + scenario.Quote(c.o.Dir.Path)
	}
	for run := uint64(1); run < h.Run; run++ {
		if dir, ok := found[run]; ok {
			words += " " + scenario.Quote(dir)
		} else {
			words += fmt.Sprintf(" RUN_DIR_OF_RUN_%d", run)
		}
	}
	return words + " " + scenario.Quote(c.o.Dir.Path)
}
