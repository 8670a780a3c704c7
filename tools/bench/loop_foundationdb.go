//go:build fdb

package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"stroppy/internal/cluster/foundationdb"
	"stroppy/tools/try"
)

// tags and cgo are the build settings of the measured stroppy.
const tags, cgo = "fdb", "1"

// foundationdb measures one node of FoundationDB beside bare loops over the official
// binding, each client of which has one transaction under way.
func (s *suite) foundationdb() {
	engine(s, "foundationdb", foundationdb.Start, nil, func(url string) {
		try.Check(fdb.APIVersion(730))
		database := try.Must(fdb.OpenDatabase(strings.TrimPrefix(url, "fdb:")))
		for _, clients := range []int{loopClients, 256} {
			name := fmt.Sprintf("foundationdb: %d clients", clients)
			var keys []fdb.KeyValue // which the loop's first client reads for all
			s.besideLoop(name, url, clients, "≥ 0.90", nil, func(_ context.Context, client int) loop {
				if client == 0 {
					keys = fdbEntries(database, fdbAccounts, loopAccounts)
				}
				return &fdbTransfers{database, rand.New(rand.NewPCG(uint64(client), 1)), keys}
			})
			args := []string{"--db=" + url, "--clients=" + strconv.Itoa(clients), "--records=10000"}
			s.besideReads(name, "a bare loop", clients, args, func(_ context.Context, client int) loop {
				if client == 0 {
					keys = fdbEntries(database, "kv/", 2000)
				}
				return &fdbReads{database, rand.New(rand.NewPCG(uint64(client), 1)), keys}
			})
		}
	})
}

// fdbEntries reads at most so many of the keys with a prefix.
func fdbEntries(database fdb.Database, prefix string, most int) []fdb.KeyValue {
	entries := try.Must(database.ReadTransact(func(tr fdb.ReadTransaction) (any, error) {
		begin, end := fdb.Key(prefix), fdb.Key(prefix+"\xff")
		return tr.GetRange(fdb.KeyRange{Begin: begin, End: end}, fdb.RangeOptions{Limit: most}).GetSliceWithError()
	}))
	list := entries.([]fdb.KeyValue)
	if len(list) < 2 {
		try.Fail("there are no keys that begin with %s", prefix)
	}
	return list
}

// fdbTransfers transfers a cent between two accounts of the bank, as ours does it: it reads
// both and the entry of the ledger, of which there must be none, and writes all three.
type fdbTransfers struct {
	database fdb.Database
	source   *rand.Rand
	accounts []fdb.KeyValue
}

const fdbAccounts, fdbLedger = "stroppy/account/", "stroppy/ledger/"

func (*fdbTransfers) Close() error { return nil }

func (l *fdbTransfers) Once(_ context.Context, n uint64) {
	from := l.source.IntN(len(l.accounts))
	to := (from + 1 + l.source.IntN(len(l.accounts)-1)) % len(l.accounts)
	keys, amounts := [...]fdb.Key{l.accounts[from].Key, l.accounts[to].Key}, [...]int64{-1, 1}
	id := binary.BigEndian.AppendUint64(nil, n+loopRun)
	entry := fdb.Key(hex.AppendEncode([]byte(fdbLedger), id))
	try.Must(l.database.Transact(func(tr fdb.Transaction) (any, error) {
		try.Check(tr.Options().SetReadYourWritesDisable())
		states := [...]fdb.FutureByteSlice{tr.Get(keys[0]), tr.Get(keys[1])}
		if tr.Get(entry).MustGet() != nil {
			return nil, nil // by a try whose answer was lost
		}
		legs := []byte{'L'}
		for i, key := range keys {
			state := states[i].MustGet()
			if len(state) != 24 {
				return nil, fmt.Errorf("there is no account %s", key)
			}
			balance, version := int64(binary.BigEndian.Uint64(state))+amounts[i], binary.BigEndian.Uint64(state[8:])+1
			if balance < 0 {
				return nil, fmt.Errorf("the account %s is empty", key)
			}
			value := binary.BigEndian.AppendUint64(nil, uint64(balance))
			value = append(binary.BigEndian.AppendUint64(value, version), id...)
			tr.Set(key, value)
			bic, ban, _ := strings.Cut(string(key[len(fdbAccounts):]), "/")
			legs = append(append(legs, bic...), ban...)
			legs = binary.BigEndian.AppendUint64(legs, uint64(amounts[i]))
			legs = binary.BigEndian.AppendUint64(legs, version)
		}
		tr.Set(entry, legs)
		return nil, nil
	}))
}

// fdbReads reads and writes records, each by its key.
type fdbReads struct {
	database fdb.Database
	source   *rand.Rand
	records  []fdb.KeyValue
}

func (*fdbReads) Close() error { return nil }

func (l *fdbReads) Once(_ context.Context, _ uint64) {
	record := &l.records[l.source.IntN(len(l.records))]
	if l.source.IntN(10) == 0 {
		try.Must(l.database.Transact(func(tr fdb.Transaction) (any, error) {
			tr.Set(record.Key, record.Value)
			return nil, nil
		}))
		return
	}
	value := try.Must(l.database.ReadTransact(func(tr fdb.ReadTransaction) (any, error) { return tr.Get(record.Key).Get() }))
	if len(value.([]byte)) == 0 {
		try.Fail("there is no record %s", record.Key)
	}
}
