package stats

import "time"

// LeastSilence is the shortest time without a request that counts as silence. Every database has shorter
// pauses.
const LeastSilence = leastNoise

// longAgainst is the factor by which a silence must exceed the latency.
const longAgainst = 10

// SilenceFrom returns the time without a request that counts as long, given the 99th percentile of the
// latency.
func SilenceFrom(p99 time.Duration) time.Duration { return max(LeastSilence, longAgainst*p99) }

// Silence is the time in which clients that waited for the database sent nothing. The requests that they
// would have sent are in no percentile (coordinated omission). Its lengths are exact to two cells; see
// silences. The zero Silence means none.
type Silence struct {
	Total   time.Duration
	Longest Gap
	Count   int
}

// silences counts, for each time cell, the requests that were sent, and those that began and stopped waiting
// for a reply. A cell is a millisecond wide in a run of up to 17 minutes; the width doubles each time the run
// is twice as long. It takes at most 8 MB.
type silences struct {
	cells   []request
	doubled uint  // how often the width was
	last    int64 // when the last request was sent
}

type request struct {
	sent    uint32
	waiting int32 // more wait at its end than at its beginning
}

func (s *silences) width() int64 { return firstWidth << s.doubled }

// cell returns the number of the cell of a time. Division by a constant is cheap.
func (s *silences) cell(at int64) int { return int(at / firstWidth >> s.doubled) }

// add counts one request with its intended start, its actual start and its end.
func (s *silences) add(due, sent, end int64) {
	for s.cell(end) >= maxCells {
		s.widen()
	}
	s.last = max(s.last, sent)
	last := s.cell(end)
	s.cells = grown(s.cells, last)
	began := min(max(s.cell(due), 0), last)
	s.cells[last].waiting--
	s.cells[began].waiting++
	if sent == due {
		s.cells[began].sent++
		return
	}
	s.cells[min(max(s.cell(sent), 0), last)].sent++
}

// widen merges pairs of adjacent cells.
func (s *silences) widen() {
	for i, half := range s.cells {
		if i%2 == 0 {
			s.cells[i/2] = half
			continue
		}
		s.cells[i/2].sent += half.sent
		s.cells[i/2].waiting += half.waiting
	}
	n := (len(s.cells) + 1) / 2
	clear(s.cells[n:])
	s.cells = s.cells[:n]
	s.doubled++
}

// LastSent returns when the last request was sent, relative to the run's start.
func (t *Timeline) LastSent() time.Duration { return time.Duration(t.requests.last) }

// Silence returns the silence of a closed loop in [from, to], counting periods of at least least. If the
// clients pause between transactions, only time in which one waits for a reply counts; otherwise they always
// wait.
func (t *Timeline) Silence(from, to, least time.Duration, pauses bool) (s Silence) {
	w := t.requests.width()
	var waiting int64
	begin := from
	end := func(at time.Duration) {
		if g := (Gap{From: begin, To: min(at, to)}); g.Length() >= least {
			s.Total += g.Length()
			s.Count++
			if g.Length() > s.Longest.Length() {
				s.Longest = g
			}
		}
	}
	for i, c := range t.requests.cells {
		at := time.Duration(int64(i) * w)
		if at >= to {
			break
		}
		before := waiting
		waiting += int64(c.waiting)
		next := at + time.Duration(w)
		if next <= from {
			continue
		}
		if c.sent > 0 || pauses && (before <= 0 || waiting <= 0) {
			end(at)
			begin = max(next, from)
		}
	}
	if known := time.Duration(int64(len(t.requests.cells)) * w); !pauses || known >= to {
		end(to)
	}
	return s
}
