package nemesis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fault is one line of a script: its effects and its schedule. Parse returns it.
type Fault struct {
	order   string   // mix, cycle, or empty for a single effect
	effects []effect // those that order chooses from
	when    timing
}

// mix takes one of its effects by chance each time, and cycle takes the next one.
const (
	mix   = "mix"
	cycle = "cycle"
)

// Script is all faults of one run. Its lines run concurrently.
type Script []Fault

// Fits returns an error if no cluster with so many nodes, from n0 on, can suffer a fault of the script.
func (s Script) Fits(nodes int) error {
	var names []string
	for number := range nodes {
		names = append(names, nodeName(number))
	}
	return s.each(func(e effect) error { return e.fits(names, s.grows()) })
}

// possible returns an error that names the first fault that this cluster can never suffer.
func (s Script) possible(on *state) error {
	return s.each(func(e effect) error { return e.possible(on) })
}

// each returns an error that names the first fault with a refusal.
func (s Script) each(refusal func(effect) error) error {
	for _, f := range s {
		for _, e := range f.effects {
			if err := refusal(e); err != nil {
				return fmt.Errorf("the fault %q cannot be done to this cluster: %w", e, err)
			}
		}
	}
	return nil
}

// String returns the text that Parse reads as this fault.
func (f Fault) String() string {
	texts := make([]string, len(f.effects))
	for i, e := range f.effects {
		texts[i] = e.String()
	}
	if f.order == "" {
		return strings.Join(texts, "") + f.when.String()
	}
	return f.order + f.when.String() + ": " + strings.Join(texts, " | ")
}

// Has reports whether a text is the text of one of the fault's effects, without the schedule.
func (f Fault) Has(text string) bool {
	return slices.ContainsFunc(f.effects, func(e effect) bool { return e.String() == text })
}

func (f Fault) check() error {
	if err := f.when.check(); err != nil {
		return err
	}
	if f.order == cycle && f.when.every == 0 {
		return fmt.Errorf("cycle needs every, for it takes the next of its faults each time, as in %s", listExample(cycle))
	}
	if f.when.lasts != 0 && !slices.ContainsFunc(f.effects, func(e effect) bool { return e.heals() != healNever }) {
		return errors.New("it says for, but there is nothing to heal: leave for out")
	}
	return nil
}

// NeedsClock reports whether the cluster must be started with clocks that can be changed.
func (s Script) NeedsClock() bool { return s.has(func(k *kind) bool { return k.needsClock }) }

// NeedsLayer reports whether the cluster must be started with fault file systems under its data.
func (s Script) NeedsLayer() bool { return s.has(func(k *kind) bool { return k.needsLayer }) }

// grows reports whether the script adds nodes.
func (s Script) grows() bool { return s.has(func(k *kind) bool { return k.word == addWord }) }

func (s Script) has(so func(*kind) bool) bool {
	return slices.ContainsFunc(s, func(f Fault) bool {
		return slices.ContainsFunc(f.effects, func(e effect) bool { return so(e.kind()) })
	})
}
