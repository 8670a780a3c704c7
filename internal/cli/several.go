package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/run"
)

// next carries out one of several runs, and makes its page. Without a result the
// error ends them all.
func (a *app) next(s *session, config *config) (result *report.Result, dir string, err error) {
	result, dir, err = a.conduct(s, "run", config, run.Steps{Load: true, Check: !config.NoCheck})
	switch {
	case result == nil:
	case result.Drive == nil || result.Drive.Interrupted || context.Cause(s.ctx) != nil:
		return nil, dir, errors.Join(errInterrupted, err)
	default:
		a.page(dir, true)
	}
	return result, dir, err
}

// verdicts are the directories of several runs that are not valid.
type verdicts struct{ invalid, unknown []string }

func (v *verdicts) add(dir, verdict string) {
	switch verdict {
	case "valid":
	case "invalid":
		v.invalid = append(v.invalid, dir)
	default:
		v.unknown = append(v.unknown, dir)
	}
}

// with is the error of runs that ended with err, which may be nil: a violation
// outweighs it. Where nobody asked for a verdict, an unknown one is none.
func (v *verdicts) with(err error, asked bool) error {
	switch {
	case len(v.invalid) > 0:
		return errors.Join(&exitError{exitInvalid, fmt.Errorf("invalid: a check found a violation in %s", strings.Join(v.invalid, ", "))}, err)
	case err == nil && asked && len(v.unknown) > 0:
		return &exitError{exitUnknown, fmt.Errorf("unknown: a check could not be decided in %s", strings.Join(v.unknown, ", "))}
	}
	return err
}
