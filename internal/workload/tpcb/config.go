package tpcb

import (
	"fmt"
	"math"
	"slices"

	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// Config says what is loaded and what the clients do.
type Config struct {
	// Scale, Ratio and Seed make the data. Zero is right only where an earlier load
	// is attached to: whatever the database holds.
	Scale uint64
	Ratio [noKind]uint64 // branches, tellers and accounts of one scale
	Seed  uint64

	Clients   int
	Mode      string // empty is pipelined
	Isolation string // as the database names it; empty is its own default
	History   bool   // each transaction adds its row to the history

	// Versions lets each row count the transactions that touched it, in tables that
	// are not pgbench's. A key-value store does so always.
	Versions bool
	// AnyRows takes rows with or without versions, as an earlier load has made them.
	AnyRows bool

	Zipfian      bool
	ZipfExponent float64 // of rank^-exponent, above 0
}

// DefaultConfig is what runs without being asked: pgbench's ratio. Seed and Clients
// are the caller's.
func DefaultConfig() Config {
	return Config{Scale: 1, Ratio: [noKind]uint64{1, 10, 100_000}, History: true, ZipfExponent: 0.99}
}

// check says in one sentence what is wrong with a configuration, whatever the
// database. The bounds of single settings are theirs.
func (c *Config) check() error {
	if c.Clients < 1 || c.Clients >= 1<<history.ClientBits {
		return fmt.Errorf("clients is %d: take 1 to %d", c.Clients, 1<<history.ClientBits-1)
	}
	if c.Mode == workload.Procedure && c.Versions && !c.AnyRows {
		return errVersionsProcedure
	}
	if c.Versions && !c.AnyRows && !c.History {
		return errVersionsHistory
	}
	if c.Scale == 0 && c.Ratio == [noKind]uint64{} {
		return nil
	}
	_, err := c.size()
	return err
}

var (
	errVersionsProcedure = fmt.Errorf("the procedure is written for pgbench's own rows: take pipelined or interactive with --versions")
	errVersionsHistory   = fmt.Errorf("versions come from the rows of the history: leave out --history=false or --versions")
)

// maxRows bounds what is loaded, so that no sum of ids or rows overflows.
const maxRows = 1 << 40

// size returns the rows that are asked for, of which there must be some.
func (c *Config) size() (s size, err error) {
	for k, rows := range c.Ratio {
		switch {
		case c.Scale == 0 || slices.Contains(c.Ratio[:], 0):
			return s, fmt.Errorf("scale is %d and ratio %s: each number must be 1 or more", c.Scale, ratioText(c.Ratio))
		case rows > math.MaxInt32 || c.Scale > maxRows/rows:
			return s, fmt.Errorf("scale %d with ratio %s is more than %d rows: take less", c.Scale, ratioText(c.Ratio), uint64(maxRows))
		}
		s[k] = c.Scale * rows
	}
	if s[branch] > math.MaxInt32 || s[teller] > math.MaxInt32 {
		return s, fmt.Errorf("scale %d with ratio %s has more branches or tellers than numbers of 4 bytes can distinguish: take less", c.Scale, ratioText(c.Ratio))
	}
	return s, nil
}
