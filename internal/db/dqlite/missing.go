//go:build !dqlite

package dqlite

import (
	"context"

	"stroppy/internal/db"
)

// Open returns the error of CheckURL.
func Open(_ context.Context, url string) (db.Database, error) { return nil, CheckURL(url) }

// CheckURL returns an error about the URL, or else about the missing packages.
func CheckURL(url string) error {
	if _, err := readURL(url); err != nil {
		return err
	}
	return db.Fatalf("open dqlite", "this stroppy was built without it: install the Debian packages gcc, libdqlite-dev, "+
		"libraft-dev, libuv1-dev and libsqlite3-dev, and build with CGO_LDFLAGS_ALLOW=-Wl,-z,now go build -tags 'dqlite libsqlite3' ./cmd/stroppy")
}
