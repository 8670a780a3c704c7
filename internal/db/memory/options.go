package memory

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"

	"stroppy/internal/db"
)

// options are the parameters of a URL.
type options struct {
	mutant         string // empty: healthy
	rate           float64
	seed           uint64
	n              int
	unknown, abort float64
}

// maxN bounds what the mutant false-ack-on-crash keeps of the past.
const maxN = 10_000

// parse reads a URL. No error repeats what stands between memory: and the question
// mark, or parameters that cannot be read: it may be a password that was meant for
// another database.
func parse(text string) (options, error) {
	o, err := parseOptions(text)
	if err != nil {
		err = &db.Error{Class: db.Fatal, Code: "url", Op: "read the memory: URL", Err: err}
	}
	return o, err
}

func parseOptions(text string) (options, error) {
	o := options{rate: 0.001, seed: 1, n: 5}
	rest, ok := strings.CutPrefix(text, "memory:")
	if !ok {
		return o, errors.New("an address that does not begin with memory: is of another database")
	}
	path, raw, _ := strings.Cut(rest, "?")
	if path != "" {
		return o, errors.New("nothing but ? and parameters may follow memory:, as in memory:?mutant=NAME&rate=R")
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return o, errors.New("the parameters after ? cannot be read: write name=value&name=value, with a % in a value as %25")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(values[name]) > 1 {
			return o, fmt.Errorf("the parameter %s is given %d times: give it once", name, len(values[name]))
		}
		if err := o.set(name, values[name][0]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *options) set(name, value string) (err error) {
	switch name {
	case "mutant":
		var known []string
		for _, m := range Mutants() {
			known = append(known, m.Name)
		}
		if !slices.Contains(known, value) {
			return unknownName("mutant", value, known)
		}
		o.mutant = value
	case "rate":
		o.rate, err = share(name, value)
	case "unknown":
		o.unknown, err = share(name, value)
	case "abort":
		o.abort, err = share(name, value)
	case "seed":
		if o.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			err = fmt.Errorf("seed=%q is no whole number from 0 to 18446744073709551615", value)
		}
	case "n":
		if o.n, err = strconv.Atoi(value); err != nil || o.n < 1 || o.n > maxN {
			err = fmt.Errorf("n=%q is no whole number from 1 to %d", value, maxN)
		}
	default:
		err = unknownName("parameter", name, []string{"mutant", "rate", "seed", "n", "unknown", "abort"})
	}
	return err
}

func share(name, value string) (float64, error) {
	r, err := strconv.ParseFloat(value, 64)
	if err != nil || !(r >= 0 && r <= 1) {
		return 0, fmt.Errorf("%s=%q is no number from 0 to 1", name, value)
	}
	return r, nil
}

func unknownName(what, name string, known []string) error {
	nearest := slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(name, a) - levenshtein.ComputeDistance(name, b)
	})
	return fmt.Errorf("there is no %s %q: the nearest is %s, and all are %s", what, name, nearest, strings.Join(known, ", "))
}
