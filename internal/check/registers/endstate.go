package registers

import (
	"fmt"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// readEnd holds every record of the end state against who can have written it.
func (k *checker) readEnd() (problem error) {
	if k.in.End == nil {
		return nil
	}
	for _, text := range k.in.End.Unexpected() {
		k.ghosts.add(k, check.NoGhost, "", 0, ^uint64(0), func() string { return "the end state has " + text })
	}
	loaded, identity := uint64(0), uint64(0)
	for a := range check.Each(&k.watch, "the end state", k.in.End.Objects(), &problem) {
		k.ends++
		if k.loaded(a.N) {
			loaded++
			identity += check.Mix(a.N + 1)
		}
		k.judgeEnd(a)
	}
	if problem != nil {
		return problem
	}
	want := uint64(0)
	for n := range k.in.Records {
		want += check.Mix(n + 1)
		if k.watch.Ended() {
			return k.watch.Err
		}
	}
	if loaded != k.in.Records || identity != want {
		return k.findMissing(loaded)
	}
	return nil
}

// judgeEnd says what is wrong with one record, whatever order the writes had.
func (k *checker) judgeEnd(a history.Object) {
	if a.State != history.Whole {
		if key := k.keyOf(a.N); key != nil {
			key.state = history.Broken
		}
		k.vanished.add(k, check.Durable, "", 0, a.N, func() string {
			return fmt.Sprintf("in the end %s holds %d bytes that are not as anybody wrote them", k.in.Name(a.N), a.Value)
		})
		return
	}
	who, key, w := k.writerOf(a.N, a.Writer)
	if key != nil {
		key.state, key.final = history.Whole, a.Writer
	}
	switch {
	case who == nobody:
		k.ghosts.add(k, check.NoGhost, "", a.Writer, a.N, func() string {
			return fmt.Sprintf("in the end %s holds a value of %s, which never wrote there", k.in.Name(a.N), k.writer(a.Writer))
		})
	case who == sent && w.refused():
		k.ghosts.add(k, check.NoGhost, "", a.Writer, a.N, func() string {
			return fmt.Sprintf("in the end %s holds the value of %v, which was reported as not applied", k.in.Name(a.N), a.Writer)
		})
	}
}

// window is how many records findMissing looks at in one go, a bit each.
const window = 1 << 30

// findMissing names the first records of the load that the end state lacks.
func (k *checker) findMissing(found uint64) (problem error) {
	for from := uint64(0); from < k.in.Records && k.vanished.Count < check.Shown; from += window {
		there := make([]uint64, (min(window, k.in.Records-from)+63)/64)
		for a := range check.Each(&k.watch, "the end state", k.in.End.Objects(), &problem) {
			if k.loaded(a.N) && a.N-from < window {
				there[(a.N-from)/64] |= 1 << ((a.N - from) % 64)
			}
		}
		if problem != nil {
			return problem
		}
		for n := from; n < min(from+window, k.in.Records) && k.vanished.Count < check.Shown; n++ {
			if there[(n-from)/64]&(1<<((n-from)%64)) == 0 {
				k.vanished.add(k, check.Durable, "", 0, n, func() string {
					return fmt.Sprintf("in the end there is no %s, which the load had made", k.in.Name(n))
				})
			}
		}
	}
	if found > k.in.Records {
		k.vanished.add(k, check.Durable, "", 0, 0, func() string {
			return fmt.Sprintf("in the end there are %d records of the load, which made %d", found, k.in.Records)
		})
	}
	return nil
}

// findVanished looks for acknowledged writes that are not in the end state although
// nothing can have come after them: what is there in their place had surely been
// applied before they began.
func (k *checker) findVanished(g int) {
	if k.in.End == nil || len(k.in.History) == 0 {
		return
	}
	for i := range k.keys {
		key := &k.keys[i]
		if k.watch.Ended() {
			return
		}
		list := k.of(key)
		known := int64(always) // when what is there had surely been applied
		switch {
		case key.state == history.Broken || key.state == 0 && k.loaded(list[0].n):
			continue // told already
		case key.state == history.Whole && key.final != 0:
			w := k.writeIn(key, key.final)
			if w == nil || w.refused() {
				continue // told already, or of a run that is not given
			}
			known = w.readsEnd
			if k.clocks[w.source].group == g {
				known = w.known()
			}
		}
		k.judgeFinal(key, list, g, known)
	}
}

// judgeFinal tells the write that began last of those that were acknowledged and lost.
func (k *checker) judgeFinal(key *register, list []write, g int, known int64) {
	var lost *write
	count := 0
	for i := range list {
		w := &list[i]
		if w.id == 0 || w.outcome != history.Committed || k.clocks[w.source].group != g || w.try <= known {
			continue
		}
		if count++; lost == nil || w.try > lost.try {
			lost = w
		}
	}
	if lost == nil {
		return
	}
	k.vanished.add(k, check.Durable, "", lost.id, lost.n, func() string {
		if key.state == 0 {
			return fmt.Sprintf("in the end there is no %s, and %v, which wrote it, had been acknowledged", k.in.Name(lost.n), lost.id)
		}
		return fmt.Sprintf("in the end %s holds the value of %s, and %v, which began after that was applied, had been acknowledged: %s lost",
			k.in.Name(lost.n), k.writer(key.final), lost.id, check.Plural(uint64(count), "write"))
	})
}
