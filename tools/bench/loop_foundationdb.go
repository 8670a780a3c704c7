//go:build fdb

package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/foundationdb"
)

// tags and cgo are the build settings of the measured stroppy.
const tags, cgo = "fdb", "1"

// foundationdb measures one node of FoundationDB beside bare loops over the official
// binding, each client of which has one transaction under way.
func (s *suite) foundationdb() error {
	c, err := foundationdb.Start(s.ctx, cluster.Options{Nodes: 1, InMemory: true, Loopback: true})
	if missing := (cluster.MissingError{}); errors.As(err, &missing) {
		fmt.Fprintln(os.Stderr, "bench: skipped engine: foundationdb:", err)
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = c.Stop() }()
	if err := fdb.APIVersion(730); err != nil {
		return fmt.Errorf("set up FoundationDB's client library: %w", err)
	}
	database, err := fdb.OpenDatabase(strings.TrimPrefix(c.URL(), "fdb:"))
	if err != nil {
		return fmt.Errorf("open FoundationDB: %w", err)
	}
	for _, clients := range []int{loopClients, 256} {
		name := fmt.Sprintf("foundationdb: %d clients", clients)
		var keys []fdb.KeyValue // which the loop's first client reads for all
		if err := s.besideClients(name, c.URL(), clients, "≥ 0.90", nil, func(_ context.Context, client int) (_ loop, err error) {
			if client == 0 {
				keys, err = fdbEntries(database, fdbAccounts, loopAccounts)
			}
			return &fdbTransfers{database, rand.New(rand.NewPCG(uint64(client), 1)), keys}, err
		}); err != nil {
			return err
		}
		args := []string{"--db=" + c.URL(), "--clients=" + strconv.Itoa(clients), "--records=10000"}
		if err := s.besideReads(name, "a bare loop", clients, args, func(_ context.Context, client int) (_ loop, err error) {
			if client == 0 {
				keys, err = fdbEntries(database, "kv/", 2000)
			}
			return &fdbReads{database, rand.New(rand.NewPCG(uint64(client), 1)), keys}, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// fdbEntries reads at most so many of the keys with a prefix.
func fdbEntries(database fdb.Database, prefix string, most int) ([]fdb.KeyValue, error) {
	entries, err := database.ReadTransact(func(tr fdb.ReadTransaction) (any, error) {
		begin, end := fdb.Key(prefix), fdb.Key(prefix+"\xff")
		return tr.GetRange(fdb.KeyRange{Begin: begin, End: end}, fdb.RangeOptions{Limit: most}).GetSliceWithError()
	})
	if err != nil {
		return nil, fmt.Errorf("read the keys of the bare loop: %w", err)
	}
	list := entries.([]fdb.KeyValue)
	if len(list) < 2 {
		return nil, fmt.Errorf("there are no keys that begin with %s", prefix)
	}
	return list, nil
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

func (l *fdbTransfers) Once(_ context.Context, n uint64) error {
	from := l.source.IntN(len(l.accounts))
	to := (from + 1 + l.source.IntN(len(l.accounts)-1)) % len(l.accounts)
	keys, amounts := [...]fdb.Key{l.accounts[from].Key, l.accounts[to].Key}, [...]int64{-1, 1}
	id := binary.BigEndian.AppendUint64(nil, n+loopRun)
	entry := fdb.Key(hex.AppendEncode([]byte(fdbLedger), id))
	_, err := l.database.Transact(func(tr fdb.Transaction) (any, error) {
		if err := tr.Options().SetReadYourWritesDisable(); err != nil {
			return nil, err
		}
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
	})
	return err
}

// fdbReads reads and writes records, each by its key.
type fdbReads struct {
	database fdb.Database
	source   *rand.Rand
	records  []fdb.KeyValue
}

func (*fdbReads) Close() error { return nil }

func (l *fdbReads) Once(_ context.Context, _ uint64) (err error) {
	record := &l.records[l.source.IntN(len(l.records))]
	if l.source.IntN(10) == 0 {
		_, err = l.database.Transact(func(tr fdb.Transaction) (any, error) {
			tr.Set(record.Key, record.Value)
			return nil, nil
		})
		return err
	}
	value, err := l.database.ReadTransact(func(tr fdb.ReadTransaction) (any, error) { return tr.Get(record.Key).Get() })
	if err == nil && len(value.([]byte)) == 0 {
		return fmt.Errorf("there is no record %s", record.Key)
	}
	return err
}
