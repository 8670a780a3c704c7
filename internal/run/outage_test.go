package run

import (
	"testing"

	"stroppy/internal/fault"
	"stroppy/internal/report"
)

// TestOutageIsDivided checks which part of an outage belongs to the cluster.
func TestOutageIsDivided(t *testing.T) {
	for name, c := range map[string]struct {
		events          []report.Event
		drive           *report.Drive
		cluster, client float64
		leader          string // empty: it is not known
	}{
		"named later":                   {[]report.Event{{AtSeconds: 12, Leader: "n1"}, {AtSeconds: 12.1, Named: "n2"}, {AtSeconds: 17.5, Named: "n1"}}, nil, 7.5, 0.5, "n1"},
		"named before it is seen":       {[]report.Event{{AtSeconds: 12, Named: "n1"}, {AtSeconds: 12.5, Leader: "n1"}}, nil, 2.5, 5.5, "n1"},
		"named, and never seen":         {[]report.Event{{AtSeconds: 12, Named: "n1"}}, nil, 0, 0, ""},
		"another node":                  {[]report.Event{{AtSeconds: 9, Leader: "n0"}, {AtSeconds: 15.5, Leader: "n1"}}, nil, 5.5, 2.5, "n1"},
		"two, one after the other":      {[]report.Event{{AtSeconds: 12, Leader: "n1"}, {AtSeconds: 16, Leader: "n2"}}, nil, 0, 0, ""},
		"seen just after the commit":    {[]report.Event{{AtSeconds: 18.0625, Leader: "n1"}}, nil, 8, 0, "n1"},
		"asked again a while later":     {[]report.Event{{AtSeconds: 18.25, Leader: "n1"}}, nil, 8, 0, "n1"},
		"nobody":                        {nil, nil, 0, 0, ""},
		"before and after":              {[]report.Event{{AtSeconds: 9, Leader: "n0"}, {AtSeconds: 19, Leader: "n1"}}, nil, 0, 0, ""},
		"what is no change of the lead": {[]report.Event{{AtSeconds: 15.5, Text: "n1 has Patroni's leader key"}}, nil, 0, 0, ""},
		"a commit before the end":       {[]report.Event{{AtSeconds: 15.5, Leader: "n1"}}, &report.Drive{WarmupSeconds: 2, Seconds: 16.01}, 5.5, 2.5, "n1"},
		"a commit a nanosecond before":  {[]report.Event{{AtSeconds: 15.5, Leader: "n1"}}, &report.Drive{WarmupSeconds: 2.7, Seconds: 15.300000001}, 5.5, 2.5, "n1"},
		"no commit before the end":      {[]report.Event{{AtSeconds: 15.5, Leader: "n1"}}, &report.Drive{WarmupSeconds: 2.7, Seconds: 15.3}, 0, 0, ""},
	} {
		r := &report.Result{Drive: c.drive, ClusterEvents: c.events, Faults: []fault.Record{{OutageAt: new(fault.Round(10.0)), Outage: new(fault.Round(8.0))}, {Outage: new(fault.Round(0.0))}}}
		(&conductor{result: r}).divideOutages()
		f := r.Faults[0]
		switch {
		case r.Faults[1].OutageCluster != nil:
			t.Errorf("%s: what is no outage has parts", name)
		case f.OutageLeader != c.leader || (f.OutageCluster == nil) != (c.leader == "") || (f.OutageClient == nil) != (c.leader == ""):
			t.Errorf("%s: %+v", name, f)
		case c.leader != "" && (*f.OutageCluster != fault.Round(c.cluster) || *f.OutageClient != fault.Round(c.client)):
			t.Errorf("%s: %v and %v, want %v and %v", name, *f.OutageCluster, *f.OutageClient, c.cluster, c.client)
		}
	}
}
