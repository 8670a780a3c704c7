package events

import (
	"fmt"

	"stroppy/internal/db"
)

// Config is what a log has and what is appended to it.
type Config struct {
	Clients   int
	Seed      uint64 // 0: that of the log in the database
	Streams   uint64 // 0: as many as the log in the database has
	Batch     int    // events in one commit
	Size      Size   // of the values
	Fragment  uint64 // bytes of a value that one piece holds; 0: as many as the database takes
	Isolation string // as the database names it; empty is its own default
	Mode      string // empty: pipelined
}

// Size is a range of bytes from which each value's length is drawn.
type Size struct{ Low, High uint64 }

const (
	maxStreams = 1<<17 - 1 // each client may have one
	maxBatch   = 1000      // events of one commit
	maxValue   = 16 << 20  // bytes
	maxCommit  = 256 << 20 // bytes, which drivers keep until they are sent
)

// Validate implements workload.Config.
func (c *Config) Validate() error {
	if c.Fragment > 0 && c.Fragment < leastValue {
		return fmt.Errorf("fragment is %d: it must be 0, or at least %d bytes", c.Fragment, leastValue)
	}
	return nil
}

// pieces is how many pieces the longest value has.
func (c *Config) pieces() uint64 { return (c.Size.High + c.Fragment - 1) / c.Fragment }

// limit fills in the size of a piece and refuses commits that the database cannot
// take. around is what a piece takes beside its part of the value, in bytes.
func (c *Config) limit(database db.Database, around uint64) error {
	l := database.Limits()
	most := uint64(l.Value)
	switch {
	case most == 0 && c.Fragment == 0:
		c.Fragment = maxValue
	case most == 0:
	case c.Fragment == 0:
		c.Fragment = min(most-around, maxValue)
	case c.Fragment+around > most:
		return fmt.Errorf("fragment is %d, and this database holds at most %d bytes of a value in one piece: take less, or 0 for as many as it holds", c.Fragment, most-around)
	}
	commit := uint64(c.Batch) * (c.Size.High + c.pieces()*around)
	if most := uint64(l.Commit); most > 0 && commit > most {
		return fmt.Errorf("a batch of %d events of up to %d bytes makes commits of up to %d bytes, and this database takes at most %d in one: take a smaller batch or a smaller value-size",
			c.Batch, c.Size.High, commit, most)
	}
	return nil
}
