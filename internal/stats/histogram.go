package stats

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// These constants are the range of every histogram, in nanoseconds. Values below 2^unit share one count
// (HdrHistogram's unit magnitude of a microsecond).
const (
	highest = 3_600_000_000_000 // an hour
	unit    = 9
)

const (
	pageSize   = 64 // counts in a page: one cache line
	chunkPages = 8  // pages that are made at a time
	mostFew    = 16 // values that are listed before a page is made
)

// precision is the number of significant decimal digits, encoded as HdrHistogram's magnitude of half the
// sub-buckets.
type precision uint

const (
	twoDigits   precision = 7
	threeDigits precision = 10
)

// index returns the bucket of v, from 0 to highest, in the order of the dense histogram. It combines
// HdrHistogram's getBucketIndex, getSubBucketIdx and countsIndex.
func (p precision) index(v int64) int {
	half := uint(p)
	mask := uint64(2<<half-1) << unit
	bucket := uint(bits.Len64(uint64(v)|mask)) - (unit + half + 1)
	return int(bucket<<half) + int(uint64(v)>>(bucket+unit))
}

// value returns the lowest value of a bucket.
func (p precision) value(index int) int64 {
	bucket := max(index>>p-1, 0)
	return int64(index-bucket<<p) << (uint(bucket) + unit)
}

// size returns the number of buckets of the dense histogram.
func (p precision) size() int { return p.index(highest) + 1 }

// quantile returns the highest value of the bucket with the nearest-rank quantile q of total values, and 0 for no
// values. It is definition 1 of Hyndman and Fan, 1996. HdrHistogram for Go rounds the rank: its 90th percentile of
// seven values is the sixth.
func (p precision) quantile(dense []uint64, q float64, total uint64) int64 {
	want := max(rank(q, total), 1)
	var seen uint64
	for index, count := range dense {
		if seen += count; seen >= want {
			return p.value(index+1) - 1
		}
	}
	return 0
}

// Bucket is a range of durations with the number of values in it.
type Bucket struct {
	Lower, Upper time.Duration // its end belongs to the next one
	Count        uint64
}

// buckets returns the non-empty buckets of the dense histogram in ascending order.
func (p precision) buckets(dense []uint64) (list []Bucket) {
	for index, count := range dense {
		if count > 0 {
			list = append(list, Bucket{Lower: time.Duration(p.value(index)), Upper: time.Duration(p.value(index + 1)), Count: count})
		}
	}
	return list
}

// rank returns the smallest integer that is at least q×n. A product slightly above an integer because of
// rounding counts as that integer.
func rank(q float64, n uint64) uint64 {
	product := q * float64(n)
	r := uint64(product)
	if float64(r) < product*(1-1e-12) {
		r++
	}
	return min(r, n)
}

// counts is a sparse HdrHistogram that converts to the dense one without loss. A dense one takes 196 kB for
// three digits over an hour, and a recorder needs several, so 10,000 clients would need gigabytes.
//
// The latencies of a client lie in a few thousand adjacent buckets, most with fewer than 256 values. So the
// first values are only listed. Later counts are single bytes in pages that are created on first use; every
// 256th value of a bucket is carried into a map. After its pages exist, recording allocates nothing.
type counts struct {
	few    []uint16 // the buckets of the first values
	place  []uint16 // by index/pageSize: the page's place in chunks; 0 is a page without counts
	chunks []*[chunkPages][pageSize]uint8
	pages  uint16            // made, without the one at place 0
	carry  map[uint16]uint64 // by index: how often its byte went over
}

func (c *counts) add(index int) {
	if len(c.few) < mostFew {
		c.few = append(c.few, uint16(index))
		return
	}
	n := index / pageSize
	if n >= len(c.place) || c.place[n] == 0 {
		c.newPage(n)
	}
	count := &c.chunks[c.place[n]/chunkPages][c.place[n]%chunkPages][index%pageSize]
	*count++
	if *count == 0 {
		c.carryOver(index, 1)
	}
}

func (c *counts) carryOver(index int, times uint64) {
	if c.carry == nil {
		c.carry = make(map[uint16]uint64)
	}
	c.carry[uint16(index)] += times
}

// grown returns the list with room for the element n.
func grown[T any](list []T, n int) []T {
	if more := n + 1 - len(list); more > 0 {
		list = append(list, make([]T, more)...)
	}
	return list
}

// join adds all counts of another histogram.
func (c *counts) join(o *counts) {
	for _, index := range o.few {
		c.add(int(index))
	}
	for n, place := range o.place {
		if place == 0 {
			continue
		}
		if n >= len(c.place) || c.place[n] == 0 {
			c.newPage(n)
		}
		into := &c.chunks[c.place[n]/chunkPages][c.place[n]%chunkPages]
		for i, more := range o.chunks[place/chunkPages][place%chunkPages] {
			if into[i] += more; into[i] < more {
				c.carryOver(n*pageSize+i, 1)
			}
		}
	}
	for index, times := range o.carry {
		c.carryOver(int(index), times)
	}
}

func (c *counts) newPage(n int) {
	c.place = grown(c.place, n)
	if c.pages++; int(c.pages/chunkPages) == len(c.chunks) {
		c.chunks = append(c.chunks, new([chunkPages][pageSize]uint8))
	}
	c.place[n] = c.pages
}

// addTo adds all counts to dense, which has one element for each of the size buckets.
func (c *counts) addTo(dense []uint64) {
	for _, index := range c.few {
		dense[index]++
	}
	for n, place := range c.place {
		for i, count := range c.chunks[place/chunkPages][place%chunkPages] {
			if count > 0 {
				dense[n*pageSize+i] += uint64(count)
			}
		}
	}
	for index, times := range c.carry {
		dense[index] += times << 8
	}
}

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
	counts []uint64 // by bucket of two digits; nil if there is nothing
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
