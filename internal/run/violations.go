package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/check/text"
	"stroppy/internal/history"
	"stroppy/internal/report"
)

// mostViolations bounds the lines of violations.jsonl. A few transactions show a violation, and a database that is
// wrong everywhere would fill the disk.
const mostViolations = 10_000

// Bounds in bytes: a violation that names many transactions is long.
const (
	mostViolationBytes = 4 << 20  // of the file
	mostViolationText  = 16 << 10 // of what one line says; beyond it the text is cut
	placeBytes         = 64       // of the place of a record, at most
)

// violations collects the findings of checks, up to a number for each anomaly of each check. Only the end shows which
// checks are invalid. The zero value with bounds is ready.
type violations struct {
	most   int // lines of an anomaly, and of all together in the file
	bytes  int // of an anomaly, and of all together in the file
	checks map[string][]*spool

	speaker text.Speaker // makes the sentences of what is kept
}

// spool holds the violations of one anomaly for one check.
type spool struct {
	anomaly string
	first   []violationLine
	ends    []int // bytes that the lines take up to each and with it, at most
	count   uint64
}

// size returns the largest size of its first n lines, in bytes.
func (s *spool) size(n int) int {
	if n == 0 {
		return 0
	}
	return s.ends[n-1]
}

// violationLine is one line of violations.jsonl. A missing value is null.
type violationLine struct {
	Check       string  `json:"check"`
	Anomaly     *string `json:"anomaly"`
	Transaction *string `json:"transaction"` // its id
	Account     *string `json:"account"`
	What        string  `json:"what"`

	// The statement as values: its kind, which never changes, and its arguments.
	Kind string    `json:"kind,omitempty"`
	Fact fact.Fact `json:"fact,omitempty"` // left out if it is longer than mostViolationText

	// Pieces of a value that nobody wrote, with the writer of each; otherwise absent.
	Pieces []report.Piece `json:"pieces,omitempty"`

	// The place of the transaction's record: the file relative to its run's directory, the offset of the block in
	// bytes, and the number of the record within the block, from 0.
	File   *string `json:"file"`
	Offset *int64  `json:"offset"`
	Record *int    `json:"record"`

	id history.ID
}

func (v *violations) add(found check.Violation) { v.keepOne(found, "") }

// keepOne adds a violation with its sentence. Without a sentence it gets the sentence of its fact.
func (v *violations) keepOne(found check.Violation, what string) {
	if v.checks == nil {
		v.checks = map[string][]*spool{}
	}
	var s *spool
	for _, other := range v.checks[found.Check] {
		if other.anomaly == found.Anomaly {
			s = other
		}
	}
	if s == nil {
		s = &spool{anomaly: found.Anomaly}
		v.checks[found.Check] = append(v.checks[found.Check], s)
	}
	s.count++
	if len(s.first) == v.most || s.size(len(s.first)) >= v.bytes {
		return
	}
	line := violationLine{
		Check: found.Check, Anomaly: known(found.Anomaly), Account: known(found.Account), Pieces: report.Pieces(found.Pieces),
		id: found.Transaction,
	}
	if found.Transaction != 0 {
		line.Transaction = new(found.Transaction.String())
	}
	if found.Fact != nil {
		if line.Kind = found.Fact.Fact(); what == "" {
			what = v.speaker.Clause(found.Fact)
		}
		if quoted, _ := json.Marshal(found.Fact); len(quoted) <= mostViolationText { // a fact is whole or left out
			line.Fact = found.Fact
		}
	}
	line.What = shortened(what)
	text, _ := json.Marshal(line) // of strings and facts it cannot fail
	s.first = append(s.first, line)
	s.ends = append(s.ends, s.size(len(s.first)-1)+len(text)+placeBytes)
}

// shortened cuts a text that is longer than a line may be, and says so.
func shortened(text string) string {
	if len(text) <= mostViolationText {
		return text
	}
	end := mostViolationText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s … (%s more)", text[:end], check.Plural(len(text)-end, "byte"))
}

// of returns the kept violations of the invalid checks, in their order, and the number found by each. If there are
// too many, each anomaly of each check has an equal share, and unused shares go to the others. An invalid check
// without a violation has one line.
func (v *violations) of(results []check.Result) (list []violationLine, found []report.ViolationsOf) {
	var spools []*spool
	for _, r := range results {
		if r.Status != check.Invalid {
			continue
		}
		if v.checks[r.Name] == nil {
			v.keepOne(check.Violation{Check: r.Name}, v.speaker.Detail(&r))
		}
		spools = append(spools, v.checks[r.Name]...)
		found = append(found, report.ViolationsOf{Check: r.Name})
	}
	share := v.share(spools)
	for i := range found {
		of := &found[i]
		for _, s := range v.checks[of.Check] {
			kept := s.first[:min(len(s.first), share)]
			list = append(list, kept...)
			of.Found, of.Lines = of.Found+s.count, of.Lines+uint64(len(kept))
		}
	}
	return list, found
}

// share returns the largest number of lines per spool with which all are within the bounds.
func (v *violations) share(spools []*spool) int {
	low, high := 0, v.most // low fits
	for low < high {
		middle, lines, bytes := (low+high+1)/2, 0, 0
		for _, s := range spools {
			n := min(len(s.first), middle)
			lines, bytes = lines+n, bytes+s.size(n)
		}
		if lines <= v.most && bytes <= v.bytes {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// keep writes the file with the lines of the invalid checks, and returns its description for the result. Without a
// violation it returns nil and writes no file. It looks for the records of the transactions in the runs.
func (v *violations) keep(ctx context.Context, d Directory, runs []string, results []check.Result) (*report.Violations, error) {
	list, found := v.of(results)
	if len(list) == 0 {
		if err := os.Remove(filepath.Join(d.Path, ViolationsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, nil
	}
	places := places(ctx, runs, list)
	err := d.WriteFrom(ViolationsFile, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		for _, line := range list {
			if at := places[line.id]; at.File != "" {
				line.File, line.Offset, line.Record = &at.File, &at.Offset, &at.Record
			}
			if err := encoder.Encode(line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept := &report.Violations{File: ViolationsFile, Checks: found}
	for _, of := range found {
		kept.Lines, kept.More = kept.Lines+of.Lines, kept.More+of.Found-of.Lines
	}
	return kept, nil
}

// places returns where transactions are recorded. Unreadable records were reported by the checks, and are missing
// here.
func places(ctx context.Context, runs []string, list []violationLine) map[history.ID]history.Ref {
	wanted := map[history.ID]history.Ref{}
	for _, line := range list {
		if line.id != 0 {
			wanted[line.id] = history.Ref{}
		}
	}
	missing := len(wanted)
	for _, dir := range runs {
		recorded, err := history.Open((&Directory{Path: dir}).History())
		if err != nil {
			continue // an end state alone
		}
		read := 0
		for record := range readable(recorded) {
			if read++; missing == 0 || read%4096 == 0 && ctx.Err() != nil {
				break
			}
			if at, ok := wanted[record.ID]; ok && at.File == "" {
				wanted[record.ID] = record.Ref
				missing--
			}
		}
		_ = recorded.Close()
	}
	return wanted
}
