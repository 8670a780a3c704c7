package kv

import (
	"fmt"
	"math"

	"stroppy/internal/db"
	"stroppy/internal/history"
)

// The distributions of the keys that are chosen.
const (
	Uniform = "uniform"
	Zipfian = "zipfian" // a few keys often, scattered over all
	Latest  = "latest"  // the keys that were inserted last, most often
)

// The modes in which the statements of a transaction travel.
const (
	Pipelined   = "pipelined"   // together, as far as they do not need each other's results
	Interactive = "interactive" // one by one
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

	// The shares of all transactions, which add up to 1.
	Reads, Updates, Inserts, Scans, Modifies float64

	ScanLength   uint64 // records; a scan asks for 1 to as many
	Distribution string // empty is uniform
	ZipfExponent float64
}

// Clients is how many clients there are.
func (c *Config) Clients() int { return c.Connections * max(c.InFlight, 1) }

const (
	leastKey   = uint64(keyHead)
	leastValue = uint64(fillerAt)
	mostKey    = 512
	mostValue  = 16 << 20
	mostScan   = 10_000
	maxClients = 1<<history.ClientBits - 2
)

// check says in one sentence what is wrong with a configuration, whatever the
// database.
func (c *Config) check() error {
	if c.Connections < 1 || c.InFlight < 0 || c.Connections > maxClients || c.InFlight > maxClients || c.Clients() > maxClients {
		return fmt.Errorf("clients is %d and in-flight %d: multiplied they must be 1 to %d", c.Connections, c.InFlight, maxClients)
	}
	sum := 0.0
	for _, share := range []struct {
		name  string
		value float64
	}{
		{"read-share", c.Reads}, {"update-share", c.Updates}, {"insert-share", c.Inserts}, {"scan-share", c.Scans}, {"modify-share", c.Modifies},
	} {
		if !(share.value >= 0 && share.value <= 1) { // a NaN too
			return fmt.Errorf("%s is %v: take a number from 0 to 1", share.name, share.value)
		}
		sum += share.value
	}
	if math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("the shares of reads, updates, inserts, scans and modifies add up to %.4g: they are all transactions, so take shares that add up to 1", sum)
	}
	if c.Scans > 0 && (c.ScanLength < 1 || c.ScanLength > mostScan) {
		return fmt.Errorf("scan-length is %d: take 1 to %d", c.ScanLength, mostScan)
	}
	switch c.Distribution {
	case "", Uniform:
	case Zipfian, Latest:
		if !(c.ZipfExponent > 0 && c.ZipfExponent <= 100) {
			return fmt.Errorf("the zipfian exponent is %v: take one above 0, up to 100", c.ZipfExponent)
		}
	default:
		return fmt.Errorf("no distribution is called %q: take uniform, zipfian or latest", c.Distribution)
	}
	switch c.Mode {
	case "", Pipelined, Interactive:
	default:
		return fmt.Errorf("mode %s is not one of this workload, whose transactions are of one statement or two: take pipelined or interactive", c.Mode)
	}
	return c.checkSizes()
}

func (c *Config) checkSizes() error {
	switch {
	case c.Records > MaxRecords:
		return fmt.Errorf("records is %d: take 1 to %d", c.Records, uint64(MaxRecords))
	case c.KeySize != 0 && (c.KeySize < leastKey || c.KeySize > mostKey):
		return fmt.Errorf("key-size is %d: take %d to %d bytes", c.KeySize, leastKey, mostKey)
	case c.ValueLow > c.ValueHigh || c.ValueHigh > mostValue || c.ValueHigh != 0 && c.ValueLow < leastValue:
		return fmt.Errorf("value-size is %d..%d: take %d to %d bytes, the lower number first", c.ValueLow, c.ValueHigh, leastValue, mostValue)
	}
	return nil
}

func (c *Config) options() db.SessionOptions {
	o := db.SessionOptions{Isolation: c.Isolation, Mode: db.Pipelined}
	if c.Mode == Interactive {
		o.Mode = db.Interactive
	}
	return o
}
