package cluster

import (
	"net/url"
	"testing"
	"time"
)

// TestParamsReadValuesAndSuggestNearestName checks that parameters are read into variables, and that an unknown
// name gives an error with the nearest known name.
func TestParamsReadValuesAndSuggestNearestName(t *testing.T) {
	var on bool
	var limit time.Duration
	settings := map[string]string{}
	p := Params{
		Kind:  "a cluster of X",
		Known: map[string]func(string) error{"on": OnOff(&on), "limit": Between(&limit, 200*time.Millisecond, time.Minute, "1s")},
		Set:   Settings("X", "_", []string{"port"}, settings),
	}
	if err := p.Read(url.Values{"on": {"on"}, "limit": {"2s"}, "set.A_b": {"c"}}); err != nil || !on || limit != 2*time.Second || settings["a_b"] != "c" {
		t.Errorf("%v, %v, %v, %v", on, limit, settings, err)
	}
	want := "the cluster's parameter lomit: a cluster of X has no such parameter; the nearest is limit, and set.NAME=VALUE sets a setting of the server's"
	if err := p.Read(url.Values{"lomit": {"2s"}}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	want = "the cluster's parameter threads: a cluster of X has no such parameter; it has limit, on, bin, and set.NAME=VALUE sets a setting of the server's"
	if err := p.Read(url.Values{"threads": {"2"}}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
