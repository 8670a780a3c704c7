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
// history. A row's value is a workload.State, unless it has no version.
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
// big-endian numbers: the ids of account, teller and branch, the amount, and where rows
// have versions those that it made of the three.
const (
	entryApplied = 'T'
	entryNumbers = operations + 1 // without versions
)

func parseEntry(id history.ID, b []byte, versions bool) (p posting, ok bool) {
	numbers := entryNumbers
	if versions {
		numbers += operations
	}
	if len(b) != 1+8*numbers || b[0] != entryApplied {
		return p, false
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[1+8*i:])) }
	p = posting{id: id, rows: [operations]int64{number(0), number(1), number(2)}, delta: number(3)}
	for i := entryNumbers; i < numbers; i++ {
		p.versions[i-entryNumbers] = number(i)
	}
	return p, true
}

// AppendKey implements workload.KVLogic.
func (h *chooser) AppendKey(dst []byte, n uint64) []byte {
	k, id := h.size.place(n)
	return appendRowKey(dst, k, id)
}

// Refusal implements workload.KVLogic: nothing is refused.
func (h *chooser) Refusal(*history.Transaction) history.Reason { return 0 }

// appendPosting appends an entry without versions.
func (h *chooser) appendPosting(dst []byte, tx *history.Transaction) []byte {
	dst = append(dst, entryApplied)
	for i := range tx.Ops {
		_, id := h.size.place(tx.Ops[i].Object)
		dst = binary.BigEndian.AppendUint64(dst, id)
	}
	return binary.BigEndian.AppendUint64(dst, uint64(tx.Ops[opAccount].Amount))
}

// AppendEntry implements workload.KVLogic.
func (h *chooser) AppendEntry(dst []byte, tx *history.Transaction, _ [][]byte) []byte {
	dst = h.appendPosting(dst, tx)
	for i := range tx.Ops {
		dst = binary.BigEndian.AppendUint64(dst, tx.Ops[i].Version+1)
	}
	return dst
}

// kvModel is the workload on an ordered key-value store. Its rows have versions unless
// none are asked for: they are part of a value that is written as a whole anyway.
type kvModel struct {
	*dataset.KV
	config   *Config
	versions bool     // of the rows that were found
	adder    db.Adder // nil: the store cannot do without versions
}

// newKVModel fills in what the configuration leaves to the data model.
func newKVModel(database db.KV, c *Config) (model, error) {
	if most := database.Limits().Writes; most < operations+1 {
		return nil, fmt.Errorf("a transaction of tpcb has %d writes, and one of this database at most %d", operations+1, most)
	}
	adder, _ := database.(db.Adder)
	if c.Plain && adder == nil {
		return nil, errVersionsAlways
	}
	c.AnyRows = c.AnyRows || !c.Versions && !c.Plain
	c.Mode, c.Versions = cmp.Or(c.Mode, workload.Pipelined), !c.Plain
	prefixes := []string{rowPrefix, balancePrefix, historyPrefix, barePrefix}
	if c.Plain {
		prefixes[0], prefixes[1] = balancePrefix, rowPrefix
	}
	store, err := dataset.NewKV(dataKind, database, dataset.Keys{
		Prefixes: prefixes, Spaces: append(workload.StateSpace(rowPrefix, false), balanceSpace()), Facts: factCount, Put: putRows,
	})
	return &kvModel{KV: store, config: c, adder: adder}, err
}

// putRows sets the keys of the rows from ≤ n < to.
func putRows(s db.KVSession, m dataset.Metadata, from, to uint64) {
	f, err := factsOf(m.Facts, m.Size)
	if err != nil {
		return // Load has made the metadata from what was asked for: they are right
	}
	prefix, key, value := rowPrefix, []byte(nil), workload.State{}.Append(nil)
	if !f.versions {
		prefix, value = balancePrefix, appendBalance(nil, 0)
	}
	for n := from; n < to; n++ {
		k, id := f.size.place(n)
		key = appendRowText(append(key[:0], prefix...), k, id)
		s.Set(key, value)
	}
}

// adopt does nothing: nobody else makes such keys.
func (m *kvModel) adopt(context.Context, uint64) error { return nil }

func (m *kvModel) rule(f *facts, c dataset.Census) string { return oneTableRule(f, c) }

func (m *kvModel) replaces(*facts) {}

func (m *kvModel) take(f *facts) error {
	if !f.versions && m.adder == nil {
		return errVersionsAlways
	}
	m.versions = f.versions
	return nil
}

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
	options, ledger, rules := workload.SessionOptions(m.config.Isolation, m.config.Mode), "", workload.Rules{Missing: noSuchRow}
	if m.config.History {
		ledger = historyPrefix
	}
	if m.versions {
		s, err := m.Database.KVSession(ctx, options)
		return workload.NewKVClient(s, h, rules, ledger), err
	}
	s, err := m.adder.AddSession(ctx, options)
	return &addClient{KVClient: workload.NewKVClient(s, h, rules, ledger), adds: s, chooser: h, keeps: m.config.History}, err
}

func (m *kvModel) endState(ctx context.Context, e *endRows) error {
	prefix, row, entry := rowPrefix, e.rowEntry, func(key, value []byte) error { return e.historyEntry(key, value, m.versions) }
	if !m.versions {
		prefix, row = balancePrefix, e.balanceEntry
	}
	return m.With(ctx, func(s db.KVSession) error {
		for _, part := range []struct {
			prefix, things string
			entry          func(key, value []byte) error
		}{
			{prefix, "rows", row}, {barePrefix, "marks of runs", e.bareEntry}, {historyPrefix, "history", entry},
		} {
			if err := dataset.Scan(ctx, s, part.prefix, part.entry); err != nil {
				return fmt.Errorf("download the %s: %w", part.things, err)
			}
		}
		return nil
	})
}

func (e *endRows) rowEntry(key, value []byte) error {
	s, whole := workload.ParseState(value)
	return e.rowState(key, value, s, whole)
}

func (e *endRows) balanceEntry(key, value []byte) error {
	balance, whole := parseBalance(value)
	return e.rowState(key, value, workload.State{Balance: balance}, whole)
}

func (e *endRows) rowState(key, value []byte, s workload.State, whole bool) error {
	k, id, known := parseRowKey(key)
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

func (e *endRows) historyEntry(key, value []byte, versions bool) error {
	id, ok := workload.ParseID(key)
	if ok && workload.IsTombstone(value) {
		return e.tombstone(id)
	}
	p, whole := parseEntry(id, value, versions)
	if !ok || !whole {
		return e.end.Unexpected(fmt.Sprintf("an entry of the history %q with a value of %d bytes, which no transaction writes", key, len(value)))
	}
	return e.posting(p)
}
