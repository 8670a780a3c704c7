//go:build !dqlite

package dqlite

import (
	"strings"
	"testing"

	"stroppy/internal/cluster"
)

// TestBuildWithoutDqliteNamesMissingPackage checks that a program that was built without dqlite names the missing
// package and the build tag.
func TestBuildWithoutDqliteNamesMissingPackage(t *testing.T) {
	if _, err := Start(t.Context(), cluster.Options{Nodes: 3}); err == nil || !strings.Contains(err.Error(), "libdqlite-dev") {
		t.Errorf("Start without dqlite: %v", err)
	}
	if err := Serve(nil); err == nil || !strings.Contains(err.Error(), "-tags") {
		t.Errorf("Serve without dqlite: %v", err)
	}
}
