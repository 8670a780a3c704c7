//go:build !dqlite

package dqlite

import (
	"strings"
	"testing"

	"stroppy/internal/db"
)

func TestBuildWithoutLibrariesIsExplained(t *testing.T) {
	_, err := Open(t.Context(), "dqlite://h1")
	if db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "libdqlite-dev") {
		t.Errorf("without dqlite: %v", err)
	}
	if _, err := Open(t.Context(), "dqlite://"); err == nil || strings.Contains(err.Error(), "libdqlite-dev") {
		t.Errorf("a wrong address: %v", err)
	}
}
