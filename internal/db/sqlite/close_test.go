package sqlite

import (
	"path/filepath"
	"testing"

	"stroppy/internal/db"
)

// TestCloseDoesNotWaitForOtherTransactions checks that closing a connection does not wait for another one's
// transaction.
func TestCloseDoesNotWaitForOtherTransactions(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "a.db") + "?busy_timeout=1h"
	writer, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := writer.Exec(t.Context(), "CREATE TABLE t (n INTEGER) STRICT"); err != nil {
		t.Fatal(err)
	}
	s, err := writer.Session(t.Context(), db.SessionOptions{Mode: db.Interactive})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), &db.Statement{SQL: "INSERT INTO t VALUES (1)"}, nil); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}
