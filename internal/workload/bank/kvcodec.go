package bank

import (
	"encoding/binary"

	"stroppy/internal/db"
	"stroppy/internal/workload"
)

// The keys of the bank in an ordered key-value store: an account's is the prefix,
// the BIC, a slash and the BAN in eleven digits, so that keys are in the order
// of their numbers; a transfer's is the prefix and its id in sixteen hexadecimal
// digits.
const (
	accountPrefix = "stroppy/account/"
	ledgerPrefix  = "stroppy/ledger/"

	banDigits        = 11
	accountKeyLength = len(accountPrefix) + bicLength + 1 + banDigits
	ledgerKeyLength  = len(ledgerPrefix) + workload.IDLength
)

// An account's value is three signed 64-bit big-endian numbers.
const (
	balanceAt    = 0
	versionAt    = 8
	lastAt       = 16
	accountValue = 24
)

// accountSpace declares the accounts to a store that enforces constraints.
func accountSpace() []db.Keyspace {
	return []db.Keyspace{{
		Prefix: []byte(accountPrefix),
		Columns: []db.Column{
			{Name: "balance", Offset: balanceAt, Additive: true, NonNegative: true},
			{Name: "version", Offset: versionAt, Additive: true},
			{Name: "last_transfer", Offset: lastAt},
		},
	}}
}

// putAccountKey writes the key of an account into dst, which is of
// accountKeyLength and begins with the prefix already.
func putAccountKey(dst []byte, key uint64) {
	dst = dst[len(accountPrefix):]
	putBIC((*[bicLength]byte)(dst), key)
	dst[bicLength] = '/'
	putBAN(dst[bicLength+1:], ban(key))
}

// putBAN writes eleven decimal digits, two at a time from the end.
func putBAN(dst []byte, n uint64) {
	const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839" +
		"40414243444546474849505152535455565758596061626364656667686970717273747576777879" +
		"8081828384858687888990919293949596979899"
	_ = dst[banDigits-1]
	for i := banDigits - 2; i > 0; i -= 2 {
		rest := n / 100
		pair := 2 * (n - 100*rest)
		dst[i], dst[i+1] = pairs[pair], pairs[pair+1]
		n = rest
	}
	dst[0] = byte('0' + n)
}

// accountOf reads an account's key without its prefix; false if the formula
// makes no such key.
func accountOf(text []byte) (uint64, bool) {
	if len(text) != bicLength+1+banDigits || text[bicLength] != '/' {
		return 0, false
	}
	number, ok := parseBAN(text[bicLength+1:])
	if !ok {
		return 0, false
	}
	return keyOf(text[:bicLength], number)
}

func parseBAN(digits []byte) (int64, bool) {
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// account is an account's value.
type account struct{ balance, version, last int64 }

func appendAccount(dst []byte, a account) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.balance))
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.version))
	return binary.BigEndian.AppendUint64(dst, uint64(a.last))
}

func parseAccount(value []byte) (account, bool) {
	if len(value) != accountValue {
		return account{}, false
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(value[at:])) }
	return account{number(balanceAt), number(versionAt), number(lastAt)}, true
}

// A ledger's value is one byte that says what it is, and for a transfer its
// legs in order: the account's BIC and BAN as text, amount and version as
// big-endian numbers.
const (
	ledgerLegs = 'L'
	legBytes   = bicLength + banDigits + 8 + 8
)

func appendLeg(dst []byte, key uint64, amount, version int64) []byte {
	var text [bicLength + banDigits]byte
	putBIC((*[bicLength]byte)(text[:]), key)
	putBAN(text[bicLength:], ban(key))
	dst = append(dst, text[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(amount))
	return binary.BigEndian.AppendUint64(dst, uint64(version))
}

// legCount returns the number of legs of a ledger's value; false if it is none.
func legCount(value []byte) (int, bool) {
	if len(value) <= legBytes || value[0] != ledgerLegs || (len(value)-1)%legBytes != 0 {
		return 0, false
	}
	return (len(value) - 1) / legBytes, true
}

// legAt reads leg i of a ledger's value; false if its account is of no formula.
func legAt(value []byte, i int) (key uint64, amount, version int64, ok bool) {
	b := value[1+i*legBytes:][:legBytes]
	number, ok := parseBAN(b[bicLength : bicLength+banDigits])
	if ok {
		key, ok = keyOf(b[:bicLength], number)
	}
	b = b[bicLength+banDigits:]
	return key, int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:])), ok
}
