package main

import (
	"time"

	"stroppy/internal/cluster"
)

// isolation measures how long the scripted schedules take at all levels of PostgreSQL:
// most of it is waiting for steps that another transaction holds up.
func (s *suite) isolation() {
	s.serve(cluster.Alone(nil), func(s *server) {
		began := time.Now()
		s.command("isolation", "--schedules-only", "--json", "--db="+s.URL())
		s.row("postgres: isolation, all levels, schedules alone", "%.1f s", time.Since(began).Seconds(), 0, "< 20 s")
	})
}
