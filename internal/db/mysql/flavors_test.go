package mysql

import (
	"strings"
	"testing"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
	"stroppy/internal/isolation"
)

// TestProductsAreDistinguished checks that servers are distinguished by their descriptions. The descriptions of
// Percona Server and TiDB come from their documentation.
func TestProductsAreDistinguished(t *testing.T) {
	for _, tc := range []struct{ version, comment, replication, name string }{
		{"9.7.4-2", "(Debian)", "", "MySQL"},
		{"8.0.46", "MySQL Community Server - GPL", "group", "MySQL Group Replication"},
		{"8.0.36-28", "Percona Server (GPL), Release 28, Revision 47601f19", "", "Percona Server"},
		{"8.0.36-28", "Percona Server (GPL), Release 28, Revision 47601f19", "group", "Percona Server Group Replication"},
		{"8.0.36-28.1", "Percona XtraDB Cluster (GPL), Release rel28, Revision bfb687f", "galera", "Percona XtraDB Cluster"},
		{"8.0.35-26.16", "MySQL Community Server - (GPL), Galera", "galera", "MySQL Galera Cluster"},
		{"10.11.19-MariaDB-0+deb12u1", "Debian 12", "", "MariaDB"},
		{"11.8.3-MariaDB", "mariadb.org binary distribution", "galera", "MariaDB Galera Cluster"},
		{"8.0.11-TiDB-v8.5.1", "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible", "", "TiDB"},
	} {
		s := &server{product: productOf(tc.version), version: tc.version, variables: map[string]string{versionComment: tc.comment}}
		s.galera = tc.replication == "galera"
		if tc.replication == "group" {
			s.variables["group_replication_group_name"] = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
		}
		if info := s.info(); info.Name != tc.name || info.Version != tc.version {
			t.Errorf("%s, %s: %s %s, not %s", tc.version, tc.comment, info.Name, info.Version, tc.name)
		}
	}
}

// TestTiDBHasItsOwnLevelsAndErrors checks the documented levels, constraints and errors of TiDB.
func TestTiDBHasItsOwnLevelsAndErrors(t *testing.T) {
	const rc, si = isolation.ReadCommitted, isolation.SnapshotIsolation
	for _, tc := range []struct {
		mode, noRetry        string
		committed, snapshots isolation.Level
	}{
		{"pessimistic", "ON", rc, rc}, {"optimistic", "ON", si, si}, {"", "ON", si, si}, {"optimistic", "", si, si}, {"optimistic", "OFF", rc, rc},
	} {
		s := &server{product: tiDB, variables: map[string]string{transactionMode: tc.mode, noAutoRetry: tc.noRetry}}
		for name, want := range map[string]isolation.Level{readUncommitted: isolation.ReadUncommitted, readCommitted: tc.committed, repeatableRead: tc.snapshots} {
			if c := s.claim(name); c.Level != want || !strings.Contains(c.Source, "docs.pingcap.com") {
				t.Errorf("%+v, %s: %+v", tc, name, c)
			}
		}
	}
	for version, fine := range map[string]bool{"8.0.11-TiDB-v8.5.1": true, "5.7.25-TiDB-v7.2.0": true, "5.7.25-TiDB-v7.1.5": false, "8.0.11-TiDB-None": false} {
		s := &server{product: productOf(version), version: version, variables: map[string]string{checkConstraints: "ON"}}
		if err := s.check(); s.product != tiDB || (err == nil) != fine {
			t.Errorf("%s: %v", version, err)
		}
	}
	s := &server{product: tiDB, version: "8.0.11-TiDB-v8.5.1", variables: map[string]string{checkConstraints: "OFF"}}
	if err := s.check(); err == nil || !strings.Contains(err.Error(), "SET GLOBAL tidb_enable_check_constraint = ON") {
		t.Error(err)
	}
	for number, want := range map[uint16][2]db.Class{
		9007: {db.Aborted, db.Aborted}, 8028: {db.Aborted, db.Unknown}, 9005: {db.Unavailable, db.Unknown}, 8501: {db.Fatal, db.Unknown}, 3819: {db.Constraint, db.Constraint},
	} {
		before, _ := classify(tiDB, number, "HY000", wire.Before)
		if atCommit, _ := classify(tiDB, number, "HY000", wire.Committing); before != want[0] || atCommit != want[1] {
			t.Errorf("%d: %v, %v", number, before, atCommit)
		}
	}
	if class, _ := classify(mySQL, 9007, "HY000", wire.Committing); class != db.Unknown {
		t.Errorf("9007 of MySQL is %v", class)
	}
}
