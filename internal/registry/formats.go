package registry

import (
	"stroppy/internal/exchange"
	"stroppy/internal/exchange/elle"
	"stroppy/internal/exchange/plume"
	"stroppy/internal/workload/appends"
)

// Formats is the registry: a form of histories is a folder in internal/exchange and an
// entry here.
func Formats() exchange.Formats {
	return exchange.Formats{
		elle.Format(appends.Recorded), plume.Format(),
	}
}
