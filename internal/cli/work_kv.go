package cli

import (
	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/scenario"
	"stroppy/internal/workload"
	"stroppy/internal/workload/kv"
)

// kvWork is the workload kv as the commands know it.
func kvWork() kindOfWork {
	return kindOfWork{
		name: scenario.KV, about: "reads and writes of single records by key, and scans: YCSB's mixes, 90 % reads if none is named",
		bind: func(database db.Database, c *config, loads bool) (workload.Workload, error) {
			return kv.New(database, c.kvConfig(loads))
		},
		check:  kv.CheckDirs,
		checks: kv.Checks,
		tables: kv.Tables,
		names:  func(h history.Header) naming { return kv.NamesOf(h) },
		words:  recordWording,
	}
}

// kvConfig is the workload that the scenario describes. What makes the records and
// nobody named is left to what the database holds, unless this call loads.
func (c *config) kvConfig(loads bool) kv.Config {
	s := &c.KV
	k := kv.Config{
		Connections: c.Clients, InFlight: s.InFlight, Mode: c.Mode, Isolation: c.Isolation,
		Reads: s.Reads, Updates: s.Updates, Inserts: s.Inserts, Scans: s.Scans, Modifies: s.Modifies,
		ScanLength: s.ScanLength, Distribution: s.Distribution, ZipfExponent: c.ZipfExponent,
	}
	given := func(name string) bool { return loads || c.named[name] }
	if given("seed") {
		k.Seed = c.Seed
	}
	if given("records") {
		k.Records = s.Records
	}
	if given("key-size") {
		k.KeySize = s.KeySize
	}
	if given("value-size") {
		k.ValueLow, k.ValueHigh = c.ValueSize.Low, c.ValueSize.High
	}
	return k
}

// loadClients is how many clients the drive has: of the workload kv a connection may
// have several.
func (c *config) loadClients() int {
	if c.Workload == scenario.KV {
		return c.Clients * max(c.KV.InFlight, 1)
	}
	return c.Clients
}

// takeKV takes over the size of the data that a run turned out to drive, if it is one
// of this workload.
func (c *config) takeKV(h history.Header) {
	if key, low, high, ok := kv.Shape(h); ok {
		c.KV.Records, c.KV.KeySize, c.ValueSize = h.Accounts, key, scenario.Size{Low: low, High: high}
	}
}
