package stats

import (
	"slices"
	"sync/atomic"
	"time"
)

// These constants are the number of pages for two digits, which a test verifies, and the number of adjacent
// pages in a group. A client needs one or two groups.
const (
	livePages  = 54
	groupPages = 8
)

// Live is the distribution of one client's durations, which other goroutines may read during the run. One
// goroutine adds values, without sharing a cache line with another one that adds. It is never reset: a period
// is the difference of two readings.
type Live struct {
	groups [(livePages + groupPages - 1) / groupPages]atomic.Pointer[liveGroup]
}

type liveGroup [groupPages]atomic.Pointer[livePage]

// livePage takes eight cache lines. Only the goroutine that adds stores values.
type livePage [pageSize]atomic.Uint64

// Add counts one duration in nanoseconds, clipped to the histograms' range. It allocates only new pages and
// groups.
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

// Reading is the content of several Live distributions at one time, or the change between two times. The zero
// Reading is empty.
type Reading struct {
	counts []uint64 // by bucket of two digits; nil where there is nothing
}

// Read adds the current content of l.
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

// addPage adds the content of the page with that number.
func (r *Reading) addPage(n int, page *livePage) {
	into := r.counts[n*pageSize : min((n+1)*pageSize, len(r.counts))]
	for i := range into {
		into[i] += page[i].Load()
	}
}

// Joined returns the sum of several readings.
func Joined[K comparable](of map[K]*Reading) *Reading {
	all := new(Reading)
	for _, r := range of {
		all.Join(r)
	}
	return all
}

// Since returns the change since an earlier reading of the same distributions.
func (r *Reading) Since(earlier *Reading) *Reading {
	d := &Reading{counts: slices.Clone(r.counts)}
	for i, n := range earlier.counts {
		d.counts[i] -= n
	}
	return d
}

// Count returns the number of durations.
func (r *Reading) Count() (n uint64) {
	for _, count := range r.counts {
		n += count
	}
	return n
}

// Buckets returns the non-empty buckets in ascending order.
func (r *Reading) Buckets() []Bucket { return twoDigits.buckets(r.counts) }

// Quantile returns the nearest-rank quantile q as the upper end of its bucket. For q = 1 it returns the
// maximum, and for an empty reading 0.
func (r *Reading) Quantile(q float64) time.Duration {
	return time.Duration(twoDigits.quantile(r.counts, q, r.Count()))
}
