package main

import (
	"os/exec"
	"time"

	"stroppy/internal/cluster"
)

// isolation measures how long the scripted schedules take at all levels of PostgreSQL:
// most of it is waiting for steps that another transaction holds up.
func (s *suite) isolation() error {
	return s.serve(cluster.Alone(nil), func(s *server) error {
		began := time.Now()
		if _, err := run(exec.CommandContext(s.ctx, s.stroppy, "isolation", "--schedules-only", "--json", "--db="+s.URL())); err != nil {
			return err
		}
		s.row("postgres: isolation, all levels, schedules alone", "%.1f s", time.Since(began).Seconds(), 0, "< 20 s")
		return nil
	})
}
