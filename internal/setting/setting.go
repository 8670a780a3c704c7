// Package setting describes one setting of a run: the name that flag, variable and
// file call it by, its bounds, its help, and the variable that it sets.
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

// Group is what a setting is about; the help shows the settings in groups.
type Group string

// The groups, in the order in which the help shows them.
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
	Choices []string // the only values that a text may have; none: any
	Aliases []Alias  // further names

	// Set reads the value. Its error completes the sentence "NAME is VALUE: …".
	Set func(text string) error
	// Get returns the value as text that Set reads; empty where there is none.
	Get func() string
	// Check says what is wrong with the value; nil: every value that Set reads is right.
	Check func() error
	// Idle says why nothing would read the value, and what to give with it, to stand
	// in a sentence; empty where something does. Nil: something always does.
	Idle func() string
	// Fit returns the smallest value of n or more that a size can have beside the other
	// settings. Nil: it is no size, and stays where a scenario is scaled down.
	Fit func(n uint64) uint64
}

// Alias is a further name of a setting.
type Alias struct {
	Name string
	Help string // of an alias that the help shows; empty for an old name
	// Values are the setting's values for true and false of a switch; nil: its own.
	Values map[string]string
	// Says is what the alias and the setting both say, in a sentence about a file or
	// a command that gives both; empty: the same.
	Says string
}

// Translate returns the value of the setting that a value of the alias stands for.
func (a *Alias) Translate(text string) (string, error) {
	if a.Values == nil {
		return text, nil
	}
	return a.Values[text], trueOrFalse(text)
}

// Switch says that the setting is on or off, so that its flag needs no value.
func (s *Setting) Switch() bool { return s.Value == "" }

// Variable returns the environment variable of a setting of this name, such as
// STROPPY_PAYROLL_SHARE with the prefix STROPPY_.
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

// In puts the setting into a group.
func (s Setting) In(g Group) Setting {
	s.Group = g
	return s
}

// OfData makes it a setting of what is loaded.
func (s Setting) OfData() Setting {
	s.Data = true
	return s
}

// LocalOnly makes it a setting of one run on one machine.
func (s Setting) LocalOnly() Setting {
	s.Local = true
	return s
}

// Formerly adds an old name.
func (s Setting) Formerly(name string) Setting {
	s.Aliases = append(slices.Clone(s.Aliases), Alias{Name: name})
	return s
}

// Short gives the flag a letter.
func (s Setting) Short(letter string) Setting {
	s.Letter = letter
	return s
}

// Also adds names that other tools have for the setting.
func (s Setting) Also(names ...string) Setting {
	for _, name := range names {
		s = s.Formerly(name)
	}
	return s
}

// IdleIf sets Idle.
func (s Setting) IdleIf(why func() string) Setting {
	s.Idle = why
	return s
}

// tooLarge is the error of a number that is above the largest that can be read.
type tooLarge uint64

func (n tooLarge) Error() string { return fmt.Sprintf("it may be at most %d", uint64(n)) }

// Between bounds a number.
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

// Sized makes it a size, which is 1 at least where fit is nil.
func (s Setting) Sized(fit func(n uint64) uint64) Setting {
	if s.Fit = fit; fit == nil {
		s.Fit = func(n uint64) uint64 { return max(n, 1) }
	}
	return s
}

// OneOf bounds a text; empty is always right.
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

// Or lists names as a sentence does: a, b or c.
func Or(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Number writes a number as a sentence does.
func Number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%g", v)
}

// Of is a setting of any type, which parse reads and format writes.
func Of[T any](to *T, name, value, help string, parse func(string) (T, error), format func(T) string) Setting {
	return Setting{Name: name, Help: help, Value: value,
		Set: func(t string) (err error) { *to, err = parse(t); return err },
		Get: func() string { return format(*to) },
	}
}

// Text is any text.
func Text(to *string, name, value, help string) Setting {
	same := func(t string) string { return t }
	return Of(to, name, value, help, func(t string) (string, error) { return t, nil }, same)
}

// Lines is a text of any number of lines, of which empty ones do not count.
func Lines(to *string, name, value, help string) Setting {
	s := Of(to, name, value, help, func(t string) (string, error) {
		kept := strings.FieldsFunc(t, func(r rune) bool { return r == '\n' })
		for i := range kept {
			kept[i] = strings.TrimSpace(kept[i])
		}
		return strings.Join(slices.DeleteFunc(kept, func(line string) bool { return line == "" }), "\n"), nil
	}, strings.Clone)
	s.Lines = true
	return s
}

// Whole is a whole number of at most 64 bits.
func Whole(to *uint64, name, help string) Setting {
	return Of(to, name, "N", help, ParseWhole, func(n uint64) string { return strconv.FormatUint(n, 10) })
}

// Small is a whole number of at most 31 bits.
func Small(to *int, name, help string) Setting {
	return Of(to, name, "N", help, func(t string) (int, error) {
		n, err := ParseWhole(t)
		if n > math.MaxInt32 {
			err = tooLarge(math.MaxInt32)
		}
		return int(n & math.MaxInt32), err
	}, strconv.Itoa)
}

// Real is a number.
func Real(to *float64, name, help string) Setting {
	return Of(to, name, "X", help, func(t string) (float64, error) {
		x, err := strconv.ParseFloat(t, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return *to, errors.New("it must be a number, such as 0.5")
		}
		return x, nil
	}, func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) })
}

// Share is a number from 0 to 1, which may be written in per cent.
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

// Switch is on or off.
func Switch(to *bool, name, help string) Setting {
	return Of(to, name, "", help, func(t string) (bool, error) { return t == "true", trueOrFalse(t) }, strconv.FormatBool)
}

func trueOrFalse(text string) error {
	if text != "true" && text != "false" {
		return errors.New("it must be true or false")
	}
	return nil
}

// maxDuration bounds every time.
const maxDuration = 365 * 24 * time.Hour

// longTime matches a time that is too long for a time.Duration where that cannot read it.
var longTime = regexp.MustCompile(`^\+?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// Duration is a time with its unit, of at most a year.
func Duration(to *time.Duration, name, help string) Setting {
	s := Of(to, name, "TIME", help, func(t string) (time.Duration, error) {
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

// Bytes is a number of bytes, or a range from which each is drawn, within bounds.
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

// Range writes a range as Bytes reads it.
func Range(low, high uint64) string {
	if low == high {
		return strconv.FormatUint(low, 10)
	}
	return fmt.Sprintf("%d..%d", low, high)
}

// ParseWhole reads a whole number. Of one that is too large the error comes with the largest.
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
