package tpcb

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// The keys in an ordered key-value store: a row's is the prefix, the letter of its
// kind and its id in thirteen digits; a transaction's in the history is the prefix and its
// id in sixteen hexadecimal digits, and so is the one that marks a run without a
// history. A row's value is a workload.State.
const (
	rowPrefix     = "stroppy-tpcb/row/"
	historyPrefix = "stroppy-tpcb/history/"
	barePrefix    = "stroppy-tpcb/bare/"

	kindLetters = "bta" // of branch, teller, account
	rowDigits   = 13    // as many as maxRows has
)

func appendRowKey(dst []byte, k kind, id uint64) []byte {
	return appendRowText(append(dst, rowPrefix...), k, id)
}

// appendRowText appends a row's key without its prefix.
func appendRowText(dst []byte, k kind, id uint64) []byte {
	return workload.AppendDecimal(append(dst, kindLetters[k]), id, rowDigits)
}

// parseRowKey reads a row's key without its prefix.
func parseRowKey(text []byte) (k kind, id int64, ok bool) {
	if len(text) != 1+rowDigits {
		return noKind, 0, false
	}
	k = kind(min(uint(strings.IndexByte(kindLetters, text[0])), uint(noKind)))
	id, ok = workload.ParseDecimal(text[1:])
	return k, id, ok && k < noKind
}

// An entry of the history is one byte that says what it is, and for a transaction
// seven big-endian numbers: the ids of account, teller and branch, the amount, and
// the versions that it made of the three.
const (
	entryApplied = 'T'
	entryNumbers = 7
)

func parseEntry(id history.ID, b []byte) (posting, bool) {
	if len(b) != 1+8*entryNumbers || b[0] != entryApplied {
		return posting{}, false
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[1+8*i:])) }
	return posting{
		id: id, rows: [operations]int64{number(0), number(1), number(2)}, delta: number(3),
		versions: [operations]int64{number(4), number(5), number(6)},
	}, true
}

// AppendKey implements workload.KVLogic.
func (h *chooser) AppendKey(dst []byte, n uint64) []byte {
	k, id := h.size.place(n)
	return appendRowKey(dst, k, id)
}

// Refusal implements workload.KVLogic: nothing is refused.
func (h *chooser) Refusal(*history.Transaction) history.Reason { return 0 }

// AppendEntry implements workload.KVLogic.
func (h *chooser) AppendEntry(dst []byte, tx *history.Transaction, _ [][]byte) []byte {
	dst = append(dst, entryApplied)
	for i := range tx.Ops {
		_, id := h.size.place(tx.Ops[i].Object)
		dst = binary.BigEndian.AppendUint64(dst, id)
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(tx.Ops[opAccount].Amount))
	for i := range tx.Ops {
		dst = binary.BigEndian.AppendUint64(dst, tx.Ops[i].Version+1)
	}
	return dst
}

// kvModel is the workload on an ordered key-value store. Its rows always have
// versions: they are part of a value that is written as a whole anyway.
type kvModel struct {
	*dataset.KV
	config *Config
}

// newKVModel fills in what the configuration leaves to the data model.
func newKVModel(database db.KV, c *Config) (model, error) {
	if most := database.Limits().Writes; most < operations+1 {
		return nil, fmt.Errorf("a transaction of tpcb has %d writes, and one of this database at most %d", operations+1, most)
	}
	c.Mode, c.Versions, c.AnyRows = cmp.Or(c.Mode, workload.Pipelined), true, true
	store, err := dataset.NewKV(dataKind, database, dataset.Keys{
		Prefixes: []string{rowPrefix, historyPrefix, barePrefix}, Spaces: workload.StateSpace(rowPrefix, false), Facts: factCount, Put: putRows,
	})
	return &kvModel{store, c}, err
}

// putRows sets the keys of the rows from ≤ n < to.
func putRows(s db.KVSession, m dataset.Metadata, from, to uint64) {
	f, err := factsOf(m.Facts, m.Size)
	if err != nil {
		return // Load has made the metadata from what was asked for: they are right
	}
	h, key, value := chooser{size: f.size}, []byte(nil), workload.State{}.Append(nil)
	for n := from; n < to; n++ {
		key = h.AppendKey(key[:0], n)
		s.Set(key, value)
	}
}

// adopt does nothing: nobody else makes such keys.
func (m *kvModel) adopt(context.Context, uint64) error { return nil }

func (m *kvModel) replaces(*facts) {}

func (m *kvModel) take(*facts) error { return nil }

// Prepare implements dataset.Store. It marks a run that keeps no history.
func (m *kvModel) Prepare(ctx context.Context, run uint64) error {
	if m.config.History {
		return nil
	}
	return m.Change(ctx, func(s db.KVSession) error {
		s.Set(workload.Hex.Append([]byte(barePrefix), run, workload.IDLength), []byte{workload.Tombstone})
		return nil
	})
}

func (m *kvModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	s, err := m.Database.KVSession(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
	ledger := ""
	if m.config.History {
		ledger = historyPrefix
	}
	return workload.NewKVClient(s, h, workload.Rules{Missing: noSuchRow}, ledger), err
}

func (m *kvModel) endState(ctx context.Context, e *endRows) error {
	return m.With(ctx, func(s db.KVSession) error {
		for _, part := range []struct {
			prefix, things string
			entry          func(key, value []byte) error
		}{
			{rowPrefix, "rows", e.rowEntry}, {barePrefix, "marks of runs", e.bareEntry}, {historyPrefix, "history", e.historyEntry},
		} {
			if err := dataset.Scan(ctx, s, part.prefix, part.entry); err != nil {
				return fmt.Errorf("download the %s: %w", part.things, err)
			}
		}
		return nil
	})
}

func (e *endRows) rowEntry(key, value []byte) error {
	k, id, known := parseRowKey(key)
	s, whole := workload.ParseState(value)
	if !known || !whole {
		return e.end.Unexpected(fmt.Sprintf("a row %q with a value of %d bytes, which the load did not make", key, len(value)))
	}
	return e.row(k, id, s)
}

func (e *endRows) bareEntry(key, _ []byte) error {
	run, ok := workload.ParseID(key)
	if !ok {
		return e.end.Unexpected(fmt.Sprintf("a mark %q, which no run makes", key))
	}
	return e.bareRun(uint64(run))
}

func (e *endRows) historyEntry(key, value []byte) error {
	id, ok := workload.ParseID(key)
	if ok && workload.IsTombstone(value) {
		return e.tombstone(id)
	}
	p, whole := parseEntry(id, value)
	if !ok || !whole {
		return e.end.Unexpected(fmt.Sprintf("an entry of the history %q with a value of %d bytes, which no transaction writes", key, len(value)))
	}
	return e.posting(p)
}
