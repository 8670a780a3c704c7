package scenario

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/setting"
)

// Scale holds the divisor of a scenario's sizes, so that it fits a smaller environment. The zero value divides
// nothing.
type Scale struct {
	By      float64 // all together; 0: they are as they were written
	Changes string  // the changes, such as "clients 512 to 6"; empty if they were made before
	asked   float64 // the divisor that is not applied yet; 0: none
}

// applied marks a factor by which the sizes beside it were divided already.
const applied = " applied"

// scaleDown is read as a factor, or as one that was applied. It is written as an applied factor.
func (s *Scenario) scaleDown() setting.Setting {
	return setting.Setting{
		Name: "scale-down", Value: "F", Group: setting.Load,
		Help: "divide data, clients, transactions, rates, resources and duration of the scenario file by F; nodes, faults and isolation stay",
		Set: func(text string) error {
			number, done := strings.CutSuffix(text, applied)
			factor, err := strconv.ParseFloat(number, 64)
			if err != nil || !(factor >= 1) || math.IsInf(factor, 0) {
				return errors.New("it must be a number from 1 on, such as 100")
			}
			if done {
				s.Scale = Scale{By: factor}
			} else {
				s.Scale.asked = factor
			}
			return nil
		},
		Get: func() string {
			switch {
			case s.Scale.asked > 0:
				return setting.Number(s.Scale.asked)
			case s.Scale.By > 0:
				return setting.Number(s.Scale.By) + applied
			}
			return ""
		},
	}
}

// The minimal results of scaling down; smaller values stay.
const (
	leastRate = 1.0 // a second
	leastTime = time.Second
)

// leastResources holds the minimal resources of a node: processors and bytes.
var leastResources = map[string]float64{"cpu": 0.5, "memory": 1e9, "disk": 1e9}

// scaleDown divides the settings that files named. Flags and variables stay.
func (m *merging) scaleDown() error {
	s := &m.s
	factor := s.Scale.asked
	if s.Scale.asked = 0; factor <= 1 {
		return nil
	}
	filed := func(name string) bool {
		return m.named[name] && (&Setting{Source: m.sources[name]}).filed()
	}
	before := s.texts()
	for _, one := range s.Settings() {
		if one.Fit == nil || !filed(one.Name) {
			continue
		}
		old, err := strconv.ParseUint(one.Get(), 10, 64)
		if err != nil || old == 0 { // it has no value, or 0
			continue
		}
		least := one.Fit(uint64(math.Round(float64(old) / factor)))
		if err := one.Set(strconv.FormatUint(min(old, least), 10)); err != nil {
			return fmt.Errorf("scale %s down by %s: %w", one.Name, setting.Number(factor), err)
		}
	}
	if err := s.shorten(factor, filed, m.named); err != nil {
		return fmt.Errorf("scale the rate down by %s: %w", setting.Number(factor), err)
	}
	if filed("cluster") {
		s.Cluster = dividedResources(s.Cluster, factor)
	}
	s.Workers = min(s.Workers, s.Clients)
	if s.Scale.Changes = changed(before, s.texts()); s.Scale.Changes == "" {
		return fmt.Errorf("scale-down is %s and the scenario has nothing to divide: name a scenario with clients, accounts, transactions, a duration or a rate, or omit scale-down", setting.Number(factor))
	}
	s.Scale.By = factor * max(1, s.Scale.By)
	return nil
}

// texts returns the values of all settings.
func (s *Scenario) texts() (list [][2]string) {
	for _, one := range s.Settings() {
		list = append(list, [2]string{one.Name, one.Get()})
	}
	return list
}

// changed returns the differences, in words.
func changed(before, after [][2]string) string {
	var list []string
	for i, b := range before {
		if a := after[i]; a != b && b[0] != "scale-down" {
			list = append(list, fmt.Sprintf("%s %s to %s", b[0], b[1], a[1]))
		}
	}
	return strings.Join(list, ", ")
}

// shorten divides the rate, and the duration if it ends the run.
func (s *Scenario) shorten(factor float64, filed func(string) bool, named Set) (err error) {
	_, bounded := s.Rate.Length()
	shorter, old := 1.0, s.Duration
	if timed := filed("duration") || filed("rate") && bounded && !named["duration"]; timed && old > 0 {
		s.Duration = min(old, max(s.leastDuration(), time.Duration(float64(old)/factor).Round(time.Millisecond)))
		shorter = old.Seconds() / s.Duration.Seconds()
	}
	if filed("warmup") && shorter > 1 {
		s.Warmup = time.Duration(float64(s.Warmup) / shorter).Round(time.Millisecond)
	}
	if filed("rate") && !s.Rate.Closed() {
		if s.Rate, err = s.Rate.Divided(factor, shorter, leastRate); err != nil {
			return err
		}
		if length, bounded := s.Rate.Length(); bounded && s.Duration > 0 {
			s.Duration = min(s.Duration, length)
		}
	}
	return nil
}

// leastDuration returns the duration of a run in which each fault comes once and is healed.
func (s *Scenario) leastDuration() time.Duration {
	least := leastTime
	script, _ := parseScript(s.Nemesis) // Plan reports what is wrong with it
	for _, fault := range script {
		least = max(least, fault.Done(1)+quiet)
	}
	return least
}
