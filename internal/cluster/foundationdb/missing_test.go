//go:build !fdb

package foundationdb

import (
	"net/url"
	"strings"
	"testing"

	"stroppy/internal/cluster"
)

// TestBuildWithoutFoundationDBNamesMissingPackage checks that a program that was built without FoundationDB names
// the missing package and the build tag.
func TestBuildWithoutFoundationDBNamesMissingPackage(t *testing.T) {
	if _, err := Start(t.Context(), cluster.Options{Nodes: 3}); err == nil || !strings.Contains(err.Error(), "foundationdb-server") || !strings.Contains(err.Error(), "-tags fdb") {
		t.Errorf("without FoundationDB: %v", err)
	}
	if _, err := Start(t.Context(), cluster.Options{Nodes: 3, Params: url.Values{"redundancy": {"triple"}}}); err == nil || strings.Contains(err.Error(), "-tags") {
		t.Errorf("a wrong parameter: %v", err)
	}
}
