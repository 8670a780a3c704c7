package dataset

import (
	"context"

	"stroppy/internal/workload"
)

// taken is a run that another process has taken.
type taken struct {
	load string
	run  uint64
}

// Join implements workload.Workload.
func (s *Set) Join(loadID string, run uint64) { s.taken = &taken{loadID, run} }

// attachTaken attaches to the run that another process has taken.
func (s *Set) attachTaken(ctx context.Context) (workload.Loaded, error) {
	m, err := s.readFitting(ctx)
	switch {
	case err != nil:
		return workload.Loaded{}, err
	case m.Load != s.taken.load:
		return workload.Loaded{}, s.kind.overtaken()
	}
	m.Run = s.taken.run - 1
	return s.attach(m, driven), nil
}
