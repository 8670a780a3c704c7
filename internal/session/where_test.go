package session

import (
	"testing"

	"stroppy/internal/report"
)

// TestPlaceOfServersFollowsFromAddress checks that the place of servers follows from their address alone, and that
// a name without an address says nothing.
func TestPlaceOfServersFollowsFromAddress(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://me:secret@127.0.0.1:5432/db":         report.OnThisMachine,
		"postgres://[::1]/db":                            report.OnThisMachine,
		"postgres://me@/db?host=/var/run/postgresql":     report.OnThisMachine,
		"postgres://203.0.113.7/db":                      report.OnOtherMachines,
		"mysql://root@203.0.113.7,127.0.0.1:3307/db":     report.OnBoth,
		"etcd://203.0.113.7,203.0.113.8":                 report.OnOtherMachines,
		"postgres://there-is-no-such-host.invalid/db":    "",
		"etcd://127.0.0.1,there-is-no-such-host.invalid": "",
		"postgres://me@/db":                              "",
		"fdb:/etc/foundationdb/fdb.cluster":              "",
	} {
		if got := WhereServers(false, url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	if got := WhereServers(true, ""); got != report.InThisProcess {
		t.Errorf("embedded: %q", got)
	}
}
