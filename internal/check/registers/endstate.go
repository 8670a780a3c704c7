package registers

import (
	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// window is the number of records of the load that one pass looks for, with one bit each.
const window = 1 << 33

// readEnd checks every record of the end state against its possible writers, and checks that no record of the
// load is missing.
func (k *checker) readEnd() (problem error) {
	if k.in.End == nil {
		return nil
	}
	for _, text := range k.in.End.Unexpected() {
		k.find(unexpected, noRecord, func() finding { return shows(fact.RegisterUnexpected{Text: text}) })
	}
	loaded := uint64(0)
	for from := uint64(0); from == 0 || from < k.in.Records && !k.found[endMissing].Full(); from += window {
		there := make([]uint64, (min(window, k.in.Records-from)+63)/64)
		found := make([]history.Object, 0, seenAtOnce)
		for a := range check.Each(&k.Watch, "the end state", k.in.End.Objects(), &problem) {
			if k.loaded(a.N) && a.N-from < window {
				there[(a.N-from)/64] |= 1 << ((a.N - from) % 64)
				loaded++
			}
			if from > 0 {
				continue
			}
			if found = append(found, a); len(found) == seenAtOnce {
				k.judgeEnds(found)
				found = found[:0]
			}
		}
		k.judgeEnds(found)
		if problem != nil {
			return problem
		}
		for n := from; n < min(from+window, k.in.Records) && !k.found[endMissing].Full(); n++ {
			if there[(n-from)/64]&(1<<((n-from)%64)) == 0 {
				k.find(endMissing, n, func() finding { return shows(fact.RegisterEndMissing{Object: k.Object(n)}) })
			}
			if k.Watch.Ended() {
				return k.Watch.Err
			}
		}
	}
	if loaded > k.in.Records {
		k.find(endRepeated, noRecord, func() finding {
			return shows(fact.RegisterEndRepeated{Found: loaded, Loaded: k.in.Records})
		})
	}
	return nil
}

// judgeEnds judges several records together, to overlap their memory accesses.
func (k *checker) judgeEnds(found []history.Object) {
	var last, first [seenAtOnce]*write
	for i := range found {
		first[i] = k.nearly(found[i].N, 0)
		if found[i].Writer != 0 {
			last[i] = k.nearly(found[i].N, found[i].Writer)
		}
	}
	k.touched += touch(last[:len(found)]) + touch(first[:len(found)])
	for i := range found {
		k.ends++
		a := &found[i]
		if first[i] == nil && a.Writer == 0 && a.State == history.Whole && a.N < uint64(len(k.index.loaded)) && k.hasLength(a.N, 0, a.Value) {
			continue // an unchanged record of the load
		}
		k.judgeEnd(a)
	}
}

// judgeEnd reports the errors of one record that do not depend on the order of the writes.
func (k *checker) judgeEnd(a *history.Object) {
	key := k.keyOf(a.N)
	if a.State != history.Whole {
		if key != nil {
			key.state = history.Broken
		}
		k.find(endDamaged, a.N, func() finding {
			return shows(fact.RegisterEndDamaged{Object: k.Object(a.N), Bytes: a.Value})
		})
		return
	}
	who, w := k.writerOf(a.N, a.Writer, k.foreign)
	if key != nil {
		key.state, key.final = history.Whole, a.Writer
	}
	switch written, known := k.lengthOf(a.N, a.Writer); {
	case who == nobody:
		k.find(endUnwritten, a.N, func() finding {
			return shows(fact.RegisterEndUnwritten{Object: k.Object(a.N), Writer: fact.Member{ID: a.Writer}}, a.Writer)
		})
	case who == sent && w.refused():
		k.find(endRefused, a.N, func() finding {
			return shows(fact.RegisterEndRefused{Object: k.Object(a.N), Writer: k.writer(w), Outcome: w.outcome}, a.Writer)
		})
	case known && written != a.Value:
		k.find(endLength, a.N, func() finding {
			return shows(fact.RegisterEndLength{Object: k.Object(a.N), Writer: k.writerAt(a.N, a.Writer), Found: a.Value, Written: written}, a.Writer)
		})
	}
}

// findVanished looks for acknowledged writes that are missing from the end state although no later write can
// have replaced them: the final value was certainly applied before they began. For each record it reports the
// one that began last.
func (k *checker) findVanished(f *finder, o *ordering, key *register, g int) {
	if k.in.End == nil {
		return
	}
	known := int64(always) // when the final value had certainly been applied
	switch {
	case key.state == history.Broken || key.state == 0 && k.loaded(key.n):
		return // reported already
	case key.state == history.Whole && key.final != 0:
		w := k.writeOn(key.n, key.final)
		if w == nil || w.refused() {
			return // reported already, or from a run that was not given
		}
		known = k.known(w, g)
	}
	var last *write
	count := 0
	for _, w := range o.list {
		if w.id == 0 || w.outcome != history.Committed || !k.timed(w, g) || w.try <= known {
			continue
		}
		w.flags |= gone
		if count++; last == nil || w.try > last.try {
			last = w
		}
	}
	if last == nil {
		return
	}
	f.find(vanished, last.n, func() finding {
		what := fact.RegisterEndLost{Object: k.Object(last.n), Absent: key.state == 0, Lost: k.writer(last), Writes: count}
		if !what.Absent {
			what.Holds = k.writerAt(key.n, key.final)
		}
		return shows(what, last.id)
	})
	f.at(vanished, last.end)
}
