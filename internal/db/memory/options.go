package memory

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"stroppy/internal/db/address"
)

type options struct {
	mutant         string // empty: healthy
	rate           float64
	seed           uint64
	n              int
	unknown, abort float64
}

// maxN bounds the commits that the mutant false-ack-on-crash keeps.
const maxN = 10_000

// parse reads a URL. No error repeats the text between memory: and the question mark, or parameters that cannot be
// read. It may be a password that was meant for another database.
func parse(text string) (options, error) {
	o := options{rate: 0.001, seed: 1, n: 5}
	rest, ok := strings.CutPrefix(text, "memory:")
	if !ok {
		return o, errors.New("a URL that does not begin with memory: belongs to another database")
	}
	path, query, _ := strings.Cut(rest, "?")
	if path != "" {
		return o, errors.New("only ? and parameters may follow memory:, as in memory:?mutant=NAME&rate=R")
	}
	style := address.Style{Product: "memory:"}
	err := style.Read(query, address.Options{
		"mutant":  o.setMutant,
		"rate":    address.Share(&o.rate),
		"seed":    address.Number(&o.seed, "whole number", 0, math.MaxUint64),
		"n":       address.Number(&o.n, "whole number", 1, maxN),
		"unknown": address.Share(&o.unknown),
		"abort":   address.Share(&o.abort),
	})
	return o, err
}

func (o *options) setMutant(name string) error {
	var known []string
	for _, m := range Mutants() {
		known = append(known, m.Name)
	}
	if !slices.Contains(known, name) {
		return fmt.Errorf("is not a mutant: %s", address.Known(name, "all are", known))
	}
	o.mutant = name
	return nil
}
