package stats

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"stroppy/internal/history"
)

// Move is a client's change to another server at a time. Servers are numbered from 0; -1 is an unknown
// server.
type Move struct {
	Client uint64
	At     int64 // nanoseconds since the run's start
	Server int
}

// Acknowledging is a period in which a server acknowledged writes.
type Acknowledging struct {
	Server       int
	From, To     time.Duration // the first and the last acknowledgement
	LastBegun    time.Duration // when the latest of the acknowledged writes was sent
	Acknowledged uint64
	Lost         uint64        // of them
	LostFrom     time.Duration // the first acknowledgement of a lost write, if there is one
}

const (
	// silence is the time without an acknowledged write that ends a period.
	silence = time.Second
	// acknowledgedBin is the resolution in which acknowledgements are counted.
	acknowledgedBin = int64(100 * time.Millisecond)
)

// Acknowledgements counts the acknowledged writes of each server over time. A write counts for the server of
// its client's session at the end of the write.
type Acknowledgements struct {
	moves [][]Move // by client, in order
	bins  []map[int64]*Acknowledging

	overlaps []Overlap
	during   [][2]Acknowledging // what the two servers of each overlap acknowledged in it
}

// NewAcknowledgements returns an empty count. The moves of each client must be in order.
func NewAcknowledgements(servers int, moves []Move) *Acknowledgements {
	a := &Acknowledgements{bins: make([]map[int64]*Acknowledging, servers)}
	for i := range a.bins {
		a.bins[i] = map[int64]*Acknowledging{}
	}
	for _, m := range moves {
		if m.Client >= 1<<history.ClientBits {
			continue
		}
		a.moves = grown(a.moves, int(m.Client))
		a.moves[m.Client] = append(a.moves[m.Client], m)
	}
	return a
}

// server returns the server of a client's transaction that ended at a time, or -1 if it is not known. The
// transactions of each client must be queried in order.
func (a *Acknowledgements) server(client uint64, end int64) int {
	if client >= uint64(len(a.moves)) {
		return -1
	}
	moves := a.moves[client]
	for len(moves) > 1 && moves[1].At <= end {
		moves = moves[1:]
	}
	a.moves[client] = moves
	if len(moves) == 0 || moves[0].At > end {
		return -1
	}
	return moves[0].Server
}

// Add counts a transaction if it is a write that its server acknowledged. A write found by a look-up was not
// acknowledged. kept reports whether a write is in the end state; nil: not known.
func (a *Acknowledgements) Add(tx *history.Transaction, kept func(history.ID) bool) {
	if tx.Outcome != history.Committed || tx.LookedUp || tx.Kind.ReadOnly() {
		return
	}
	server := a.server(tx.ID.Client(), tx.End)
	if server < 0 || server >= len(a.bins) || !slices.ContainsFunc(tx.Ops, func(o history.Op) bool { return o.Write }) {
		return
	}
	one := Acknowledging{Server: server, From: time.Duration(tx.End), To: time.Duration(tx.End), LastBegun: time.Duration(tx.Try), Acknowledged: 1}
	if kept != nil && !kept(tx.ID) {
		one.Lost, one.LostFrom = 1, one.To
	}
	a.addDuring(&one)
	bins, n := a.bins[server], tx.End/acknowledgedBin
	if bins[n] == nil {
		bins[n] = new(Acknowledging)
	}
	bins[n].join(&one)
}

// CountDuring makes Add count what the two servers of each overlap acknowledged during it, to the nanosecond.
func (a *Acknowledgements) CountDuring(overlaps []Overlap) {
	a.overlaps, a.during = overlaps, make([][2]Acknowledging, len(overlaps))
	for i, o := range overlaps {
		a.during[i][0].Server, a.during[i][1].Server = o.Servers[0], o.Servers[1]
	}
}

// During returns what the two servers of each overlap of CountDuring acknowledged during it.
func (a *Acknowledgements) During() [][2]Acknowledging { return a.during }

func (a *Acknowledgements) addDuring(one *Acknowledging) {
	for i, o := range a.overlaps {
		for k, server := range o.Servers {
			if server != one.Server || one.From < o.From || one.To > o.To {
				continue
			}
			a.during[i][k].join(one)
		}
	}
}

// join adds the counts of another part of the same period.
func (a *Acknowledging) join(b *Acknowledging) {
	if a.Acknowledged == 0 {
		*a = *b
		return
	}
	if b.Lost > 0 && (a.Lost == 0 || b.LostFrom < a.LostFrom) {
		a.LostFrom = b.LostFrom
	}
	a.From, a.To, a.LastBegun = min(a.From, b.From), max(a.To, b.To), max(a.LastBegun, b.LastBegun)
	a.Acknowledged, a.Lost = a.Acknowledged+b.Acknowledged, a.Lost+b.Lost
}

// Intervals returns the periods in which each server acknowledged writes, in order. A period ends if no write
// was acknowledged for a second.
func (a *Acknowledgements) Intervals() (list []Acknowledging) {
	for _, bins := range a.bins {
		first := len(list)
		for _, n := range slices.Sorted(maps.Keys(bins)) {
			bin := bins[n]
			if last := len(list) - 1; last >= first && bin.From-list[last].To <= silence {
				list[last].join(bin)
			} else {
				list = append(list, *bin)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Acknowledging) int { return cmp.Compare(a.From, b.From) })
	return list
}

// Overlap is a period in which two servers accepted writes.
type Overlap struct {
	From, To time.Duration
	Servers  [2]int // the first one is the earlier server
}

// Overlaps returns the periods in which two servers accepted writes. One server acknowledged a write that was
// sent after the other had acknowledged one, so delays of replies cannot explain it. leads lists the servers
// that became leader, with the times: from then on, a server accepts writes even if none came.
func Overlaps(intervals []Acknowledging, leads []Move) (list []Overlap) {
	for i, a := range intervals {
		for _, b := range intervals[i+1:] {
			if from, to := b.From, min(a.LastBegun, b.LastBegun); a.Server != b.Server && to > from {
				list = append(list, Overlap{from, to, [2]int{a.Server, b.Server}})
			}
		}
		for n, lead := range leads {
			from, to := max(a.From, time.Duration(lead.At)), a.LastBegun
			if n+1 < len(leads) {
				to = min(to, time.Duration(leads[n+1].At))
			}
			// A server whose interval begins later became leader again, which was observed late.
			if lead.Server >= 0 && lead.Server != a.Server && a.From < time.Duration(lead.At) && to-from >= time.Duration(acknowledgedBin) {
				list = append(list, Overlap{from, to, [2]int{a.Server, lead.Server}})
			}
		}
	}
	return united(list)
}

// united merges overlapping overlaps of the same two servers.
func united(list []Overlap) (joined []Overlap) {
	slices.SortStableFunc(list, func(a, b Overlap) int { return cmp.Compare(a.From, b.From) })
	for _, o := range list {
		same := func(p Overlap) bool {
			return o.From <= p.To && (p.Servers == o.Servers || p.Servers == [2]int{o.Servers[1], o.Servers[0]})
		}
		if i := slices.IndexFunc(joined, same); i >= 0 {
			joined[i].To = max(joined[i].To, o.To)
		} else {
			joined = append(joined, o)
		}
	}
	return joined
}

// mostKept limits the memory of Kept: one bit for each transaction.
const mostKept = 1 << 32

// Kept is the set of a run's transactions that left rows in the ledger.
type Kept struct {
	run   uint64
	bits  [][]uint64 // by client: a bit a sequence number
	words int
	some  bool
}

// KeptOf reads the ledger of an end state. It returns nil if the ledger has no row of the run, because
// nothing is known then.
func KeptOf(rows iter.Seq2[history.Row, error], run uint64) (*Kept, error) {
	k := &Kept{run: run}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if row.Transaction.Run() != run {
			continue
		}
		if row.Mark == history.Unkept || !k.add(row) {
			return nil, nil
		}
	}
	if !k.some {
		return nil, nil
	}
	return k, nil
}

// add adds a row. It returns false if there is no room.
func (k *Kept) add(row history.Row) bool {
	if row.Mark != 0 {
		return true
	}
	client, word := int(row.Transaction.Client()), int(row.Transaction.Sequence()/64)
	k.bits = grown(k.bits, client)
	if k.words += max(0, word+1-len(k.bits[client])); k.words > mostKept/64 {
		return false
	}
	k.bits[client] = grown(k.bits[client], word)
	k.bits[client][word] |= 1 << (row.Transaction.Sequence() % 64)
	k.some = true
	return true
}

// Has reports whether a transaction of the run is in the ledger.
func (k *Kept) Has(id history.ID) bool {
	client, word := id.Client(), id.Sequence()/64
	return client < uint64(len(k.bits)) && word < uint64(len(k.bits[client])) && k.bits[client][word]>>(id.Sequence()%64)&1 == 1
}
