//go:build !linux

package load

import "time"

// alarm is a precise timer, which exists only on Linux. Other platforms use the runtime's timers.
type alarm struct{}

func newAlarm() *alarm { return nil }

func (*alarm) wait(time.Duration) bool { return false }
func (*alarm) cancel()                 {}
func (*alarm) close()                  {}
