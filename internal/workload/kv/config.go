package kv

import (
	"errors"
	"fmt"
	"math"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// The distributions of the keys that are chosen.
const (
	Uniform = "uniform"
	Zipfian = "zipfian" // a few keys often, scattered over all
	Latest  = "latest"  // the keys that were inserted last, most often
)

// Config says what the records are and what the clients do.
type Config struct {
	// Records, Seed, KeySize, ValueLow and ValueHigh make the records; sizes are in
	// bytes, and a value has ValueLow to ValueHigh. Zero is right only where an
	// earlier load is attached to: whatever the database holds.
	Records, Seed       uint64
	KeySize             uint64
	ValueLow, ValueHigh uint64

	// Connections is the number of connections, and each has InFlight transactions
	// under way at once: there are as many clients as both multiplied.
	Connections int
	InFlight    int
	Mode        string // empty is pipelined
	Isolation   string // as the database names it; empty is its own default

	Mix
	Preset string // whose mix it is; empty: 90 % reads

	ScanLength   uint64 // records; a scan asks for 1 to as many
	ZipfExponent float64
}

// Mix is what the transactions are, and which records they choose.
type Mix struct {
	Reads, Updates, Inserts, Scans, Modifies float64 // shares, which add up to 1

	Distribution string // empty is uniform
}

// Clients is how many clients there are.
func (c *Config) Clients() int { return c.Connections * max(c.InFlight, 1) }

const (
	leastKey   = uint64(keyHead)
	leastValue = uint64(fillerAt)
	mostKey    = 512
	mostValue  = 16 << 20
	mostScan   = 10_000

	maxInFlight = 1024
	maxLoaded   = 1_000_000_000_000 // records of a load
	maxClients  = 1<<history.ClientBits - 2
)

// check says in one sentence what is wrong with a configuration, for a database with
// these limits. The bounds of single settings are theirs.
func (c *Config) check(l db.Limits) error {
	most := uint64(l.Value)
	if commit := uint64(l.Commit); commit > c.KeySize {
		most = min(most, commit-c.KeySize)
	}
	switch n := c.Clients(); {
	case n < 1 || n > maxClients:
		return fmt.Errorf("clients is %d and in-flight %d: multiplied they must be 1 to %d", c.Connections, c.InFlight, maxClients)
	case c.Mode == workload.Procedure:
		return errors.New("mode procedure is not one of this workload, whose transactions are of one statement or two: take pipelined or interactive")
	case l.Value > 0 && c.ValueHigh > most:
		return fmt.Errorf("value-size is up to %d bytes, and this database takes values of at most %d here: take a smaller one", c.ValueHigh, most)
	}
	return c.Validate()
}

// Validate implements workload.Config.
func (c *Config) Validate() error {
	if sum := c.Reads + c.Updates + c.Inserts + c.Scans + c.Modifies; math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("read-share, update-share, insert-share, scan-share and modify-share are %.4g together: they are all transactions, so they must add up to 1", sum)
	}
	return nil
}
