//go:build !dqlite

package dqlite

import (
	"context"

	"stroppy/internal/db"
)

// Open says what CheckURL says.
func Open(_ context.Context, url string) (db.Database, error) { return nil, CheckURL(url) }

// CheckURL says what is wrong with a URL, else what is missing.
func CheckURL(url string) error {
	if _, err := readURL(url); err != nil {
		return err
	}
	return db.Fatalf("open dqlite", "this stroppy was built without it: install the Debian packages libdqlite-dev and libsqlite3-dev, "+
		"and build with CGO_LDFLAGS_ALLOW=-Wl,-z,now go build -tags 'dqlite libsqlite3' ./cmd/stroppy")
}
