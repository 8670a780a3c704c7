package nemesis

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// timing holds when a fault begins and ends. Times count from the start of the run. Zero means that the text
// does not have it.
type timing struct {
	at     time.Duration // once, at this time
	every  time.Duration // at this time and all its multiples
	lasts  time.Duration // from the injection to the heal: "for"
	jitter time.Duration // each time is put off by less than this, by chance
}

// defaultAt is the time of a fault without at and every. It leaves time to measure the undisturbed
// database.
const defaultAt = 5 * time.Second

// leastEvery keeps a repeated fault from becoming a flood.
const leastEvery = 100 * time.Millisecond

func scheduleWords() []string { return []string{"at", "every", "for", "jitter"} }

// times returns the times in the order of scheduleWords.
func (s *timing) times() []*time.Duration {
	return []*time.Duration{&s.at, &s.every, &s.lasts, &s.jitter}
}

// parse reads the words of the times in any order, each at most once.
func (s *timing) parse(r *reader) (err error) {
	for {
		word := r.peek()
		i := slices.Index(scheduleWords(), word)
		if i < 0 {
			return nil
		}
		to, least := s.times()[i], time.Millisecond
		if *to != 0 {
			return fmt.Errorf("%q stands twice", word)
		}
		if to == &s.every {
			least = leastEvery
		}
		r.take()
		if *to, err = r.span(word, least); err != nil {
			return err
		}
	}
}

func (s timing) String() (text string) {
	for i, d := range s.times() {
		if *d != 0 {
			text += " " + scheduleWords()[i] + " " + short(*d)
		}
	}
	return text
}

// First returns the time of the first injection, since the start of the run.
func (f Fault) First() time.Duration {
	switch {
	case f.when.every != 0:
		return f.when.every
	case f.when.at != 0:
		return f.when.at
	}
	return defaultAt
}

// Done returns the latest time at which the fault was injected so many times and must be healed. A
// fault that does not repeat is injected once.
func (f Fault) Done(times int) time.Duration {
	if f.when.every == 0 {
		times = 1
	}
	return time.Duration(times)*f.First() + f.when.jitter + f.when.lasts
}

func (s timing) check() error {
	switch {
	case s.at != 0 && s.every != 0:
		return errors.New("it says both at and every: at is for once, every for again and again")
	case s.every != 0 && s.lasts != 0 && s.lasts >= s.every:
		return fmt.Errorf("it comes every %s and lasts for %s: it must be healed before it comes again, so make every the longer one", short(s.every), short(s.lasts))
	case s.every != 0 && s.jitter != 0 && s.lasts+s.jitter >= s.every:
		return fmt.Errorf("it comes every %s, lasts for %s and may be late by %s: together the last two must be shorter than every", short(s.every), short(s.lasts), short(s.jitter))
	}
	return nil
}

// due returns the time of the k-th injection, from 0. ok is false if there is none. It takes the
// same random numbers for every k.
func (f Fault) due(k int, rng *rand.Rand) (at time.Duration, ok bool) {
	if f.when.jitter > 0 {
		at = time.Duration(rng.Int64N(int64(f.when.jitter)))
	}
	return at + time.Duration(k+1)*f.First(), k == 0 || f.when.every != 0
}

// duration returns how long a fault that must be healed lasts; zero: until the load phase ends. A
// fault that repeats is healed half way to the next at the latest, because a node that is down
// cannot be ended again.
func (s timing) duration() time.Duration {
	if s.lasts == 0 && s.every != 0 {
		return (s.every - s.jitter) / 2
	}
	return s.lasts
}

// Due is an injection that the seed fixes before the run. The nodes of a target by chance or by role
// are known only when it is due.
type Due struct {
	At    time.Duration // since the start of the run
	Heal  time.Duration // the same; 0: at the end of the load phase, or there is nothing to heal
	Fault string
}

// Due returns the injections before a time in the order of their times, at most so many of each
// line. A late injection may be left out.
func (s Script) Due(seed uint64, before time.Duration, most int) (list []Due) {
	for i, f := range s {
		chance := f.chance(seed, i+1)
		for k := range most {
			at, e, ok := f.next(k, chance())
			if !ok || at >= before {
				break
			}
			d := Due{At: at, Fault: e.String()}
			if lasts := f.when.duration(); lasts > 0 && e.heals() != healNever && at+lasts < before {
				d.Heal = at + lasts
			}
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b Due) int { return cmp.Compare(a.At, b.At) })
	return list
}

// chance returns a function that returns the random numbers of one injection after the other, for
// the line with that number. Earlier injections do not change them.
func (f Fault) chance(seed uint64, number int) func() *rand.Rand {
	const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio: spreads small numbers
	rng := rand.New(rand.NewPCG(seed, golden*uint64(number)))
	return func() *rand.Rand { return rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())) }
}

// next returns the k-th injection, from 0. ok is false if there is none.
func (f Fault) next(k int, rng *rand.Rand) (due time.Duration, e effect, ok bool) {
	if due, ok = f.due(k, rng); !ok {
		return due, e, false
	}
	e = f.effects[k%len(f.effects)]
	if f.order == mix {
		e = f.effects[rng.IntN(len(f.effects))]
	}
	return due, e, true
}
