package logs

import (
	"math/rand/v2"
	"slices"

	"stroppy/internal/check"
	"stroppy/internal/history"
)

// mutant is one error of a database in a log, with the check that must detect it. It returns false if the log
// has no suitable place.
type mutant struct {
	name, check string
	spoil       func(rng *rand.Rand, d *diary) bool
}

// pick returns a random leg of a committed append for which ok returns true.
func (d *diary) pick(rng *rand.Rand, ok func(i int) bool) (int, bool) {
	for range 200 {
		if i := rng.IntN(len(d.legs)); d.outcome(d.legs[i].Transaction) == history.Committed && d.legs[i].Mark != history.Tombstone && ok(i) {
			return i, true
		}
	}
	return 0, false
}

func (d *diary) outcome(id history.ID) history.Outcome {
	for _, tx := range d.txns {
		if tx.ID == id {
			return tx.Outcome
		}
	}
	return history.Unknown
}

// onTombstone falsifies one of the tombstones.
func (d *diary) onTombstone(rng *rand.Rand, spoil func(i int) bool) bool {
	for _, i := range rng.Perm(len(d.legs)) {
		if d.legs[i].Mark == history.Tombstone {
			return spoil(i)
		}
	}
	return false
}

func anywhere(int) bool { return true }

// rename makes the end of a stream name the writer of its last entry, as a database does.
func (d *diary) rename(stream uint64) {
	for i := range d.ends {
		if d.ends[i].N == stream {
			d.ends[i].Writer = 0
			for _, l := range d.legs {
				if l.Object == stream {
					d.ends[i].Writer = l.Transaction
				}
			}
		}
	}
}

// shift moves the entries of a stream from leg i on, and the stream's end.
func (d *diary) shift(i int, by int64) {
	stream := d.legs[i].Object
	for ; i < len(d.legs) && d.legs[i].Object == stream; i++ {
		d.legs[i].Version += uint64(by)
	}
	d.ends[stream].Version += uint64(by)
}

func mutants() []mutant {
	return []mutant{
		{"a whole append is lost from the end of a stream", check.Durable, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, func(i int) bool {
				return i+1 == len(d.legs) || d.legs[i+1].Object != d.legs[i].Object
			})
			if ok {
				id, stream := d.legs[i].Transaction, d.legs[i].Object
				d.legs = slices.DeleteFunc(d.legs, func(l history.Row) bool { return l.Transaction == id && l.Mark != history.Tombstone })
				d.ends[stream].Version -= uint64(d.batch)
				d.rename(stream)
			}
			return ok
		}},
		{"one event is lost, and those behind it move up", check.Durable, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			if ok {
				d.shift(i, -1)
				d.legs = slices.Delete(d.legs, i, i+1)
			}
			return ok
		}},
		{"one event leaves a hole", Continuous, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, func(i int) bool { return i+1 < len(d.legs) && d.legs[i+1].Object == d.legs[i].Object })
			if ok {
				d.legs = slices.Delete(d.legs, i, i+1)
			}
			return ok
		}},
		{"an event is there twice", check.ExactlyOnce, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			if ok {
				twice := d.legs[i]
				d.shift(i, 1)
				d.legs = slices.Insert(d.legs, i, twice)
			}
			return ok
		}},
		{"neighbours are swapped", Order, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, func(i int) bool { return i+1 < len(d.legs) && d.legs[i+1].Object == d.legs[i].Object })
			if ok {
				d.legs[i], d.legs[i+1] = d.legs[i+1], d.legs[i]
				d.legs[i].Version, d.legs[i+1].Version = d.legs[i+1].Version, d.legs[i].Version
			}
			return ok
		}},
		{"an event is in another stream", Order, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, func(i int) bool { return d.streams > 1 })
			if ok {
				leg := d.legs[i]
				d.shift(i, -1)
				d.legs = slices.Delete(d.legs, i, i+1)
				leg.Object = (leg.Object + 1) % d.streams
				d.ends[leg.Object].Version++
				leg.Version = d.ends[leg.Object].Version
				at := len(d.legs)
				for at > 0 && d.legs[at-1].Object > leg.Object {
					at--
				}
				d.legs = slices.Insert(d.legs, at, leg)
			}
			return ok
		}},
		{"a value is cut short", check.Durable, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			if ok {
				d.legs[i].Amount, d.legs[i].State, d.unexpected = 0, history.Broken, append(d.unexpected, "stream 0 has at place 1 what should be an event")
			}
			return ok
		}},
		{"a value that is not whole, of whoever", Whole, func(_ *rand.Rand, d *diary) bool {
			d.unexpected = append(d.unexpected, "stream 0 has at place 1 what should be an event")
			return true
		}},
		{"a whole value of another length", Whole, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			if ok {
				d.legs[i].Amount++
			}
			return ok
		}},
		{"an event of another batch in its place", check.Durable, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			j, ok2 := d.pick(rng, func(j int) bool { return d.legs[j].Transaction != d.legs[i].Transaction })
			if ok && ok2 {
				d.legs[i].Transaction, d.legs[i].Number, d.legs[i].Amount = d.legs[j].Transaction, d.legs[j].Number, d.legs[j].Amount
			}
			return ok && ok2
		}},
		{"an applied append is reported as aborted", check.NoGhost, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			if ok {
				d.reported(d.legs[i].Transaction, history.Aborted)
			}
			return ok
		}},
		{"an append is applied although a look-up has closed its place", check.NoGhost, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			if ok {
				d.reported(d.legs[i].Transaction, history.Aborted)
				void := history.Row{Transaction: d.legs[i].Transaction, Mark: history.Tombstone, Object: d.legs[i].Object, Version: d.legs[i].Version}
				d.shift(i, 1)
				d.legs = slices.Insert(d.legs, i, void)
			}
			return ok
		}},
		{"an append that nobody sent", check.NoGhost, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			if ok {
				was := d.legs[i].Transaction
				now := history.NewID(1, was.Client(), 1_000_000)
				for i := range d.legs {
					if d.legs[i].Transaction == was {
						d.legs[i].Transaction = now
					}
				}
			}
			return ok
		}},
		{"an append of unknown outcome is there in part", Whole, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, func(int) bool { return d.batch > 1 })
			if ok {
				d.reported(d.legs[i].Transaction, history.Unknown)
				d.shift(i, -1)
				d.legs = slices.Delete(d.legs, i, i+1)
			}
			return ok
		}},
		{"a client was given another place", Order, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			if ok {
				for _, tx := range d.txns {
					if tx.ID == d.legs[i].Transaction {
						tx.Ops[0].Version++
					}
				}
			}
			return ok
		}},
		{"a stream's end is behind its last entry", Continuous, func(rng *rand.Rand, d *diary) bool {
			d.ends[rng.Uint64N(d.streams)].Version++
			return true
		}},
		{"a stream is gone", Continuous, func(rng *rand.Rand, d *diary) bool {
			i := rng.IntN(len(d.ends))
			d.ends = slices.Delete(d.ends, i, i+1)
			return true
		}},
		{"an entry that is not whole, of an append of unknown outcome", Whole, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, anywhere)
			if ok {
				d.reported(d.legs[i].Transaction, history.Unknown)
				d.legs[i].Amount, d.legs[i].State = 0, history.Broken
			}
			return ok
		}},
		{"an acknowledged append is there in part", Whole, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, func(int) bool { return d.batch > 1 })
			if ok {
				d.shift(i, -1)
				d.legs = slices.Delete(d.legs, i, i+1)
			}
			return ok
		}},
		{"a stream's end names another writer", Continuous, func(rng *rand.Rand, d *diary) bool {
			end := &d.ends[rng.Uint64N(d.streams)]
			end.Writer++
			return true
		}},
		{"a tombstone of an append that nobody looked up", check.NoGhost, func(rng *rand.Rand, d *diary) bool {
			return d.onTombstone(rng, func(i int) bool {
				for _, tx := range d.txns {
					if tx.ID == d.legs[i].Transaction {
						tx.LookedUp = false
					}
				}
				return true
			})
		}},
		{"a tombstone twice", check.ExactlyOnce, func(rng *rand.Rand, d *diary) bool {
			return d.onTombstone(rng, func(i int) bool {
				again := d.legs[i]
				d.shift(i, 1)
				d.legs = slices.Insert(d.legs, i, again)
				return true
			})
		}},
		{"a tombstone in another stream", Order, func(rng *rand.Rand, d *diary) bool {
			return d.onTombstone(rng, func(i int) bool {
				for _, tx := range d.txns {
					if tx.ID == d.legs[i].Transaction {
						tx.Ops[0].Object = (tx.Ops[0].Object + 1) % d.streams
					}
				}
				return d.streams > 1
			})
		}},
		{"two entries at one place", Continuous, func(rng *rand.Rand, d *diary) bool {
			i, ok := d.pick(rng, func(i int) bool { return i > 0 && d.legs[i-1].Object == d.legs[i].Object })
			if ok {
				d.shift(i, -1)
			}
			return ok
		}},
	}
}

// reported changes what the client of an append received.
func (d *diary) reported(id history.ID, outcome history.Outcome) {
	for _, tx := range d.txns {
		if tx.ID == id {
			tx.Outcome, tx.Ops[0].Observed, tx.Ops[0].Version = outcome, false, 0
		}
	}
}
