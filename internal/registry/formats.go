package registry

import (
	"stroppy/internal/foreign"
	"stroppy/internal/foreign/elle"
	"stroppy/internal/foreign/plume"
	"stroppy/internal/workload/appends"
)

// Formats is the registry: a form of histories is a folder in internal/foreign and an
// entry here.
func Formats() foreign.Formats {
	return foreign.Formats{
		elle.Format(appends.Recorded), plume.Format(),
	}
}
