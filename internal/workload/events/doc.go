// Package events is the log of events: streams to whose ends clients append, and of
// which everything is read back in the end. It is written once for SQL and once for
// ordered key-value stores.
//
// # The log
//
// The entries of a stream have the numbers 1, 2, 3 … without a gap; place 0 is the
// stream's origin, which the load makes and nobody removes. One commit appends
// --batch events to one stream, at the places after its last entry. With as many
// streams as clients, the default, each client has a stream of its own and remembers
// where it ends; with more, it goes round among its own. With fewer, several clients
// append to one: they read its end in the transaction, and of two that read the same
// one only one can commit. The other is aborted and tried again.
//
// A value is ASCII, incompressible but for the two bits of each byte that ASCII
// leaves unused, and a function of the seed, the transaction's id and the event's
// number within its batch. It begins with these two, its length and a checksum
// (CRC-32C), so that whoever reads it can prove without its writer that it is whole;
// see value.go. --fragment splits it into pieces, rows or keys of their own, each
// with the id and the number: a piece of another event cannot pass for one of this.
//
// # What became of an append that nobody answered
//
// To look whether its events are there is not enough: it may still be on its way. But it
// can only be applied at the place that its client had tried, while that place is free:
// by the primary key in SQL, and in a key-value store by the stream's end, which every
// append reads and writes. So the look-up takes the place with a tombstone, and then reads
// who has it:
//
//   - the tombstone: the append can never be applied any more. It is aborted.
//   - the append itself: it was applied, all of its batch at once. It is committed.
//   - another client's: the place is gone, so it can never be applied. It is aborted.
//
// The answer stays true whatever is still on its way. A tombstone is a void entry: the
// log has no hole where it stands, and the next append stands behind it. Earlier tries need
// no look-up: the database has said that they were not applied. To check that, each new
// try reads the place of the try before, and reports its own events there.
package events
