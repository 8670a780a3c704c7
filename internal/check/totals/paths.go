package totals

import (
	"math"
	"slices"
)

// What a search for a path came to.
type searched uint8

const (
	searchGaveUp searched = iota
	searchFound
	searchFailed // there is none
)

// search looks for a path through all edges of one account, in an order that agrees
// with real time: an edge can be next only if none of those that are left had ended
// before it began (Wing and Gong, Testing and Verifying Concurrent Objects, JPDC 17,
// 1993). What is left is nearly always one edge or two. The edges are in the order of
// their ends.
type search struct {
	list    []transition
	perhaps bool  // what may have ended before an edge began counts as if it had
	widest  int64 // how far two times may be wrong beside each other
	at      int64 // the balance
	used    []bool
	first   int               // the first edge that is not used: the one that ended first
	from    map[int64][]int32 // the edges that leave a balance
	blind   []int32           // those of which nobody knows which balance they left
	path    []int32           // the edges that were taken
	tried   []int             // for each step how many of its choices have been tried
	steps   int
}

// searchSteps bounds a search, for each edge and for all.
const (
	searchSteps     = 64
	searchStepsOnce = 10_000
)

func (s *search) run() searched {
	if len(s.list) == 1 && (!s.list[0].known || s.list[0].before == s.at) {
		return searchFound
	}
	s.widest = s.uncertain()
	s.used, s.from = make([]bool, len(s.list)), make(map[int64][]int32, len(s.list))
	for i := range s.list {
		if e := &s.list[i]; e.known {
			s.from[e.before] = append(s.from[e.before], int32(i))
		} else {
			s.blind = append(s.blind, int32(i))
		}
	}
	tried := 0
	for len(s.path) < len(s.list) {
		if s.steps++; s.steps > searchSteps*len(s.list)+searchStepsOnce {
			return searchGaveUp
		}
		next, choice := s.next(tried)
		if next >= 0 {
			s.path, s.tried = append(s.path, next), append(s.tried, choice+1)
			s.take(next)
			tried = 0
			continue
		}
		if len(s.path) == 0 {
			return searchFailed
		}
		tried = s.back()
	}
	return searchFound
}

// next returns an edge that can be next, and the number of the choice that it is, from
// the given one on; -1 if there is none.
func (s *search) next(choice int) (next int32, number int) {
	left := s.from[s.at]
	for ; choice < len(left)+len(s.blind); choice++ {
		i := int32(0)
		if choice < len(left) {
			i = left[choice]
		} else {
			i = s.blind[choice-len(left)]
		}
		if !s.used[i] && !s.held(int(i)) {
			return i, choice
		}
	}
	return -1, 0
}

// held says that an edge that is left had ended before edge i began.
func (s *search) held(i int) bool {
	e := &s.list[i]
	for j := s.first; j < len(s.list) && e.begin != math.MinInt64; j++ {
		other := &s.list[j]
		if other.end == math.MaxInt64 || other.end >= e.begin+s.widest {
			return false
		}
		if !s.used[j] && j != i && other.ended(e, s.perhaps) {
			return true
		}
	}
	return false
}

// uncertain is how far the times of two edges may be wrong beside each other, at most.
func (s *search) uncertain() (widest int64) {
	for i := range s.list {
		widest = max(widest, 2*s.list[i].error)
	}
	return widest
}

func (s *search) take(i int32) {
	s.used[i] = true
	s.at += s.list[i].amount
	for s.first < len(s.list)-1 && s.used[s.first] {
		s.first++
	}
}

// back takes the last step back and returns how many of its choices have been tried.
func (s *search) back() int {
	last := len(s.path) - 1
	i, tried := s.path[last], s.tried[last]
	s.path, s.tried = s.path[:last], s.tried[:last]
	s.used[i] = false
	s.at -= s.list[i].amount
	s.first = min(s.first, int(i))
	return tried
}

// eulerian says whether edges of which all were read form a path from a balance: each
// balance is left as often as it is reached, but for the first and the last one, and
// every edge hangs together with the first balance. Where they do not, odd is an edge
// that shows it.
func eulerian(list []transition, opening int64) (odd transition, ok bool) {
	degree := map[int64]int{} // of the balances: how much more often each is left than reached
	joined := map[int64]int64{}
	root := func(v int64) int64 { // of the balances that hang together
		for {
			next, ok := joined[v]
			if !ok {
				return v
			}
			if after, ok := joined[next]; ok {
				joined[v] = after
			}
			v = next
		}
	}
	balance := opening
	for i := range list {
		from, to := list[i].before, list[i].before+list[i].amount
		balance += list[i].amount
		degree[from]++
		degree[to]--
		if a, b := root(from), root(to); a != b {
			joined[a] = b
		}
	}
	degree[opening]-- // reached by the load
	degree[balance]++
	wrong := slices.IndexFunc(list, func(e transition) bool {
		return degree[e.before] != 0 || degree[e.before+e.amount] != 0 || root(e.before) != root(opening)
	})
	if wrong < 0 {
		return transition{}, true
	}
	// The one that left a balance more often than it was reached shows most.
	if left := slices.IndexFunc(list, func(e transition) bool { return degree[e.before] > 0 }); left >= 0 {
		wrong = left
	}
	return list[wrong], false
}
