//go:build !fdb

package foundationdb

import (
	"context"

	"stroppy/internal/db"
)

// Open returns the error of CheckURL.
func Open(_ context.Context, url string) (db.Database, error) { return nil, CheckURL(url) }

// CheckURL returns an error for a wrong URL. For any other URL it returns the error of Missing.
func CheckURL(url string) error {
	if _, err := readURL(url); err != nil {
		return err
	}
	return Missing()
}

// Missing returns the reason why this program cannot use FoundationDB.
func Missing() error {
	return db.Fatalf("open FoundationDB", "this stroppy was built without it: install the package foundationdb-clients, "+
		"which brings libfdb_c.so and its headers, and build with CGO_ENABLED=1 go build -tags fdb ./cmd/stroppy")
}
