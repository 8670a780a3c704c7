//go:build !fdb

package foundationdb

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
	return Missing()
}

// Missing says why this program cannot speak to FoundationDB.
func Missing() error {
	return db.Fatalf("open FoundationDB", "this stroppy was built without it: install the package foundationdb-clients, "+
		"which brings libfdb_c.so and its headers, and build with CGO_ENABLED=1 go build -tags fdb ./cmd/stroppy")
}
