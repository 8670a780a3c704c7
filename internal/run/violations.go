package run

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"stroppy/internal/check"
	"stroppy/internal/report"
)

// violations gathers what checks find, in one hidden file a check, because only in the
// end it is known which checks are invalid. The zero value with a directory is ready.
type violations struct {
	dir    string // the run's
	spools map[string]*spool
	err    error // the first; what follows is thrown away
}

// spool is what was found for one check.
type spool struct {
	file  *os.File
	out   *bufio.Writer
	lines uint64
}

// violationLine is one line of violations.jsonl. What there is none of is null.
type violationLine struct {
	Check       string  `json:"check"`
	Anomaly     *string `json:"anomaly"`
	Transaction *string `json:"transaction"` // its id
	Account     *string `json:"account"`
	What        string  `json:"what"`
}

func (v *violations) add(found check.Violation) {
	if v.err != nil {
		return
	}
	s := v.spools[found.Check]
	if s == nil {
		file, err := os.CreateTemp(v.dir, ".violations-*")
		if err != nil {
			v.err = err
			return
		}
		if v.spools == nil {
			v.spools = map[string]*spool{}
		}
		s = &spool{file: file, out: bufio.NewWriterSize(file, 1<<16)}
		v.spools[found.Check] = s
	}
	line := violationLine{Check: found.Check, Anomaly: known(found.Anomaly), Account: known(found.Account), What: found.What}
	if found.Transaction != 0 {
		line.Transaction = new(found.Transaction.String())
	}
	s.lines++
	encoder := json.NewEncoder(s.out)
	encoder.SetEscapeHTML(false)
	v.err = encoder.Encode(line)
}

func (v *violations) discard() {
	for _, s := range v.spools {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
	v.spools = nil
}

// keep puts the file in place, with the lines of the checks that are invalid, and
// returns what the result says of it; nil where there is no violation, and then
// no file. An invalid check of which nothing was handed over has one line.
func (v *violations) keep(results []check.Result) (*report.Violations, error) {
	kept := &report.Violations{File: ViolationsFile}
	var list []*spool
	for _, r := range results {
		if r.Status != check.Invalid {
			continue
		}
		if v.spools[r.Name] == nil {
			v.add(check.Violation{Check: r.Name, What: r.Detail})
		}
		if s := v.spools[r.Name]; s != nil {
			list = append(list, s)
			kept.Lines += s.lines
		}
	}
	if v.err != nil {
		return nil, v.err
	}
	d := Directory{Path: v.dir}
	if len(list) == 0 {
		if err := os.Remove(filepath.Join(v.dir, ViolationsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, nil
	}
	err := d.WriteFrom(ViolationsFile, func(w io.Writer) error {
		for _, s := range list {
			if err := s.out.Flush(); err != nil {
				return err
			}
			if _, err := s.file.Seek(0, io.SeekStart); err != nil {
				return err
			}
			if _, err := io.Copy(w, s.file); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}
