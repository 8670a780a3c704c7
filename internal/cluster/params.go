package cluster

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

// ParamError reports an unknown parameter of a cluster or an invalid value.
type ParamError struct {
	Param  string
	Reason string // as in "it must be on or off"
}

func (e *ParamError) Error() string {
	return fmt.Sprintf("the cluster's parameter %s: %s", e.Param, e.Reason)
}

// paramSet is the prefix of settings that are passed to the server.
const paramSet = "set."

// paramBin is the parameter for the folder of the programs; Options.Find reads it.
const paramBin = "bin"

// Params are the parameters of a kind of cluster.
type Params struct {
	// Known maps a name to a function that stores the value or returns why it is invalid.
	Known map[string]func(value string) error
	// Set stores the setting of set.NAME=VALUE.
	Set func(name, value string) error
	// Unknown is the error for an unknown name. If it is empty, the error suggests the nearest of Known, or lists
	// all.
	Unknown string
	// Kind begins that error, as in "a cluster of Redis".
	Kind string
}

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

// OnOff accepts on and off.
func OnOff(to *bool) func(value string) error {
	return func(value string) error {
		if *to = value == "on"; !*to && value != "off" {
			return fmt.Errorf("%q is neither on nor off", value)
		}
		return nil
	}
}

// OneOf accepts the allowed values.
func OneOf(take func(value string), allowed ...string) func(value string) error {
	return func(value string) error {
		if !slices.Contains(allowed, value) {
			return fmt.Errorf("it must be one of %s", strings.Join(allowed, ", "))
		}
		take(value)
		return nil
	}
}

// Number accepts a whole number from least to most.
func Number(to *int, least, most int) func(value string) error {
	return func(value string) (err error) {
		if *to, err = strconv.Atoi(value); err != nil || *to < least || *to > most {
			return fmt.Errorf("it must be a number from %d to %d", least, most)
		}
		return nil
	}
}

// Between accepts a duration from least to most; example is part of the error.
func Between(to *time.Duration, least, most time.Duration, example string) func(value string) error {
	return func(value string) (err error) {
		if *to, err = time.ParseDuration(value); err != nil || *to < least || *to > most {
			return fmt.Errorf("it must be a time from %v to %v, such as %s", least, most, example)
		}
		return nil
	}
}

// Settings accepts the settings of a product. Names consist of letters, digits and marks; own are the settings that
// the cluster itself sets.
func Settings(product, marks string, own []string, to map[string]string) func(name, value string) error {
	return func(name, value string) error {
		lower := strings.ToLower(name)
		switch {
		case lower == "" || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789"+marks) != "":
			return fmt.Errorf("%q is not the name of a setting of %s", name, product)
		case slices.Contains(own, lower):
			return fmt.Errorf("the setting %s cannot be changed: the cluster needs its own value", lower)
		case strings.ContainsAny(value, "\r\n\x00"):
			return fmt.Errorf("the value of the setting %s must be one line", lower)
		}
		to[lower] = value
		return nil
	}
}

// SettingLines formats settings in the order of their names, each on its own line.
func SettingLines(settings map[string]string, form func(name, value string) string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text.WriteString(form(name, settings[name]) + "\n")
	}
	return text.String()
}
