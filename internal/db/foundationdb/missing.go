//go:build !fdb

package foundationdb

import (
	"context"

	"stroppy/internal/db"
)

// Open checks the address and says what is missing.
func Open(_ context.Context, url string) (db.Database, error) {
	if _, err := parseURL(url); err != nil {
		return nil, &db.Error{Class: db.Fatal, Op: "open FoundationDB", Err: err}
	}
	return nil, Missing()
}

// Missing says why this program cannot speak to FoundationDB.
func Missing() error {
	return db.Fatalf("open FoundationDB", "this stroppy was built without it: install the package foundationdb-clients, "+
		"which brings libfdb_c.so and its headers, and build with CGO_ENABLED=1 go build -tags fdb ./cmd/stroppy")
}
