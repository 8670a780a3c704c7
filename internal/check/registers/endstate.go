package registers

import (
	"stroppy/internal/check"
	"stroppy/internal/history"
)

// window is how many records of the load are looked for in one pass, a bit each.
const window = 1 << 33

// readEnd checks every record of the end state against who can have written it, and that
// it has all records of the load.
func (k *checker) readEnd() (problem error) {
	if k.in.End == nil {
		return nil
	}
	for _, text := range k.in.End.Unexpected() {
		k.find(ghosts, ^uint64(0), nil, "the end state has %s", text)
	}
	loaded := uint64(0)
	for from := uint64(0); from == 0 || from < k.in.Records && !k.found[vanished].Full(); from += window {
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
		for n := from; n < min(from+window, k.in.Records) && !k.found[vanished].Full(); n++ {
			if there[(n-from)/64]&(1<<((n-from)%64)) == 0 {
				k.find(vanished, n, nil, "in the end there is no %v, which the load had made", k.name(n))
			}
			if k.Watch.Ended() {
				return k.Watch.Err
			}
		}
	}
	if loaded > k.in.Records {
		k.find(vanished, 0, nil, "in the end there are %d records of the load, which made %d", loaded, k.in.Records)
	}
	return nil
}

// judgeEnds looks at some records together, as viewers do at what was seen.
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
		if first[i] == nil && a.Writer == 0 && a.State == history.Whole && a.N < uint64(len(k.index.loaded)) {
			continue // as the load made it, and nobody wrote it
		}
		k.judgeEnd(a)
	}
}

// judgeEnd says what is wrong with one record, whatever order the writes had.
func (k *checker) judgeEnd(a *history.Object) {
	key := k.keyOf(a.N)
	if a.State != history.Whole {
		if key != nil {
			key.state = history.Broken
		}
		k.find(vanished, a.N, nil, "in the end %v holds %d bytes that are not as anybody wrote them", k.name(a.N), a.Value)
		return
	}
	who, w := k.writerOf(a.N, a.Writer, k.foreign)
	if key != nil {
		key.state, key.final = history.Whole, a.Writer
	}
	switch by := []history.ID{a.Writer}; {
	case who == nobody:
		k.find(ghosts, a.N, by, "in the end %v holds a value of %v, which never wrote there", k.name(a.N), writer(a.Writer))
	case who == sent && w.refused():
		k.find(ghosts, a.N, by, "in the end %v holds the value of %v, which was reported as not applied", k.name(a.N), a.Writer)
	}
}

// findVanished looks for acknowledged writes that are not in the end state although
// nothing can have come after them: what is there in their place had surely been
// applied before they began. Of those of a record it reports the one that began last.
func (k *checker) findVanished(f *finder, o *ordering, key *register, g int) {
	if k.in.End == nil {
		return
	}
	known := int64(always) // when what is there had surely been applied
	switch {
	case key.state == history.Broken || key.state == 0 && k.loaded(key.n):
		return // reported already
	case key.state == history.Whole && key.final != 0:
		w := k.writeOn(key.n, key.final)
		if w == nil || w.refused() {
			return // reported already, or of a run that is not given
		}
		known = k.known(w, g)
	}
	var last *write
	count := 0
	for _, w := range o.list {
		if w.id == 0 || w.outcome != history.Committed || !k.timed(w, g) || w.try <= known {
			continue
		}
		if count++; last == nil || w.try > last.try {
			last = w
		}
	}
	switch {
	case last == nil:
	case key.state == 0:
		f.find(vanished, last.n, []history.ID{last.id}, "in the end there is no %v, and %v, which wrote it, had been acknowledged", k.name(last.n), last.id)
	default:
		f.find(vanished, last.n, []history.ID{last.id}, "in the end %v holds the value of %v, and %v, which began after that was applied, had been acknowledged: %s lost",
			k.name(last.n), writer(key.final), last.id, check.Plural(count, "write"))
	}
}
