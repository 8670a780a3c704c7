package mysql

import (
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/drivertest"
	"stroppy/internal/db/sqltest"
	"stroppy/internal/isolation"
)

// TestLostUpdateOccursOnlyAtWeakIsolation checks that writing back a value that was read overwrites concurrent
// commits, unless the isolation claims more than read committed.
func TestLostUpdateOccursOnlyAtWeakIsolation(t *testing.T) {
	_, url := fresh(t)
	plain := drivertest.Open(t, Open, url)
	bank.Make(t, plain, 2)
	checked := drivertest.Open(t, Open, url+"?innodb_snapshot_isolation=ON")
	ctx := t.Context()
	for _, tc := range []struct {
		name      string
		d         *Database
		isolation string
		lost      bool
		code      string // of the error that prevents it
	}{
		{"plain", plain, readUncommitted, true, ""},
		{"plain", plain, readCommitted, true, ""},
		{"plain", plain, "", true, ""},
		{"snapshot isolation", checked, readCommitted, true, ""},
		{"snapshot isolation", checked, "REPEATABLE-READ", false, "1020"},
	} {
		sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
			claim, err := tc.d.Claim(tc.isolation)
			if err != nil {
				t.Fatal(err)
			}
			if prevents := claim.Level >= isolation.SnapshotIsolation; prevents == tc.lost {
				t.Errorf("%s %q: the claim is %v", tc.name, tc.isolation, claim)
			}
			a, b := newSession(t, tc.d, mode, tc.isolation), newSession(t, tc.d, mode, tc.isolation)
			before := bank.Balance(t, a, 0)
			if err := a.Begin(ctx, false); err != nil {
				t.Fatal(err)
			}
			seen, err := sqltest.Do(ctx, a, bank.See(0))
			if err != nil {
				t.Fatal(err)
			}
			if err := sqltest.Transact(ctx, b, false, false, bank.Touch(0, 100)); err != nil {
				t.Fatal(err)
			}
			again, err := sqltest.Do(ctx, a, bank.See(0))
			if err != nil {
				t.Fatal(err)
			}
			if same := again.Row(0)[0].Int == seen.Row(0)[0].Int; same != (claim.Isolation == repeatableRead) {
				t.Errorf("%s %q: reads are repeatable: %v", tc.name, tc.isolation, same)
			}
			_, err = sqltest.Do(ctx, a, sqltest.With(setBalance, []db.Value{sqltest.Number(seen.Row(0)[0].Int + 1), {Text: bic}, sqltest.Number(0)}))
			if err == nil {
				err = a.Commit(ctx)
			}
			if tc.code != "" {
				sqltest.WantError(t, tc.name, err, db.Aborted, tc.code)
			} else if err != nil {
				t.Error(err)
			}
			want := before + 100
			if tc.lost {
				want = before + 1
			}
			if after := bank.Balance(t, b, 0); after != want {
				t.Errorf("%s %q: the balance is %d, want %d", tc.name, tc.isolation, after, want)
			}
		})
	}
}

// TestSerializablePreventsWriteSkew checks that one of two transactions that read both accounts and write one each
// is aborted.
func TestSerializablePreventsWriteSkew(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	ctx := t.Context()
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		a, b := newSession(t, d, mode, serializable), newSession(t, d, mode, serializable)
		for _, s := range []*session{a, b} {
			if err := s.Begin(ctx, false); err != nil {
				t.Fatal(err)
			}
			for account := range int64(2) {
				if _, err := sqltest.Do(ctx, s, bank.See(account)); err != nil {
					t.Fatal(err)
				}
			}
		}
		first := make(chan error, 1)
		go func() {
			_, err := sqltest.Do(ctx, a, bank.Touch(0, 1))
			if err == nil {
				err = a.Commit(ctx)
			}
			first <- err
		}()
		_, err := sqltest.Do(ctx, b, bank.Touch(1, 1))
		if err == nil {
			err = b.Commit(ctx)
		}
		other := <-first
		if err == nil {
			err, other = other, err
		}
		sqltest.WantError(t, "write skew", err, db.Aborted, "1213")
		if other != nil {
			t.Error(other)
		}
	})
}

// TestReadOnlyTransactionSeesOneSnapshot checks that a read-only transaction sees only the state at its beginning,
// at the isolation named by the dialect.
func TestReadOnlyTransactionSeesOneSnapshot(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	ctx := t.Context()
	sqltest.EachMode(t, func(t *testing.T, mode db.Mode) {
		reader, writer := newSession(t, d, mode, d.Dialect().Snapshot), newSession(t, d, mode, "")
		before := bank.Balance(t, writer, 0)
		if err := reader.Begin(ctx, true); err != nil {
			t.Fatal(err)
		}
		if mode == db.Pipelined { // its beginning travels with the first statement
			if _, err := sqltest.Do(ctx, reader, bank.See(1)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := sqltest.Transact(ctx, writer, false, false, bank.Touch(0, 1)); err != nil {
				t.Fatal(err)
			}
			if r, err := sqltest.Do(ctx, reader, bank.See(0)); err != nil || r.Row(0)[0].Int != before {
				t.Errorf("%+v, %v, want %d", r, err, before)
			}
		}
		if err := reader.Commit(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestDirtyReadsOnlyAtReadUncommitted(t *testing.T) {
	d := openFresh(t)
	bank.Make(t, d, 2)
	ctx := t.Context()
	writer := newSession(t, d, db.Pipelined, "")
	before := bank.Balance(t, writer, 0)
	if err := writer.Begin(ctx, false); err != nil {
		t.Fatal(err)
	}
	if _, err := sqltest.Do(ctx, writer, bank.Touch(0, 7)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{readUncommitted: before + 7, readCommitted: before, repeatableRead: before} {
		reader := newSession(t, d, db.Pipelined, name)
		if err := sqltest.Transact(ctx, reader, true, false, bank.See(0)); err != nil {
			t.Fatal(err)
		}
		if got := reader.Result(0).Row(0)[0].Int; got != want {
			t.Errorf("%s reads %d, want %d", name, got, want)
		}
	}
	if err := writer.Rollback(ctx); err != nil {
		t.Error(err)
	}
}

func TestEachProductClaimsItsIsolation(t *testing.T) {
	with := func(p product, galera bool, variables ...string) *server {
		s := &server{product: p, galera: galera, variables: map[string]string{}}
		for _, v := range variables {
			s.variables[v] = "ON"
		}
		return s
	}
	type levels [4]isolation.Level
	const ru, rc, si, ser = isolation.ReadUncommitted, isolation.ReadCommitted, isolation.SnapshotIsolation, isolation.Serializable
	for name, tc := range map[string]struct {
		s    *server
		want levels
	}{
		"MySQL":                 {with(mySQL, false), levels{ru, rc, rc, ser}},
		"MariaDB":               {with(mariaDB, false), levels{ru, rc, rc, ser}},
		"MariaDB with snapshot": {with(mariaDB, false, "innodb_snapshot_isolation"), levels{ru, rc, si, ser}},
		"Galera":                {with(mariaDB, true), levels{ru, rc, rc, rc}},
		"Galera with snapshot":  {with(mariaDB, true, "innodb_snapshot_isolation"), levels{ru, rc, si, rc}},
		"Group Replication":     {with(mySQL, false, "group_replication_group_name"), levels{ru, rc, rc, rc}},
	} {
		var got levels
		for i, l := range Isolations.Levels {
			own := l.Name
			c := tc.s.claim(own)
			got[i] = c.Level
			if c.Isolation != own || c.Source == "" {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		if keyless := tc.s.keyless(); keyless == tc.s.replicates() {
			t.Errorf("%s: keyless %v", name, keyless)
		}
	}
	d := &Database{isolation: repeatableRead, server: with(mySQL, false)}
	if c, err := d.Claim(""); err != nil || c.Isolation != repeatableRead {
		t.Errorf("%+v, %v", c, err)
	}
	_, err := d.Claim("snapshot")
	sqltest.WantError(t, "an isolation that is not there", err, db.Fatal, "")
	for on, refused := range map[string]bool{"group_replication_group_name": false, everywhere: true} {
		d := &Database{isolation: serializable, server: with(mySQL, false, "group_replication_group_name", on)}
		if _, err := d.Claim(""); (err != nil) != refused || refused && !strings.Contains(err.Error(), "all primaries takes no writes at serializable") {
			t.Errorf("with %s: %v", on, err)
		}
	}
}

func TestOldVersionsAreRefused(t *testing.T) {
	for version, fine := range map[string]bool{
		"8.0.16": true, "8.4.2-log": true, "9.0.1": true, "8.0.15": false, "5.7.44": false, "strange": false, "": false,
	} {
		if err := (&server{product: mySQL, version: version}).check(); (err == nil) != fine {
			t.Errorf("MySQL %s: %v", version, err)
		}
	}
	for version, fine := range map[string]bool{"10.11.19-MariaDB": true, "11.4.1-MariaDB": true, "10.2.1-MariaDB": true, "10.2.0-MariaDB": false, "5.5.68-MariaDB": false} {
		if err := (&server{product: mariaDB, version: version}).check(); (err == nil) != fine {
			t.Errorf("MariaDB %s: %v", version, err)
		}
	}
}
