// Package setting describes one setting of a run: its name in flags, variables and files, its bounds, its
// help, and the variable that it sets.
package setting

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Group is the topic of a setting. The help shows the settings in groups.
type Group string

// These are the groups, in the order of the help.
const (
	Workload Group = "Workload"
	Load     Group = "Load"
	Database Group = "Database"
	Faults   Group = "Faults"
	Proof    Group = "Proof"
	Output   Group = "Output"
)

// Groups returns all groups in order.
func Groups() []Group { return []Group{Workload, Load, Database, Faults, Proof, Output} }

// Setting is one setting, bound to the variable that holds its value.
type Setting struct {
	Name  string // as flag and file spell it, such as payroll-share
	Help  string // one line
	Value string // what stands for the value in the help; empty for a switch
	Group Group

	Lines bool // its value is any number of lines: a flag given several times, a list in a file
	Local bool // it belongs to one run on one machine, so that scenario.yaml leaves it out
	Data  bool // it describes what is loaded; where an earlier load is attached to, 0 takes what is there
	First bool // it is set before the others of its layer, which change what it has set

	Letter  string   // of its short flag; empty for none
	Files   string   // suffix of the files that the flag of a scenario takes for this setting; empty for none
	Choices []string // the only values that a text may have; none: any
	Aliases []Alias  // further names

	// Set parses the value. Its error completes the sentence "NAME is VALUE: …".
	Set func(text string) error
	// Get returns the value as text that Set accepts, or an empty string if there is none.
	Get func() string
	// Brief returns the value for commands and tables if the text of Get is too long for them. A nil Brief means Get.
	Brief func() string
	// Check returns an error if the value is invalid. A nil Check accepts every value that Set accepts.
	Check func() error
	// Item returns the line of a list's item that has several fields in a file. A nil Item means that items are plain.
	Item func(fields map[string]string) (string, error)
	// Fields returns the fields by which a file shows an item, for Item to read back. Without fields, and with a nil
	// Fields, the item is plain.
	Fields func(line string) []Field
	// Idle returns a clause that explains why the value has no effect and what is missing, or an empty string
	// if it has an effect. A nil Idle means that it always has one.
	Idle func() string
	// Fit returns the smallest size of at least n that fits the other settings. A nil Fit means that the
	// setting is not a size and is kept when a scenario is scaled down.
	Fit func(n uint64) uint64
}

// Field is one field of an item.
type Field struct{ Name, Value string }

// Alias is another name of a setting.
type Alias struct {
	Name string
	Help string // of an alias that the help shows; empty for an old name
	// Values maps true and false of a switch to values of the setting; nil: the value is passed on.
	Values map[string]string
	// Convert maps a value of the alias to a value of the setting; nil: it is passed on.
	Convert func(text string) (string, error)
	// Says describes the common meaning of the alias and the setting, for the error if both are given; empty:
	// the same setting.
	Says string
}

// Translate converts a value of the alias to a value of the setting.
func (a *Alias) Translate(text string) (string, error) {
	switch {
	case a.Convert != nil:
		return a.Convert(text)
	case a.Values == nil:
		return text, nil
	}
	return a.Values[text], trueOrFalse(text)
}

// Switch reports whether the setting is a switch, whose flag needs no value.
func (s *Setting) Switch() bool { return s.Value == "" }

// Variable returns the environment variable for a setting, such as STROPPY_PAYROLL_SHARE with the prefix
// STROPPY_.
func Variable(prefix, name string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Check returns the first error of the settings' values.
func Check(list []Setting) error {
	for i := range list {
		if s := &list[i]; s.Check != nil {
			if err := s.Check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// In returns the setting in a group.
func (s Setting) In(g Group) Setting {
	s.Group = g
	return s
}

// OfData returns the setting marked as a property of the loaded data.
func (s Setting) OfData() Setting {
	s.Data = true
	return s
}

// LocalOnly returns the setting marked as belonging to one run on one machine.
func (s Setting) LocalOnly() Setting {
	s.Local = true
	return s
}

// Formerly returns the setting with an old name.
func (s Setting) Formerly(name string) Setting {
	s.Aliases = append(slices.Clone(s.Aliases), Alias{Name: name})
	return s
}

// Short returns the setting with a letter for its flag.
func (s Setting) Short(letter string) Setting {
	s.Letter = letter
	return s
}

// Also returns the setting with names that other tools use for it.
func (s Setting) Also(names ...string) Setting {
	for _, name := range names {
		s = s.Formerly(name)
	}
	return s
}

// IdleIf returns the setting with Idle.
func (s Setting) IdleIf(why func() string) Setting {
	s.Idle = why
	return s
}

// tooLarge is the error of a number above the largest supported one.
type tooLarge uint64

func (n tooLarge) Error() string { return fmt.Sprintf("it may be at most %d", uint64(n)) }

// Between returns the setting with bounds for a number.
func (s Setting) Between(low, high float64) Setting {
	set := s.Set
	s.Set = func(text string) error {
		err := set(text)
		if errors.As(err, new(tooLarge)) {
			return fmt.Errorf("it must be from %s to %s", Number(low), Number(high))
		}
		return err
	}
	s.Check = func() error {
		value, err := strconv.ParseFloat(s.Get(), 64)
		if err == nil && value >= low && value <= high {
			return nil
		}
		return fmt.Errorf("%s is %s: it must be from %s to %s", s.Name, s.Get(), Number(low), Number(high))
	}
	return s
}

// Sized returns the setting as a size, which is at least 1 if fit is nil.
func (s Setting) Sized(fit func(n uint64) uint64) Setting {
	if s.Fit = fit; fit == nil {
		s.Fit = func(n uint64) uint64 { return max(n, 1) }
	}
	return s
}

// OneOf returns the setting with a list of allowed texts; empty is always allowed.
func (s Setting) OneOf(names ...string) Setting {
	s.Choices = names
	s.Check = func() error {
		if text := s.Get(); text != "" && !slices.Contains(names, text) {
			return fmt.Errorf("%s is %q: it must be %s", s.Name, text, Or(names))
		}
		return nil
	}
	return s
}

// Names returns the names of the values in a list.
func Names[T any](list []T, name func(T) string) (names []string) {
	for _, one := range list {
		names = append(names, name(one))
	}
	return names
}

// Or formats names for a sentence: a, b or c.
func Or(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Number formats a number for a sentence.
func Number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%g", v)
}

// Custom returns a setting of any type with functions to parse and format it.
func Custom[T any](to *T, name, value, help string, parse func(string) (T, error), format func(T) string) Setting {
	return Setting{Name: name, Help: help, Value: value,
		Set: func(t string) (err error) { *to, err = parse(t); return err },
		Get: func() string { return format(*to) },
	}
}

// Text returns a setting for any text.
func Text(to *string, name, value, help string) Setting {
	same := func(t string) string { return t }
	return Custom(to, name, value, help, func(t string) (string, error) { return t, nil }, same)
}

// Lines returns a setting for any number of lines. Empty lines are ignored.
func Lines(to *string, name, value, help string) Setting {
	s := Custom(to, name, value, help, func(t string) (string, error) {
		kept := strings.FieldsFunc(t, func(r rune) bool { return r == '\n' })
		for i := range kept {
			kept[i] = strings.TrimSpace(kept[i])
		}
		return strings.Join(slices.DeleteFunc(kept, func(line string) bool { return line == "" }), "\n"), nil
	}, strings.Clone)
	s.Lines = true
	return s
}

// Whole returns a setting for an unsigned integer of 64 bits.
func Whole(to *uint64, name, help string) Setting {
	return Custom(to, name, "N", help, ParseWhole, func(n uint64) string { return strconv.FormatUint(n, 10) })
}

// Small returns a setting for an unsigned integer of 31 bits.
func Small(to *int, name, help string) Setting {
	return Custom(to, name, "N", help, func(t string) (int, error) {
		n, err := ParseWhole(t)
		if n > math.MaxInt32 {
			err = tooLarge(math.MaxInt32)
		}
		return int(n & math.MaxInt32), err
	}, strconv.Itoa)
}

// Real returns a setting for a number.
func Real(to *float64, name, help string) Setting {
	return Custom(to, name, "X", help, func(t string) (float64, error) {
		x, err := strconv.ParseFloat(t, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return *to, errors.New("it must be a number, such as 0.5")
		}
		return x, nil
	}, func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) })
}

// Share returns a setting for a number from 0 to 1, which may be given in per cent.
func Share(to *float64, name, help string) Setting {
	s := Real(to, name, help)
	s.Value = "SHARE"
	parse := s.Set
	s.Set = func(t string) error {
		percent, ok := strings.CutSuffix(t, "%")
		if err := parse(percent); err != nil {
			return errors.New("it must be a share, such as 20% or 0.2")
		}
		if ok {
			*to /= 100
		}
		return nil
	}
	return s.Between(0, 1)
}

// Switch returns a setting that is on or off.
func Switch(to *bool, name, help string) Setting {
	return Custom(to, name, "", help, func(t string) (bool, error) { return t == "true", trueOrFalse(t) }, strconv.FormatBool)
}

func trueOrFalse(text string) error {
	if text != "true" && text != "false" {
		return errors.New("it must be true or false")
	}
	return nil
}

// maxDuration limits every duration.
const maxDuration = 365 * 24 * time.Hour

// longTime matches a valid duration that exceeds time.Duration.
var longTime = regexp.MustCompile(`^\+?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// Duration returns a setting for a duration with its unit, of at most a year.
func Duration(to *time.Duration, name, help string) Setting {
	s := Custom(to, name, "TIME", help, func(t string) (time.Duration, error) {
		d, err := time.ParseDuration(t)
		switch {
		case err != nil && longTime.MatchString(t):
			return *to, fmt.Errorf("it must be from 0s to %v", maxDuration)
		case err != nil:
			return *to, errors.New("it must be a time with its unit, such as 10s or 1m30s")
		case d < 0:
			return *to, errors.New("a time cannot be negative")
		}
		return d, nil
	}, time.Duration.String)
	s.Check = func() error {
		if *to >= 0 && *to <= maxDuration {
			return nil
		}
		return fmt.Errorf("%s is %v: it must be from 0s to %v", name, *to, maxDuration)
	}
	return s
}

// Bytes returns a setting for a number of bytes, or a range from which each is drawn, within bounds.
func Bytes(from, to *uint64, least, most uint64, name, help string) Setting {
	return Setting{Name: name, Value: "BYTES", Help: help,
		Set: func(t string) error {
			low, high, several := strings.Cut(t, "..")
			if !several {
				high = low
			}
			a, err := ParseWhole(low)
			b, err2 := ParseWhole(high)
			switch {
			case err != nil || err2 != nil:
				return errors.New("it must be a number of bytes, such as 1024, or a range, such as 100..2000")
			case a > b:
				return fmt.Errorf("the range goes down: name the smaller number first, as in %d..%d", b, a)
			}
			*from, *to = a, b
			return nil
		},
		Get: func() string { return Range(*from, *to) },
		Check: func() error {
			for _, n := range []uint64{*from, *to} {
				if n < least || n > most {
					return fmt.Errorf("%s is %d: it must be from %d to %d", name, n, least, most)
				}
			}
			return nil
		},
	}
}

// Range formats a range in the form that Bytes accepts.
func Range(low, high uint64) string {
	if low == high {
		return strconv.FormatUint(low, 10)
	}
	return fmt.Sprintf("%d..%d", low, high)
}

// ParseWhole parses an unsigned integer. If it is too large, it returns the largest number with the error.
func ParseWhole(t string) (uint64, error) {
	n, err := strconv.ParseUint(t, 10, 64)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, strconv.ErrRange):
		return n, tooLarge(n)
	case strings.HasPrefix(t, "-"):
		return 0, errors.New("it cannot be negative")
	default:
		return 0, errors.New("it must be a whole number, such as 1000")
	}
}
