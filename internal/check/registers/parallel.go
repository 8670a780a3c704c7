package registers

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// finder collects the findings of one worker. The findings of all workers together do not depend on the
// number of workers.
type finder struct {
	k     *checker
	part  [2]int64 // a history and a block in it, or a range of records
	now   *partFindings
	parts []*partFindings // parts with findings
}

// partFindings holds the number of findings of one part of the work, and the first few findings.
type partFindings struct {
	part   [2]int64
	counts [kinds]int
	first  [kinds][]finding

	from, to             [kinds]int64 // time of the first and the last one; 0: not known
	ofLost, ofLostUpdate [kinds]int   // as in check.Finding
}

// finding is one violation.
type finding struct {
	what  fact.Fact
	on    fact.Object        // empty: no record
	by    []history.ID       // the first transaction shows the violation, the others take part
	value *check.BrokenValue // nil: its bytes were not kept, or the violation is not about a value
}

// shows returns a violation that the given transactions show.
func shows(what fact.Fact, by ...history.ID) finding {
	return finding{what: what, by: slices.DeleteFunc(by, func(id history.ID) bool { return id == 0 })}
}

// noRecord is the record number of a violation that concerns no record.
const noRecord = ^uint64(0)

// begin starts a part.
func (f *finder) begin(a, b int64) {
	if f.part != [2]int64{a, b} {
		f.part, f.now = [2]int64{a, b}, nil
	}
}

// find counts a violation in record n. It calls make only if the violation is kept or reported.
func (f *finder) find(of kind, n uint64, make func() finding) {
	if f.now == nil {
		f.now = &partFindings{part: f.part}
		f.parts = append(f.parts, f.now)
	}
	f.now.counts[of]++
	full := len(f.now.first[of]) == check.Shown
	if full && f.k.in.OnViolation == nil {
		return
	}
	one := f.k.complete(n, make())
	if !full {
		f.now.first[of] = append(f.now.first[of], one)
	}
	f.k.report(of, one)
}

// at records the time of the last violation on the clock of a group. Never means unknown. Times of several
// histories are not compared, so they are unknown too.
func (f *finder) at(of kind, end int64) {
	if end <= 0 || end == never || len(f.k.in.History) > 1 {
		return
	}
	if from := &f.now.from[of]; *from == 0 || end < *from {
		*from = end
	}
	f.now.to[of] = max(f.now.to[of], end)
}

// because records that a lost write or a lost update explains the last violation.
func (f *finder) because(of kind, lost, update bool) {
	if lost {
		f.now.ofLost[of]++
	}
	if update {
		f.now.ofLostUpdate[of]++
	}
}

// settle merges the workers' findings into the checker's, in the order of the parts.
func (k *checker) settle(finders []*finder) {
	var parts []*partFindings
	for _, f := range finders {
		parts = append(parts, f.parts...)
	}
	slices.SortFunc(parts, func(a, b *partFindings) int {
		return cmp.Or(cmp.Compare(a.part[0], b.part[0]), cmp.Compare(a.part[1], b.part[1]))
	})
	for _, p := range parts {
		for of, list := range p.first {
			all := &k.found[of]
			for _, one := range list {
				if one.value != nil && !all.Full() {
					all.Broken = append(all.Broken, *one.value)
				}
				all.Add(one.what, one.on, one.by...)
			}
			all.Count += p.counts[of] - len(list)
			all.At(p.from[of])
			all.At(p.to[of])
			all.OfLost, all.OfLostUpdate = all.OfLost+p.ofLost[of], all.OfLostUpdate+p.ofLostUpdate[of]
		}
	}
}

// batch holds the writes of several records, which are loaded from memory together.
type batch struct {
	list    []*write
	ends    []int    // by record: end of its writes in list
	finals  []*write // by record: the write of the final value
	touched uint64
}

// fetch loads the writes of the first keys, and returns the number of these keys.
func (b *batch) fetch(k *checker, keys []register) (n int) {
	b.list, b.ends = b.list[:0], b.ends[:0]
	for n < len(keys) && len(b.list) < seenAtOnce {
		b.list = k.appendWrites(b.list, &keys[n])
		b.ends = append(b.ends, len(b.list))
		n++
	}
	b.finals = b.finals[:0]
	for i := range keys[:n] {
		if keys[i].final != 0 {
			b.finals = append(b.finals, k.nearly(keys[i].n, keys[i].final))
		}
	}
	b.touched += touch(b.list) + touch(b.finals)
	return n
}

// of returns the writes of record i.
func (b *batch) of(i int) []*write {
	if i == 0 {
		return b.list[:b.ends[0]]
	}
	return b.list[b.ends[i-1]:b.ends[i]]
}

// keysAtOnce is the number of records in one part of the work.
const keysAtOnce = 2048

// eachKey calls judge for every written record, from all workers.
func (k *checker) eachKey(judge func(f *finder, o *ordering, key *register)) {
	var next atomic.Int64
	finders := make([]*finder, k.workers)
	for i := range finders {
		finders[i] = &finder{k: k}
	}
	if k.workers == 1 { // on the caller's goroutine
		k.judgeKeys(finders[0], &next, judge)
	} else {
		var wait sync.WaitGroup
		for _, f := range finders {
			wait.Go(func() { k.judgeKeys(f, &next, judge) })
		}
		wait.Wait()
	}
	k.settle(finders)
}

// judgeKeys judges records that no other worker has taken; next is the first of them.
func (k *checker) judgeKeys(f *finder, next *atomic.Int64, judge func(f *finder, o *ordering, key *register)) {
	watch := check.Watch{Ctx: k.Watch.Ctx}
	var o ordering
	var writes batch
	for {
		from := next.Add(keysAtOnce) - keysAtOnce
		if from >= int64(len(k.keys)) {
			return
		}
		f.begin(from, 0)
		for keys := k.keys[from:min(from+keysAtOnce, int64(len(k.keys)))]; len(keys) > 0; {
			n := writes.fetch(k, keys)
			for i := range n {
				if watch.Ended() {
					return
				}
				o.list = writes.of(i)
				judge(f, &o, &keys[i])
			}
			keys = keys[n:]
		}
	}
}
