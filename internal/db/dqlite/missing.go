//go:build !dqlite

package dqlite

import (
	"context"

	"stroppy/internal/db"
)

// Open checks the address and says what is missing.
func Open(_ context.Context, url string) (db.Database, error) {
	if _, err := parseURL(url); err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: "open dqlite", Err: err}
	}
	return nil, db.Fatalf("open dqlite", "this stroppy was built without it: install the Debian packages libdqlite-dev and libsqlite3-dev, "+
		"and build with CGO_LDFLAGS_ALLOW=-Wl,-z,now go build -tags 'dqlite libsqlite3' ./cmd/stroppy")
}
