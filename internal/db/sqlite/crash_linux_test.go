package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/sqlite"
)

// TestMain runs the tests, or a child process that a test started from this binary; its name and arguments
// follow the flags.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.NArg() == 0 {
		os.Exit(m.Run())
	}
	if err := children[flag.Arg(0)](flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// children holds the functions of the child processes.
var children = map[string]func(args []string) error{
	"transfers": childTransfers,
	"commit":    childCommit,
}

const crashSessions = 4

// childTransfers makes transfers forever and prints the ID of each acknowledged one.
func childTransfers(args []string) error {
	ctx := context.Background()
	d, err := sqlite.Open(ctx, "sqlite:"+args[0])
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	for i := range crashSessions {
		s, err := d.Session(ctx, db.SessionOptions{Mode: modes[i%len(modes)]})
		if err != nil {
			return err
		}
		wait.Go(func() {
			for t := newTransfer(uint64(i)); ; {
				if err := t.do(ctx, s); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Printf("%d\n", t.client<<32|t.next)
			}
		})
	}
	wait.Wait()
	return nil
}

// TestKilledProcessLosesNoCommit checks that a process killed during commits loses no acknowledged commit, and
// leaves no incomplete transaction.
func TestKilledProcessLosesNoCommit(t *testing.T) {
	for _, parameters := range []string{"journal=wal", "journal=delete&synchronous=off"} {
		t.Run(parameters, func(t *testing.T) {
			d, path := openNew(t, parameters)
			createBank(t, d, benchAccounts)
			child := exec.Command(os.Args[0], "transfers", path+"?"+parameters)
			var complaint strings.Builder
			child.Stderr = &complaint
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			acknowledged := map[string]bool{}
			lines := bufio.NewReader(out)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					break // an id that the kill cut off was not acknowledged
				}
				if acknowledged[strings.TrimSpace(line)] = true; len(acknowledged) == 300 {
					if err := child.Process.Kill(); err != nil {
						t.Fatal(err)
					}
				}
			}
			_ = child.Wait() // it was killed
			if len(acknowledged) < 300 {
				t.Fatalf("the child ended after %d transfers: %s", len(acknowledged), complaint.String())
			}
			s := openSession(t, openAt(t, path, parameters), db.Interactive)
			found := map[string]bool{}
			all := &db.Statement{SQL: "SELECT transfer, number FROM ledger", Columns: []db.Type{db.Integer, db.Integer}}
			legs := 0
			if err := s.Query(t.Context(), all, nil, func(row []db.Value) error {
				found[fmt.Sprint(row[0].Int)] = true
				legs++
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for id := range acknowledged {
				if !found[id] {
					t.Errorf("transfer %s was acknowledged and is lost", id)
				}
			}
			if extra := len(found) - len(acknowledged); extra < 0 || extra > crashSessions || legs != 2*len(found) {
				t.Errorf("%d transfers with %d legs are there, %d were acknowledged", len(found), legs, len(acknowledged))
			}
			if n := number(t, s, "SELECT sum(balance) FROM account"); n != benchAccounts*100_000 {
				t.Errorf("the balances are %d", n)
			}
			if n := number(t, s, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"); n != 0 {
				t.Errorf("%d pages are damaged", n)
			}
		})
	}
}

// childCommit makes a COMMIT fail while it writes the WAL, by a limit of the file size, and checks the
// driver's result.
func childCommit(args []string) error {
	ctx := context.Background()
	signal.Ignore(syscall.SIGXFSZ) // the write fails with EFBIG instead
	d, err := sqlite.Open(ctx, "sqlite:"+args[0])
	if err != nil {
		return err
	}
	mode := db.Interactive
	if args[1] == modeNames[db.Pipelined] {
		mode = db.Pipelined
	}
	s, err := d.Session(ctx, db.SessionOptions{Mode: mode})
	if err != nil {
		return err
	}
	attempt := func(statement *db.Statement) error {
		if err := s.Begin(ctx, false); err != nil {
			return err
		}
		if _, err := s.Do(ctx, statement, nil); err != nil {
			return err
		}
		return s.Commit(ctx)
	}
	if err := attempt(sql("UPDATE a SET balance = 101")); err != nil { // prepares, and makes the WAL
		return err
	}
	wal, err := os.Stat(args[0] + "-wal")
	if err != nil {
		return err
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	small := syscall.Rlimit{Cur: uint64(wal.Size()) + 5000, Max: before.Max} // one frame and a part of the next
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		return err
	}
	err = attempt(sql("WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO k SELECT 'text', i FROM n"))
	if err2 := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err2 != nil {
		return err2
	}
	var e *db.Error
	if !errors.As(err, &e) || e.Class != db.Unknown || e.Op != "commit" || e.Code != "SQLITE_IOERR_WRITE" {
		return fmt.Errorf("the commit ended with %v (%v)", err, db.ClassOf(err))
	}
	if err := s.Begin(ctx, false); db.ClassOf(err) != db.Unavailable {
		return fmt.Errorf("the session is not broken: %v", err)
	}
	if err := s.Reset(ctx); err != nil {
		return err
	}
	if err := attempt(sql("UPDATE a SET balance = 102")); err != nil {
		return fmt.Errorf("after the reset: %w", err)
	}
	return d.Close()
}

// TestIOErrorDuringCommitIsUnknown checks that an I/O error in COMMIT is unknown and breaks the session until Reset.
func TestIOErrorDuringCommitIsUnknown(t *testing.T) {
	inModes(t, "", func(t *testing.T, d *sqlite.Database, mode db.Mode) {
		constrained(t, d)
		out, err := exec.Command(os.Args[0], "commit", d.Path(), modeNames[mode]).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s := openSession(t, d, mode)
		if n := number(t, s, "SELECT balance FROM a"); n != 102 {
			t.Errorf("the balance is %d", n)
		}
		if n := number(t, s, "SELECT count(*) FROM k"); n != 1 {
			t.Errorf("%d rows of the transaction whose frames were overwritten are there", n-1)
		}
	})
}
