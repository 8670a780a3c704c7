package stats

import (
	"slices"
	"sync/atomic"
	"time"
)

// The number of pages that two digits need, which a test holds, and how many of
// neighbouring durations are in one group: a client has one group or two.
const (
	livePages  = 54
	groupPages = 8
)

// Live is the distribution of what one client has done so far, for others to
// read while it runs. One goroutine adds, and shares no cache line with
// another one that adds; any goroutine reads. It is never reset: what came in a
// time is the difference of two readings.
type Live struct {
	groups [(livePages + groupPages - 1) / groupPages]atomic.Pointer[liveGroup]
}

type liveGroup [groupPages]atomic.Pointer[livePage]

// livePage takes eight cache lines. Only the one goroutine that adds stores.
type livePage [pageSize]atomic.Uint64

// Add counts one duration in nanoseconds, at the nearest end of the histograms' range.
// It allocates nothing but the page of neighbouring durations, and its group.
func (l *Live) Add(ns int64) {
	at := uint(twoDigits.index(min(max(ns, 0), highest)))
	group := l.groups[at/pageSize/groupPages].Load()
	if group == nil {
		group = new(liveGroup)
		l.groups[at/pageSize/groupPages].Store(group)
	}
	page := group[at/pageSize%groupPages].Load()
	if page == nil {
		page = new(livePage)
		group[at/pageSize%groupPages].Store(page)
	}
	count := &page[at%pageSize]
	count.Store(count.Load() + 1)
}

// Reading is what some Live distributions held at one time, or how that changed
// between two times. The zero Reading is empty.
type Reading struct {
	counts []uint64 // by bucket of two digits; nil where there is nothing
}

// Read adds what l holds now.
func (r *Reading) Read(l *Live) {
	if r.counts == nil {
		r.counts = make([]uint64, twoDigits.size())
	}
	for g := range l.groups {
		group := l.groups[g].Load()
		if group == nil {
			continue
		}
		for n := range group {
			if page := group[n].Load(); page != nil {
				r.addPage(g*groupPages+n, page)
			}
		}
	}
}

// addPage adds what the page of that number holds.
func (r *Reading) addPage(n int, page *livePage) {
	into := r.counts[n*pageSize : min((n+1)*pageSize, len(r.counts))]
	for i := range into {
		into[i] += page[i].Load()
	}
}

// Joined returns what several readings hold together.
func Joined[K comparable](of map[K]*Reading) *Reading {
	all := new(Reading)
	for _, r := range of {
		all.Join(r)
	}
	return all
}

// Since returns what came after an earlier reading of the same distributions.
func (r *Reading) Since(earlier *Reading) *Reading {
	d := &Reading{counts: slices.Clone(r.counts)}
	for i, n := range earlier.counts {
		d.counts[i] -= n
	}
	return d
}

// Count returns how many durations there are.
func (r *Reading) Count() (n uint64) {
	for _, count := range r.counts {
		n += count
	}
	return n
}

// Buckets returns the distribution, ascending, without the empty buckets.
func (r *Reading) Buckets() []Bucket { return twoDigits.buckets(r.counts) }

// Quantile returns the nearest-rank quantile q as the upper end of its bucket;
// 1 is the largest of all, and of nothing it is 0.
func (r *Reading) Quantile(q float64) time.Duration {
	return time.Duration(twoDigits.quantile(r.counts, q, r.Count()))
}
