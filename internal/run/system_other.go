//go:build !linux

package run

import (
	"time"

	"stroppy/internal/check"
)

// clockAt knows no clock that processes share on this system.
func clockAt(time.Time) (check.Clock, bool) { return check.Clock{}, false }

func lowerPriority() {}
