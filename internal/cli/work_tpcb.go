package cli

import (
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
	"stroppy/internal/workload/tpcb"
)

// tpcbWork is the transaction of TPC-B.
func tpcbWork() kindOfWork {
	return kindOfWork{
		name: scenario.TPCB, about: "the transaction of TPC-B on pgbench's own tables; the sums and every row are checked",
		bind: func(database db.Database, c *config, loads bool) (workload.Workload, error) {
			return tpcb.New(database, c.tpcbConfig(loads))
		},
		check:  tpcb.CheckDirs,
		checks: tpcb.Checks,
		names:  func(h history.Header) naming { return tpcb.NamesOf(h) },
		words:  numberWording,
	}
}

// tpcbConfig is what the workload is asked for. Unless this call loads, what nobody
// named is left to what the database holds.
func (c *config) tpcbConfig(loads bool) tpcb.Config {
	t := tpcb.DefaultConfig()
	t.Clients, t.Mode, t.Isolation = c.Clients, c.Mode, c.Isolation
	t.Zipfian, t.ZipfExponent = c.Zipfian, c.ZipfExponent
	t.History, t.Versions = c.TPCB.History, c.TPCB.Versions
	t.Scale, t.Ratio, t.Seed = c.TPCB.Scale, c.TPCB.Ratio, c.Seed
	if !loads {
		t.AnyRows = !c.named["versions"]
		if !c.named["scale"] && !c.named["ratio"] {
			t.Scale, t.Ratio = 0, [3]uint64{}
		}
		if !c.named["seed"] {
			t.Seed = 0
		}
	}
	return t
}

// takeTPCB takes over the scale and the ratio of the data that a run turned out to
// drive, if it is one of this workload.
func (c *config) takeTPCB(h history.Header) {
	if scale, ratio, ok := tpcb.Shape(h); ok {
		c.TPCB.Scale, c.TPCB.Ratio = scale, ratio
	}
}
