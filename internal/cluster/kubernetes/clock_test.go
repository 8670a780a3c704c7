package kubernetes

import (
	"context"
	"errors"
	"time"
)

// clocks is a database whose clocks can be read.
type clocks struct{ Database }

func (clocks) Now(context.Context, int) (time.Time, error) {
	return time.Time{}, errors.New("nobody has a clock")
}
