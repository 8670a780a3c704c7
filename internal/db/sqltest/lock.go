package sqltest

import (
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
)

// WaitForRow makes one session wait for a row of the table counter that another session has changed. It waits up to ten
// seconds until seen returns true. Then both sessions commit.
func WaitForRow(t *testing.T, d db.SQL, seen func() bool) {
	t.Helper()
	update := &db.Statement{SQL: "UPDATE counter SET n = n + 1 WHERE id = 1"}
	holder, waiter := Session(t, d, db.Interactive, ""), Session(t, d, db.Interactive, "")
	begin := func(s db.SQLSession) error {
		if err := s.Begin(t.Context(), false); err != nil {
			return err
		}
		_, err := s.Do(t.Context(), update, nil) // it is sent at once
		return err
	}
	drivertest.Must(t, begin(holder))
	waited := make(chan error, 1)
	go func() {
		err := begin(waiter)
		if err == nil {
			err = waiter.Commit(t.Context())
		}
		waited <- err
	}()
	observed := false
	for deadline := time.Now().Add(10 * time.Second); !observed && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		observed = seen()
	}
	if !observed {
		t.Error("a session that waits for a row was not seen")
	}
	drivertest.Must(t, holder.Commit(t.Context()))
	drivertest.Must(t, <-waited)
}
