//go:build !embedded

package registry

import (
	"testing"
)

// TestEachServerGetsItsOwnURL checks that each server of a URL gets a URL with the same account, database and
// parameters. One server, Sentinels, and a file give no URLs.
func TestEachServerGetsItsOwnURL(t *testing.T) {
	for address, want := range map[string][]string{
		"postgres://u:p%40@h1,h2:5433/bank?target_session_attrs=read-write&sslmode=disable": {
			"h1:5432 postgres://u:p%40@h1:5432/bank?sslmode=disable&target_session_attrs=any",
			"h2:5433 postgres://u:p%40@h2:5433/bank?sslmode=disable&target_session_attrs=any"},
		"mysql://u:p@h1,h2/bank": {"h1:3306 mysql://u:p@h1:3306/bank", "h2:3306 mysql://u:p@h2:3306/bank"},
		"redis://:p@h1,h2/3?wait=1&wait_timeout=1s&timeout=2s": {
			"h1:6379 redis://:p@h1:6379/3?read=any&timeout=2s", "h2:6379 redis://:p@h2:6379/3?read=any&timeout=2s"},
		"mongodb://h1,h2/bank?w=1": {
			"h1:27017 mongodb://h1:27017/bank?directConnection=true&w=1", "h2:27017 mongodb://h2:27017/bank?directConnection=true&w=1"},
		"etcd://h1,h2":                        {"h1:2379 etcd://h1:2379?reads=serializable", "h2:2379 etcd://h2:2379?reads=serializable"},
		"redis://h1,h2?sentinel=mymaster":     nil,
		"postgres://u@h1/bank":                nil,
		"cockroach://u@h1,h2/bank":            nil,
		"postgres://u@/bank?host=/run/a,/run": nil,
		"sqlite:bank.db":                      nil,
		"":                                    nil,
	} {
		var got []string
		for _, s := range ServersOf(address, Database.ReadsAlone) {
			got = append(got, s[0]+" "+s[1])
			if kind, err := Find(s[1]); err != nil || kind.Alone == nil {
				t.Errorf("%s: %v", s[1], err)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s gives %q", address, got)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s gives %q", address, got[i])
			}
		}
	}
	if list := ServersOf("mysql://u:p@h1,h2/bank", Database.PrimaryAlone); list != nil {
		t.Errorf("of MySQL all servers may take writes: %v", list)
	}
}
