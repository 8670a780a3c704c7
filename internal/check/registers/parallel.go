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

// finder gathers what one worker finds, so that all together have found the same, in the
// same order, as one would have.
type finder struct {
	k     *checker
	part  [2]int64 // of the work: a history and a block in it, or some records
	now   *partFindings
	parts []*partFindings // in which something was found
}

// partFindings are what was found in one part of the work: how often, and the first few.
type partFindings struct {
	part   [2]int64
	counts [kinds]int
	first  [kinds][]finding

	from, to             [kinds]int64 // when the first and the last happened; 0: not known
	ofLost, ofLostUpdate [kinds]int   // as check.Finding has them
}

// finding is one violation.
type finding struct {
	what  fact.Fact
	on    fact.Object        // empty: it shows in no record
	by    []history.ID       // the first of them shows it, and the others take part in it
	value *check.BrokenValue // nil: its bytes were not kept, or it is about no value
}

// shows returns a violation that transactions show.
func shows(what fact.Fact, by ...history.ID) finding {
	return finding{what: what, by: slices.DeleteFunc(by, func(id history.ID) bool { return id == 0 })}
}

// noRecord is the number of the record of a violation that shows in none.
const noRecord = ^uint64(0)

// begin begins with a part.
func (f *finder) begin(a, b int64) {
	if f.part != [2]int64{a, b} {
		f.part, f.now = [2]int64{a, b}, nil
	}
}

// find counts a violation that shows in record n. It makes the violation only if somebody needs it.
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

// at notes when the violation that was found last happened, on the clock of a group; never is not
// known, and neither is it if there are several histories, whose times are not compared.
func (f *finder) at(of kind, end int64) {
	if end <= 0 || end == never || len(f.k.in.History) > 1 {
		return
	}
	if from := &f.now.from[of]; *from == 0 || end < *from {
		*from = end
	}
	f.now.to[of] = max(f.now.to[of], end)
}

// because notes that a lost write, or a lost update, explains the violation that was found last.
func (f *finder) because(of kind, lost, update bool) {
	if lost {
		f.now.ofLost[of]++
	}
	if update {
		f.now.ofLostUpdate[of]++
	}
}

// settle adds to the checker's findings what workers found, in the order of the parts.
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

// batch is the writes of some records, which are fetched together as those of values are
// that were seen.
type batch struct {
	list    []*write
	ends    []int    // of those of each record
	finals  []*write // that made what the end state holds
	touched uint64
}

// fetch fetches the writes of the first keys, and returns of how many.
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

// of are the writes of one of the records.
func (b *batch) of(i int) []*write {
	if i == 0 {
		return b.list[:b.ends[0]]
	}
	return b.list[b.ends[i-1]:b.ends[i]]
}

// keysAtOnce is how many records are a part of the work.
const keysAtOnce = 2048

// eachKey has every record that was written judged, by all workers at once.
func (k *checker) eachKey(judge func(f *finder, o *ordering, key *register)) {
	var next atomic.Int64
	finders := make([]*finder, k.workers)
	for i := range finders {
		finders[i] = &finder{k: k}
	}
	if k.workers == 1 { // on this thread
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

// judgeKeys has those records judged that no other worker has taken; next is the first of them.
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
