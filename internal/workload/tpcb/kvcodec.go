package tpcb

import (
	"encoding/binary"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/workload"
)

// The keys in an ordered key-value store: a row's is the prefix, the letter of its
// kind and its id in thirteen digits; a transaction's in the history is the prefix and its
// id in sixteen hexadecimal digits, and so is the one that marks a run without a
// history.
const (
	rowPrefix     = "stroppy-tpcb/row/"
	historyPrefix = "stroppy-tpcb/history/"
	barePrefix    = "stroppy-tpcb/bare/"

	rowDigits        = 13 // as many as maxRows has
	rowKeyLength     = len(rowPrefix) + 1 + rowDigits
	historyKeyLength = len(historyPrefix) + workload.IDLength
)

const kindLetters = "bta" // of branch, teller, account

// A row's value is three signed 64-bit big-endian numbers.
const (
	balanceAt = 0
	versionAt = 8
	lastAt    = 16
	rowValue  = 24
)

// rowSpace declares the rows to a store that enforces constraints, of which there
// are none: balances may be below zero.
func rowSpace() []db.Keyspace {
	return []db.Keyspace{{
		Prefix: []byte(rowPrefix),
		Columns: []db.Column{
			{Name: "balance", Offset: balanceAt, Additive: true},
			{Name: "version", Offset: versionAt, Additive: true},
			{Name: "last_transfer", Offset: lastAt},
		},
	}}
}

func newRowKey() []byte {
	return append(make([]byte, 0, rowKeyLength), rowPrefix...)[:rowKeyLength]
}

// putRowKey writes the key of a row into dst, which newRowKey has made.
func putRowKey(dst []byte, k kind, id uint64) {
	dst = dst[len(rowPrefix):]
	dst[0] = kindLetters[k]
	for i := rowDigits; i > 0; i-- {
		dst[i] = byte('0' + id%10)
		id /= 10
	}
}

// parseRowKey reads a row's key without its prefix.
func parseRowKey(text []byte) (k kind, id int64, ok bool) {
	if len(text) != 1+rowDigits {
		return noKind, 0, false
	}
	k = kind(min(uint(strings.IndexByte(kindLetters, text[0])), uint(noKind)))
	for _, c := range text[1:] {
		if c < '0' || c > '9' {
			return noKind, 0, false
		}
		id = id*10 + int64(c-'0')
	}
	return k, id, k < noKind
}

// value is a row's value.
type value struct{ balance, version, last int64 }

func appendValue(dst []byte, v value) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.balance))
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.version))
	return binary.BigEndian.AppendUint64(dst, uint64(v.last))
}

func parseValue(b []byte) (value, bool) {
	if len(b) != rowValue {
		return value{}, false
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	return value{number(balanceAt), number(versionAt), number(lastAt)}, true
}

// An entry of the history is one byte that says what it is, and for a transaction
// seven big-endian numbers: the ids of account, teller and branch, the amount, and
// the versions that it made of the three.
const (
	entryApplied = 'T'
	entryNumbers = 7
)

func appendEntry(dst []byte, p *posting) []byte {
	dst = append(dst, entryApplied)
	for _, n := range [entryNumbers]int64{p.account, p.teller, p.branch, p.delta, p.accountV, p.tellerV, p.branchV} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst
}

func parseEntry(id history.ID, b []byte) (posting, bool) {
	if len(b) != 1+8*entryNumbers || b[0] != entryApplied {
		return posting{}, false
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[1+8*i:])) }
	return posting{
		id: id, account: number(0), teller: number(1), branch: number(2), delta: number(3),
		accountV: number(4), tellerV: number(5), branchV: number(6),
	}, true
}
