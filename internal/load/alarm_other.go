//go:build !linux

package load

import "time"

// alarm is a precise timer, which only Linux gives us; elsewhere the runtime's
// own timers are used.
type alarm struct{}

func newAlarm() *alarm { return nil }

func (*alarm) wait(time.Duration) bool { return false }
func (*alarm) cancel()                 {}
func (*alarm) close()                  {}
