package load

import (
	"cmp"
	"maps"
	"slices"

	"stroppy/internal/stats"
)

// Snapshot holds what the clients of one process have done so far, including the warm-up.
type Snapshot struct {
	Counters  Counters
	Kinds     []KindCount
	Errors    map[string]uint64
	Latencies map[string]*stats.Reading // by kind
}

// Snapshot returns the current state. Any goroutine may call it at any time.
func (d *Driver) Snapshot() Snapshot {
	return Snapshot{Counters: d.Live(), Kinds: d.Kinds(), Errors: d.Errors(), Latencies: d.KindLatencies()}
}

// Join adds the counts of another process's clients.
func (s *Snapshot) Join(o *Snapshot) {
	c, more := &s.Counters, &o.Counters
	for _, both := range [][2]*uint64{
		{&c.Done, &more.Done}, {&c.Committed, &more.Committed}, {&c.Rejected, &more.Rejected}, {&c.Aborted, &more.Aborted},
		{&c.Unknown, &more.Unknown}, {&c.Conflicts, &more.Conflicts}, {&c.Retries, &more.Retries},
		{&c.Reconnects, &more.Reconnects}, {&c.Backlog, &more.Backlog}, {&c.Shed, &more.Shed},
	} {
		*both[0] += *both[1]
	}
	c.Reconnecting += more.Reconnecting
	for _, k := range o.Kinds {
		i := slices.IndexFunc(s.Kinds, func(have KindCount) bool { return have.Kind == k.Kind })
		if i < 0 {
			s.Kinds = append(s.Kinds, k)
			continue
		}
		have := &s.Kinds[i]
		have.Committed, have.Rejected = have.Committed+k.Committed, have.Rejected+k.Rejected
		have.Aborted, have.Unknown = have.Aborted+k.Aborted, have.Unknown+k.Unknown
	}
	if s.Errors == nil {
		s.Errors = map[string]uint64{}
	}
	for class, n := range o.Errors {
		s.Errors[class] += n
	}
	if s.Latencies == nil {
		s.Latencies = map[string]*stats.Reading{}
	}
	for kind, r := range o.Latencies {
		if s.Latencies[kind] == nil {
			s.Latencies[kind] = new(stats.Reading)
		}
		s.Latencies[kind].Join(r)
	}
}

// Join adds the result of another process's clients in the same load phase. Elapsed is the maximum, and the
// memory is the sum.
func (r *Result) Join(o *Result) {
	r.Elapsed = max(r.Elapsed, o.Elapsed)
	if r.Measurements == nil {
		r.Measurements = new(stats.Measurements)
	}
	r.Measurements.Join(o.Measurements)
	r.Never.Join(&o.Never)
	for _, both := range [][2]*uint64{
		{&r.Conflicts, &o.Conflicts}, {&r.Retries, &o.Retries}, {&r.Reconnects, &o.Reconnects}, {&r.Unresolved, &o.Unresolved},
		{&r.Backlog, &o.Backlog}, {&r.Shed, &o.Shed}, {&r.Skipped, &o.Skipped}, {&r.WarmupUnsent, &o.WarmupUnsent},
	} {
		*both[0] += *both[1]
	}
	for second, n := range o.Unsent {
		if second == len(r.Unsent) {
			r.Unsent = append(r.Unsent, 0)
		}
		r.Unsent[second] += n
	}
	r.Errors = joinErrors(r.Errors, o.Errors)
	r.CPUSeconds += o.CPUSeconds
	r.MaxRSSBytes += o.MaxRSSBytes
	r.Threads += o.Threads
	r.Interrupted = r.Interrupted || o.Interrupted
}

// joinErrors merges errors of equal class, code and operation, the most frequent first.
func joinErrors(lists ...[]ErrorCount) []ErrorCount {
	merged := map[errorKind]ErrorCount{}
	for _, list := range lists {
		for _, e := range list {
			kind := errorKind{e.Class, e.Code, e.Op}
			e.Count += merged[kind].Count
			merged[kind] = e
		}
	}
	return slices.SortedFunc(maps.Values(merged), func(a, b ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Op, b.Op))
	})
}
