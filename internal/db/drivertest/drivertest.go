// Package drivertest is what the tests of every driver share, whatever the model of
// its database is.
package drivertest

import (
	"context"
	"testing"

	"stroppy/internal/db"
)

func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Close closes c when the test ends, and expects that it can be closed.
func Close(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func Open[D db.Database](t testing.TB, open func(context.Context, string) (D, error), url string) D {
	t.Helper()
	d, err := open(t.Context(), url)
	Must(t, err)
	Close(t, d)
	return d
}
