package registers

import (
	"context"

	"stroppy/internal/check"
)

// compareParts examines histories on one clock with bounded errors in two more ways. First, each history
// alone: a violation there is a violation. Second, all histories with the greatest possible precedence: a
// violation there leaves its check undecided.
func (k *checker) compareParts(ctx context.Context) error {
	in := k.in
	in.Meter, in.Committed = nil, nil
	var seen []check.Violation
	if in.OnViolation != nil {
		in.OnViolation = func(v check.Violation) { seen = append(seen, v) }
	}
	alone := newChecker(ctx, in)
	alone.times = apart
	if err := alone.read(); err != nil {
		return err
	}
	for of := range k.found {
		own, other := &k.found[of], &alone.found[of]
		if own.Count > 0 || other.Count == 0 {
			continue
		}
		*own = *other
		for _, v := range seen {
			if v.Check == own.Check && v.Anomaly == own.Anomaly {
				k.in.OnViolation(v)
			}
		}
	}
	in.OnViolation = nil
	most := newChecker(ctx, in)
	most.times = perhaps
	if err := most.read(); err != nil {
		return err
	}
	k.doubts = map[string]int{}
	for of := range most.found {
		f := &most.found[of]
		k.doubts[f.Check] = max(k.doubts[f.Check], f.Count)
	}
	k.doubts[Linearizable] = max(k.doubts[Linearizable], k.doubts[Fresh])
	return nil
}
