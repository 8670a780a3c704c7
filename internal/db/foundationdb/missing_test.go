//go:build !fdb

package foundationdb

import (
	"strings"
	"testing"

	"stroppy/internal/db"
)

func TestBuildWithoutLibraryIsExplained(t *testing.T) {
	_, err := Open(t.Context(), "fdb:/etc/foundationdb/fdb.cluster")
	if db.ClassOf(err) != db.Fatal || !strings.Contains(err.Error(), "foundationdb-clients") || !strings.Contains(err.Error(), "-tags fdb") {
		t.Errorf("without FoundationDB: %v", err)
	}
	if _, err := Open(t.Context(), "fdb:x?api_version=999"); err == nil || strings.Contains(err.Error(), "foundationdb-clients") {
		t.Errorf("a wrong address: %v", err)
	}
	t.Log("skipped engine: foundationdb: install foundationdb-clients and foundationdb-server, and test with -tags fdb")
}
