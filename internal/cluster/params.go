package cluster

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"stroppy/internal/spelling"
)

// ParamError says that a parameter of a cluster is none, or has a value that it
// cannot have.
type ParamError struct {
	Param  string
	Reason string // what it may be, as in "it must be on or off"
}

func (e *ParamError) Error() string {
	return fmt.Sprintf("the cluster's parameter %s: %s", e.Param, e.Reason)
}

// paramSet stands before the name of a setting of the server's own.
const paramSet = "set."

// paramBin names the folder that the programs are taken from; Options.Find reads it.
const paramBin = "bin"

// Params are the parameters that a kind of cluster knows.
type Params struct {
	// Known take the value of each, or say what is wrong with it.
	Known map[string]func(value string) error
	// Set takes the setting of set.NAME=VALUE.
	Set func(name, value string) error
	// Unknown says of a name that is none of these what there is. Without it the
	// nearest of Known is named, or all.
	Unknown string
	// Kind begins the sentence that names the nearest, as in "a cluster of Redis".
	Kind string
}

// Read reads all parameters. The error is a *ParamError.
func (p Params) Read(values url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var err error
		setting, isSetting := strings.CutPrefix(name, paramSet)
		switch take := p.Known[name]; {
		case len(values[name]) != 1:
			err = fmt.Errorf("it is given %d times: give it once", len(values[name]))
		case name == paramBin:
			if values.Get(name) == "" {
				err = errors.New("it must name the folder of the programs")
			}
		case isSetting:
			err = p.Set(setting, values.Get(name))
		case take != nil:
			err = take(values.Get(name))
		default:
			err = p.unknown(name)
		}
		if err != nil {
			return &ParamError{Param: name, Reason: err.Error()}
		}
	}
	return nil
}

func (p Params) unknown(name string) error {
	if p.Unknown != "" {
		return errors.New(p.Unknown)
	}
	known := append(slices.Sorted(maps.Keys(p.Known)), paramBin)
	return fmt.Errorf("%s has no such parameter; %s, and set.NAME=VALUE sets a setting of the server's", p.Kind,
		spelling.Hint(name, known, nil, "it has "+strings.Join(known, ", ")))
}

// OnOff takes on and off.
func OnOff(to *bool) func(value string) error {
	return func(value string) error {
		if *to = value == "on"; !*to && value != "off" {
			return fmt.Errorf("%q is neither on nor off", value)
		}
		return nil
	}
}

// OneOf takes some values.
func OneOf(take func(value string), allowed ...string) func(value string) error {
	return func(value string) error {
		if !slices.Contains(allowed, value) {
			return fmt.Errorf("it must be one of %s", strings.Join(allowed, ", "))
		}
		take(value)
		return nil
	}
}

// Between takes a time from least to most, such as the example.
func Between(to *time.Duration, least, most time.Duration, example string) func(value string) error {
	return func(value string) (err error) {
		if *to, err = time.ParseDuration(value); err != nil || *to < least || *to > most {
			return fmt.Errorf("it must be a time from %v to %v, such as %s", least, most, example)
		}
		return nil
	}
}

// Settings takes the settings of a product. Names have small letters, digits and
// the marks; own are those that the cluster itself sets.
func Settings(product, marks string, own []string, to map[string]string) func(name, value string) error {
	return func(name, value string) error {
		lower := strings.ToLower(name)
		switch {
		case lower == "" || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789"+marks) != "":
			return fmt.Errorf("%q is no name of a setting of %s", name, product)
		case slices.Contains(own, lower):
			return fmt.Errorf("the setting %s is not for you to set: the cluster's own value makes it work", lower)
		case strings.ContainsAny(value, "\r\n\x00"):
			return fmt.Errorf("the value of the setting %s must be one line", lower)
		}
		to[lower] = value
		return nil
	}
}

// SettingLines writes settings in the order of their names, each on a line of its
// own that form gives.
func SettingLines(settings map[string]string, form func(name, value string) string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text.WriteString(form(name, settings[name]) + "\n")
	}
	return text.String()
}
