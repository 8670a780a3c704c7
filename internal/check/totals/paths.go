package totals

import (
	"math"
	"slices"
)

// searched is the result of a search for a path.
type searched uint8

const (
	searchGaveUp searched = iota
	searchFound
	searchFailed // no path exists
)

// search looks for a path through all edges of one account in an order that agrees with real time. An edge
// can be next only if no remaining edge ended before it began (Wing and Gong, Testing and Verifying
// Concurrent Objects, JPDC 17, 1993). Usually one or two edges are possible. The edges are sorted by end.
type search struct {
	list    []transition
	perhaps bool  // edges that possibly ended before another began count as having done so
	widest  int64 // the maximal error between two times
	at      int64 // the current balance
	used    []bool
	first   int               // the first unused edge, which ended first
	from    map[int64][]int32 // edges by the balance that they leave
	blind   []int32           // edges whose balance before is not known
	path    []int32           // the edges used so far
	tried   []int             // by step: number of choices tried
	steps   int
}

// searchSteps limits the steps of a search for each edge, and searchStepsOnce the steps of the whole search.
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

// next returns an edge that can be next and the index of the choice, starting with the given choice. It
// returns -1 if there is none.
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

// held reports whether a remaining edge ended before edge i began.
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

// uncertain returns the maximal error between the times of two edges.
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

// back undoes the last step and returns the number of its choices that were tried.
func (s *search) back() int {
	last := len(s.path) - 1
	i, tried := s.path[last], s.tried[last]
	s.path, s.tried = s.path[:last], s.tried[:last]
	s.used[i] = false
	s.at -= s.list[i].amount
	s.first = min(s.first, int(i))
	return tried
}

// eulerian reports whether edges with known balances form a path from the opening balance. Each balance except for the
// first and the last must be left as often as it is reached. Every edge must be connected to the first balance.
// Otherwise, odd is an edge that shows the error.
func eulerian(list []transition, opening int64) (odd transition, ok bool) {
	degree := map[int64]int{} // by balance: number of times left minus number of times reached
	joined := map[int64]int64{}
	root := func(v int64) int64 { // union-find of connected balances
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
	degree[opening]-- // the load reaches it
	degree[balance]++
	wrong := slices.IndexFunc(list, func(e transition) bool {
		return degree[e.before] != 0 || degree[e.before+e.amount] != 0 || root(e.before) != root(opening)
	})
	if wrong < 0 {
		return transition{}, true
	}
	// An edge that leaves a balance more often than it was reached is the best evidence.
	if left := slices.IndexFunc(list, func(e transition) bool { return degree[e.before] > 0 }); left >= 0 {
		wrong = left
	}
	return list[wrong], false
}
