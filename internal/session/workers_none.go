//go:build embedded

package session

import (
	"stroppy/internal/exit"
	"stroppy/internal/run"
)

// noWorkers stands for the workers that a build with the tag embedded does not have.
type noWorkers struct{ run.Workers }

func (*noWorkers) Close() error { return nil }

// ErrNoWorkers reports that this build has no workers.
var ErrNoWorkers = exit.Usagef("this build has the tag embedded, which leaves out workers: build it without that tag")

// OneProcess returns ErrNoWorkers if the configuration asks for workers.
func (c *Config) OneProcess() error {
	if c.Workers > 0 {
		return ErrNoWorkers
	}
	return nil
}

func (a *App) startWorkers(_ *Session, c *Config, _ *Cluster, _, _ string) (*noWorkers, error) {
	return nil, c.OneProcess()
}
