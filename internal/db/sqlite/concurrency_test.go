package sqlite_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/sqlite"
)

func TestConcurrentTransfersKeepTheSum(t *testing.T) {
	for _, parameters := range []string{"synchronous=off", "synchronous=off&journal=delete"} {
		t.Run(parameters, func(t *testing.T) {
			inModes(t, parameters, func(t *testing.T, d *sqlite.Database, mode db.Mode) {
				const writers, each = 16, 25
				createBank(t, d, benchAccounts)
				var wait sync.WaitGroup
				for i := range writers {
					s := openSession(t, d, mode)
					wait.Go(func() {
						for tr := newTransfer(uint64(i)); tr.next < each; {
							if err := tr.do(t.Context(), s); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				wait.Wait()
				s := openSession(t, d, mode)
				for text, want := range map[string]int64{
					"SELECT sum(balance) FROM account": benchAccounts * 100_000,
					"SELECT sum(version) FROM account": 2 * writers * each,
					"SELECT count(*) FROM ledger":      2 * writers * each,
					"SELECT sum(amount) FROM ledger":   0,
					"SELECT count(*) FROM account LEFT JOIN (SELECT bic, ban, sum(amount) AS moved, count(*) AS legs FROM ledger GROUP BY bic, ban)" +
						" USING (bic, ban) WHERE balance <> 100000 + coalesce(moved, 0) OR version <> coalesce(legs, 0)": 0,
				} {
					if n := number(t, s, text); n != want {
						t.Errorf("%s: %d, want %d", text, n, want)
					}
				}
			})
		})
	}
}

// heldUp runs a test in each mode, within one process and between two handles. Its session wants to write while
// another transaction is open. Afterwards the session must be ready.
func heldUp(t *testing.T, parameters string, test func(t *testing.T, s db.SQLSession)) {
	for _, name := range []string{"one process", "two handles"} {
		t.Run(name, func(t *testing.T) {
			inModes(t, parameters, func(t *testing.T, d *sqlite.Database, mode db.Mode) {
				constrained(t, d)
				other := d
				if name == "two handles" {
					other = openAt(t, d.Path(), parameters)
				}
				holder, s := openSession(t, other, db.Interactive), openSession(t, d, mode)
				if err := holder.Begin(t.Context(), false); err != nil {
					t.Fatal(err)
				}
				test(t, s)
				if err := holder.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := transact(t, s, sql("UPDATE a SET balance = 5")); err != nil {
					t.Errorf("the session is not ready: %v", err)
				}
			})
		})
	}
}

// TestWriterThatWaitsTooLongIsAborted checks that a writer that waits too long is Aborted, by the queue within one
// process and by SQLite between two.
func TestWriterThatWaitsTooLongIsAborted(t *testing.T) {
	heldUp(t, "busy_timeout=30ms", func(t *testing.T, s db.SQLSession) {
		err := transact(t, s, sql("UPDATE a SET balance = 5"))
		wantError(t, err, db.Aborted, "SQLITE_BUSY", "locked")
	})
}

// TestCancelledContextEndsEveryWait checks that a cancelled context ends every wait immediately and leaves the
// session ready.
func TestCancelledContextEndsEveryWait(t *testing.T) {
	heldUp(t, "busy_timeout=1h", func(t *testing.T, s db.SQLSession) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := s.Begin(ctx, false)
		if err == nil {
			if _, err = s.Do(ctx, sql("UPDATE a SET balance = 5"), nil); err == nil {
				err = s.Commit(ctx)
			}
		}
		wantError(t, err, db.Aborted)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func TestCancelledContextEndsStatement(t *testing.T) {
	inModes(t, "", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
		constrained(t, d)
		s := openSession(t, d, mode)
		endless := &db.Statement{
			SQL:     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
			Columns: []db.Type{db.Integer},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := s.Query(ctx, endless, nil, func([]db.Value) error { return nil })
		if wantError(t, err, db.Aborted, "SQLITE_INTERRUPT"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}

		// A transaction that is cancelled before COMMIT is undone.
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		if err := s.Begin(ctx, false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do(ctx, sql("UPDATE a SET balance = 5"), nil); err != nil {
			t.Fatal(err)
		}
		cancel()
		wantError(t, s.Commit(ctx), db.Aborted, "canceled")
		if n := number(t, s, "SELECT balance FROM a"); n != 100 {
			t.Errorf("a cancelled transaction made the balance %d", n)
		}
	})
}

// TestReaderSeesOneSnapshotWithoutWaiting checks that readers see one snapshot, and that readers and writers do
// not wait for each other.
func TestReaderSeesOneSnapshotWithoutWaiting(t *testing.T) {
	inModes(t, "busy_timeout=0s", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
		createBank(t, d, 100)
		reader, writer := openSession(t, d, mode), openSession(t, d, mode)
		sum := &db.Statement{SQL: "SELECT sum(balance), sum(version) FROM account", Columns: []db.Type{db.Decimal, db.Integer}}
		raise := sql("UPDATE account SET balance = balance + 1, version = version + 1")

		if err := reader.Begin(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := reader.Do(t.Context(), sum, nil); err != nil {
				t.Fatal(err)
			}
			if err := reader.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r := reader.Result(i).Row(0); r[0].Int != 100*100_000 || r[1].Int != 0 {
				t.Errorf("read %d of one snapshot is %+v", i, r)
			}
			if err := transact(t, writer, raise); err != nil {
				t.Fatal(err)
			}
		}
		if err := reader.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := number(t, reader, "SELECT sum(version) FROM account"); n != 300 {
			t.Errorf("after the snapshot the versions are %d", n)
		}

		// A query streams from one snapshot while writers commit between its rows.
		rows := 0
		all := &db.Statement{SQL: "SELECT version, bic FROM account", Columns: []db.Type{db.Integer, db.Text}}
		err := reader.Query(t.Context(), all, nil, func(row []db.Value) error {
			rows++
			if row[0].Int != 3 || len(row[1].Text) != 8 {
				t.Errorf("row %d is %+v", rows, row)
			}
			return transact(t, writer, raise)
		})
		if err != nil || rows != 100 {
			t.Errorf("%d rows, %v", rows, err)
		}
		if n := number(t, reader, "SELECT min(version) FROM account"); n != 103 {
			t.Errorf("after the query the versions are %d", n)
		}
	})
}

// TestCommitDelayedByReaderIsAborted checks that, with a rollback journal, a COMMIT delayed by a reader is not
// applied and may be tried again.
func TestCommitDelayedByReaderIsAborted(t *testing.T) {
	inModes(t, "journal=delete&busy_timeout=30ms", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
		constrained(t, d)
		reader, writer := openSession(t, d, db.Interactive), openSession(t, d, mode)
		if err := reader.Begin(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		balance := &db.Statement{SQL: "SELECT balance FROM a", Columns: []db.Type{db.Decimal}}
		if _, err := reader.Do(t.Context(), balance, nil); err != nil {
			t.Fatal(err)
		}
		err := transact(t, writer, sql("UPDATE a SET balance = 5"))
		wantError(t, err, db.Aborted, "commit", "SQLITE_BUSY")
		if err := reader.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := number(t, writer, "SELECT balance FROM a"); n != 100 {
			t.Errorf("an aborted transaction made the balance %d", n)
		}
		if err := transact(t, writer, sql("UPDATE a SET balance = 5")); err != nil {
			t.Errorf("the session is not ready: %v", err)
		}
	})
}

// TestQueuedStatementsHoldNoLock checks that pipelined statements wait for COMMIT, so that an open transaction
// with queued statements delays no other.
func TestQueuedStatementsHoldNoLock(t *testing.T) {
	d, _ := openNew(t, "busy_timeout=0s")
	constrained(t, d)
	slow, quick := openSession(t, d, db.Pipelined), openSession(t, d, db.Pipelined)
	if err := slow.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Do(t.Context(), sql("UPDATE a SET balance = balance + 1"), nil); err != nil {
		t.Fatal(err)
	}
	if err := transact(t, quick, sql("UPDATE a SET balance = balance * 2")); err != nil {
		t.Fatal(err)
	}
	if err := slow.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := number(t, quick, "SELECT balance FROM a"); n != 201 {
		t.Errorf("the balance is %d", n)
	}
}

// TestFullDiskUndoesTransaction checks that a full disk undoes the transaction.
func TestFullDiskUndoesTransaction(t *testing.T) {
	inModes(t, "", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
		constrained(t, d)
		s := openSession(t, d, mode)
		if err := sqlite.LimitPages(s, 3); err != nil {
			t.Fatal(err)
		}
		fill := sql("WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)" +
			" INSERT INTO k SELECT 'a text that takes some room on its page', i FROM n")
		err := transact(t, s, sql("UPDATE a SET balance = 5"), fill)
		wantError(t, err, db.Fatal, "SQLITE_FULL", "full")
		if n := number(t, s, "SELECT balance FROM a"); n != 100 {
			t.Errorf("half a transaction was applied: the balance is %d", n)
		}
		if err := transact(t, s, sql("UPDATE a SET balance = 6")); err != nil {
			t.Errorf("the session is not ready: %v", err)
		}
	})
}

// lateContext is cancelled between Commit's last look at it and the end of COMMIT.
type lateContext struct {
	context.Context
	looks int
}

func (c *lateContext) Err() error {
	if c.looks++; c.looks > 1 {
		return context.Canceled
	}
	return nil
}

// TestCommitIsNotInterrupted checks that a running COMMIT is not interrupted. SQLite counts the instructions of all
// executions of a statement before it calls its progress handler. So it would report an interrupt even after COMMIT
// has taken effect.
func TestCommitIsNotInterrupted(t *testing.T) {
	d, _ := openNew(t, "synchronous=off")
	s := openSession(t, d, db.Interactive)
	for i := range 5000 {
		if err := s.Begin(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(&lateContext{Context: t.Context()}); err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
	}
}
