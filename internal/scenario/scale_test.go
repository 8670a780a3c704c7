package scenario

import (
	"strings"
	"testing"
)

// TestScaleDownDividesFileSettings checks that the settings of a file are divided and flags are not. The written
// scenario must have the divided values and the factor once.
func TestScaleDownDividesFileSettings(t *testing.T) {
	for _, c := range []struct{ file, flags, want string }{
		{"clients=512 accounts=10000000 count=100000000", "scale-down=1000", "clients 512 to 1, count 100000000 to 100000, accounts 10000000 to 10000"},
		{"clients=16 accounts=10000000", "scale-down=2.5", "clients 16 to 6, accounts 10000000 to 4000000"},
		{"clients=16 count=10 accounts=100", "scale-down=1e9", "clients 16 to 1, count 10 to 1, accounts 100 to 12"},                // a payroll's
		{"clients=16 count=10 accounts=100 payroll-share=0", "scale-down=1e9", "clients 16 to 1, count 10 to 1, accounts 100 to 4"}, // the least
		{"clients=16 accounts=1000", "clients=8 scale-down=10", "accounts 1000 to 100"},
		{"duration=10m warmup=1m", "scale-down=10", "duration 10m0s to 1m0s, warmup 1m0s to 6s"},
		{"duration=10m cluster=etcd:3 nemesis=kill_leader_every_1m_for_5s", "scale-down=1000", "duration 10m0s to 1m15s"},
		{"count=100 rate=1000", "scale-down=10", "count 100 to 10, rate 1000 to 100"},
		{"rate=1000_for_30s,_0.5..5000_for_1m", "scale-down=10", "duration 1m30s to 9s, rate 1000 for 30s, 0.5..5000 for 1m to 100 for 3s, 0.5..500 for 6s"},
		{"cluster=k8s/postgres:2?cpu=3&memory=30G&disk=100G clients=4", "scale-down=4", "cluster k8s/postgres:2?cpu=3&memory=30G&disk=100G to k8s/postgres:2?cpu=750m&memory=7500M&disk=25G, clients 4 to 1"},
		{"cluster=k8s/postgres:2?cpu=3&memory=30Gi&disk=500M clients=4", "scale-down=1000", "cluster k8s/postgres:2?cpu=3&memory=30Gi&disk=500M to k8s/postgres:2?cpu=500m&memory=1000M&disk=500M, clients 4 to 1"},
		{"cluster=etcd:3?memory=on clients=4", "scale-down=4", "clients 4 to 1"},
		{"workload=tpcb scale=1000000 clients=200 workers=8", "scale-down=100", "clients 200 to 2, workers 8 to 2, scale 1000000 to 10000"},
		{"workload=kv records=5 in-flight=3", "scale-down=100", "records 5 to 1"},
		{"clients=16 accounts=1000 scale-down=4", "", "clients 16 to 4, accounts 1000 to 250"},
	} {
		file, flags := spaced(layer("file", c.file)), layer("flag", c.flags)
		s, _, err := all().Merge(file, flags)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if s.Scale.Changes != c.want {
			t.Errorf("%+v: %s", c, s.Scale.Changes)
		}
		written, err := all().File("scenario.yaml", s.YAML())
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := all().Merge(written)
		if err != nil || again.Scale.By != s.Scale.By || again.Clients != s.Clients || again.Get("accounts") != s.Get("accounts") {
			t.Errorf("%+v: read again: %v, %+v", c, err, again)
		}
		if s.Clients > 1 {
			more, _, err := all().Merge(written, layer("flag", "scale-down=2"))
			if err != nil || more.Scale.By != 2*s.Scale.By || more.Clients != s.Clients/2 {
				t.Errorf("%+v: scaled again: %v, %v, %d clients", c, err, more.Scale, more.Clients)
			}
		}
	}
}

func spaced(list []Setting) []Setting {
	for i := range list {
		list[i].Value = strings.ReplaceAll(list[i].Value, "_", " ")
	}
	return list
}

// TestScaleDownRefusesUselessFactors checks that an invalid factor and a scenario with nothing to divide are
// refused.
func TestScaleDownRefusesUselessFactors(t *testing.T) {
	for _, factor := range []string{"0.5", "0", "-1", "NaN", "Inf", "ten", "", "1e400", "0.5 applied"} {
		_, _, err := all().Merge(layer("file", "clients=4"), []Setting{{"scale-down", factor, "--scale-down"}})
		if err == nil || !strings.Contains(err.Error(), "it must be a number from 1 on") {
			t.Errorf("%q: %v", factor, err)
		}
	}
	for _, file := range []string{"", "clients=1", "isolation=serializable", "cluster=etcd:3"} {
		_, _, err := all().Merge(layer("file", file), layer("flag", "scale-down=10 count=100"))
		if err == nil || !strings.Contains(err.Error(), "the scenario has nothing to divide") {
			t.Errorf("%q: %v", file, err)
		}
	}
	s, _, err := all().Merge(layer("file", "clients=4"), layer("flag", "scale-down=1"))
	if err != nil || s.Clients != 4 || s.Scale != (Scale{}) {
		t.Errorf("by 1: %v, %+v", err, s.Scale)
	}
}
