package address

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/spelling"
)

// Option parses the value of a parameter. Its error continues the sentence "name=value".
type Option func(value string) error

// Options holds the parameters that a URL may have.
type Options map[string]Option

// Read parses the text after the question mark. Names must be known and occur at most once.
func (s *Style) Read(query string, options Options) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return s.Errorf("its query is malformed: write name=value&name=value, with a %% in a value as %%25")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		read, known := options[name]
		switch given := values[name]; {
		case !known:
			return s.Errorf("no parameter is called %q: %s", name, Known(name, "the known ones are", slices.Sorted(maps.Keys(options))))
		case len(given) > 1:
			return s.Errorf("the parameter %s is given %d times: give it once", name, len(given))
		default:
			if err := read(given[0]); err != nil {
				return s.Errorf("%s=%s %w", name, given[0], err)
			}
		}
	}
	return nil
}

// Known returns a clause with the known names, for an unknown one. are begins the list.
func Known(name, are string, known []string) string {
	all := are + " " + strings.Join(known, ", ")
	if near, found := spelling.Near(name, known); found {
		return "the nearest is " + near + ", and " + all
	}
	return all
}

// Text returns an option for any value.
func Text(to *string) Option {
	return func(value string) error {
		*to = value
		return nil
	}
}

// Time returns an option for a time from least to one hour.
func Time(to *time.Duration, least time.Duration) Option {
	const most = time.Hour
	return func(value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d < least || d > most {
			return fmt.Errorf("is no time from %v to %v, such as 3s", least, most)
		}
		*to = d
		return nil
	}
}

// Choice returns an option for one of two words; no is the default.
func Choice(to *bool, no, yes string) Option {
	return func(value string) error {
		if value != no && value != yes {
			return fmt.Errorf("is neither %s, the default, nor %s", no, yes)
		}
		*to = value == yes
		return nil
	}
}

// Word returns an option for one of the words in lower or upper case.
func Word(to *string, words ...string) Option {
	return func(value string) error {
		if *to = strings.ToLower(value); !slices.Contains(words, *to) {
			return fmt.Errorf("is not known: take one of %s", strings.Join(words, ", "))
		}
		return nil
	}
}

// Number returns an option for an integer from least to most; what names the thing that it counts.
func Number[T int | int64 | uint64](to *T, what string, least, most T) Option {
	return func(value string) error {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || n < uint64(least) || n > uint64(most) {
			return fmt.Errorf("is no %s from %d to %d", what, least, most)
		}
		*to = T(n)
		return nil
	}
}

// Share returns an option for a number from 0 to 1.
func Share(to *float64) Option {
	return func(value string) error {
		share, err := strconv.ParseFloat(value, 64)
		if err != nil || !(share >= 0 && share <= 1) {
			return errors.New("is no number from 0 to 1")
		}
		*to = share
		return nil
	}
}
