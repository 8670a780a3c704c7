package bank

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"stroppy/internal/db"
	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/workload"
	"stroppy/internal/workload/dataset"
)

// The keys of the bank in an ordered key-value store: an account's is the prefix,
// the BIC, a slash and the BAN in eleven digits, so that keys are in the order
// of their numbers; a transfer's is the prefix and its id in sixteen hexadecimal
// digits. An account's value is a workload.State. An account that clients have opened and
// taken under a balance has another key with the same value, so that these are a range too.
const (
	accountPrefix = "stroppy/account/"
	lowPrefix     = "stroppy/low/"
	ledgerPrefix  = "stroppy/ledger/"

	banDigits = 11
)

func appendAccountKey(dst []byte, key uint64) []byte {
	return appendAccountText(append(dst, accountPrefix...), key)
}

// appendAccountText appends the key without its prefix.
func appendAccountText(dst []byte, key uint64) []byte {
	dst = appendBIC(dst, key)
	return workload.AppendDecimal(append(dst, '/'), ban(key), banDigits)
}

// accountOf reads an account's key without its prefix; false if the formula
// makes no such key.
func accountOf(text []byte) (uint64, bool) {
	if len(text) != bicLength+1+banDigits || text[bicLength] != '/' {
		return 0, false
	}
	return keyOfText(text[:bicLength], text[bicLength+1:])
}

func keyOfText(bic, digits []byte) (uint64, bool) {
	number, ok := workload.ParseDecimal(digits)
	if !ok {
		return 0, false
	}
	return keyOf(bic, number)
}

// A ledger's value is one byte that says what it is, and for a transfer its
// legs in order: the account's BIC and BAN as text, amount and version as
// big-endian numbers.
const (
	ledgerLegs = 'L'
	legBytes   = bicLength + banDigits + 8 + 8
)

// appendLeg appends a leg on the account that has a key.
func appendLeg(dst, key []byte, amount, version int64) []byte {
	text := key[len(accountPrefix):]
	dst = append(append(dst, text[:bicLength]...), text[bicLength+1:]...)
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
	key, ok = keyOfText(b[:bicLength], b[bicLength:bicLength+banDigits])
	b = b[bicLength+banDigits:]
	return key, int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:])), ok
}

// AppendKey implements workload.KVLogic.
func (h *chooser) AppendKey(dst []byte, n uint64) []byte {
	return appendAccountKey(dst, h.formula.key(n))
}

// Refusal implements workload.KVLogic.
func (h *chooser) Refusal(tx *history.Transaction) history.Reason {
	return h.formula.refusal(tx, h.guarded)
}

// AppendEntry implements workload.KVLogic.
func (h *chooser) AppendEntry(dst []byte, tx *history.Transaction, keys [][]byte) []byte {
	dst = append(dst, ledgerLegs)
	for i := range tx.Ops {
		if op := &tx.Ops[i]; op.Write {
			dst = appendLeg(dst, keys[i], op.Amount, int64(op.Version)+1)
		}
	}
	return dst
}

// kvModel is the bank on an ordered key-value store.
type kvModel struct {
	*dataset.KV
	config *Config
}

// newKVModel fills in what the configuration leaves to the data model.
func newKVModel(database db.KV, c *Config) (model, error) {
	c.Update, c.Mode = cmp.Or(c.Update, RMW), cmp.Or(c.Mode, workload.Pipelined)
	if c.Update != RMW {
		return nil, fmt.Errorf("update %s needs SQL: a key-value store reads, computes and writes, so take rmw", c.Update)
	}
	if c.AuditAge > 0 {
		return nil, errNoPast
	}
	if _, ok := database.(db.Ranger); c.openings() && !ok {
		return nil, errors.New("opening-share, predicate-share and low-balance-share need transactions that read ranges of keys, which this database or its driver does not have: leave them out, or take another database")
	}
	// A payroll writes its payer, its payees and its ledger entry.
	if most := database.Limits().Writes; c.PayrollShare > 0 && c.PayrollLegs+2 > most {
		return nil, fmt.Errorf("payroll-legs is %d, but a transaction of this database has at most %d writes: take at most %d", c.PayrollLegs, most, most-2)
	}
	spaces := workload.StateSpace(accountPrefix, true)
	if c.LowShare > 0 {
		spaces = append(spaces, workload.StateSpace(lowPrefix, true)...)
	}
	store, err := dataset.NewKV(kind, database, dataset.Keys{
		Prefixes: []string{accountPrefix, ledgerPrefix, lowPrefix}, Spaces: spaces, Facts: len(c.facts()), Put: putAccounts,
	})
	return &kvModel{store, c}, err
}

// putAccounts sets the keys of the accounts from ≤ n < to.
func putAccounts(s db.KVSession, m dataset.Metadata, from, to uint64) {
	f := newFormula(m.Seed)
	var key, value []byte
	for n := from; n < to; n++ {
		key = appendAccountKey(key[:0], f.key(n))
		value = workload.State{Balance: f.opening(n)}.Append(value[:0])
		s.Set(key, value)
	}
}

func (m *kvModel) session(ctx context.Context) (db.KVSession, error) {
	return m.Database.KVSession(ctx, workload.SessionOptions(m.config.Isolation, m.config.Mode))
}

func (m *kvModel) client(ctx context.Context, h *chooser) (load.Client, error) {
	h.guarded = m.Guarded
	if m.config.openings() {
		return m.newKVOpenings(ctx, h)
	}
	s, err := m.session(ctx)
	return workload.NewKVClient(s, h, rules, ledgerPrefix), err
}

// maxKeys bounds the keys of one Read of an audit, unless the store asks for more.
const maxKeys = 500

func (m *kvModel) audits(ctx context.Context) (auditSession, error) {
	s, err := m.session(ctx)
	l := m.Database.Limits()
	n := cmp.Or(l.Reads, min(l.Writes, maxKeys))
	return &kvAudits{KVSession: s, keys: make([][]byte, n), found: make([]db.Entry, n)}, err
}

// kvAudits reads accounts of a key-value store.
type kvAudits struct {
	db.KVSession
	keys  [][]byte // of one Read
	found []db.Entry
}

func (s *kvAudits) all(ctx context.Context, a *auditor, tx *history.Transaction) error {
	return dataset.Scan(ctx, s, accountPrefix, func(key, value []byte) error { return s.entry(a, tx, key, value) })
}

func (s *kvAudits) entry(a *auditor, tx *history.Transaction, key, value []byte) error {
	state, ok := workload.ParseState(value)
	if !ok {
		return workload.UnreadableState(key, value)
	}
	if number, ok := accountOf(key); ok {
		a.add(tx, number, state)
	}
	return nil
}

func (s *kvAudits) sample(ctx context.Context, a *auditor, tx *history.Transaction) error {
	if err := s.Begin(ctx, true); err != nil {
		return err
	}
	for ops := range slices.Chunk(tx.Ops, len(s.keys)) {
		keys, found := s.keys[:len(ops)], s.found[:len(ops)]
		for i := range ops {
			keys[i] = a.AppendKey(keys[i][:0], ops[i].Object)
		}
		if err := s.Read(ctx, keys, found); err != nil {
			return err
		}
		for i, key := range keys {
			if !found[i].Found {
				continue
			}
			if err := s.entry(a, tx, key[len(accountPrefix):], found[i].Value); err != nil {
				s.Rollback()
				return err
			}
		}
	}
	return s.Commit(ctx)
}

func (m *kvModel) download(ctx context.Context, e *endRows) error {
	return m.With(ctx, func(s db.KVSession) error {
		err := dataset.Scan(ctx, s, accountPrefix, func(key, value []byte) error {
			number, known := accountOf(key)
			state, whole := workload.ParseState(value)
			if made, err := e.account(number, known && whole, state); made {
				return err
			}
			return e.end.Unexpected(fmt.Sprintf("an account %q with a value of %d bytes, which the load did not make", key, len(value)))
		})
		if err != nil {
			return fmt.Errorf("download the accounts: %w", err)
		}
		if err := dataset.Scan(ctx, s, ledgerPrefix, e.transfer); err != nil {
			return fmt.Errorf("download the ledger: %w", err)
		}
		return nil
	})
}

// transfer keeps an entry of the ledger.
func (e *endRows) transfer(key, value []byte) error {
	e.report.Row()
	id, ok := workload.ParseID(key)
	if ok && workload.IsTombstone(value) {
		return e.end.Row(history.Row{Transaction: id, Mark: history.Tombstone})
	}
	legs, whole := legCount(value)
	if !ok || !whole {
		return e.end.Unexpected(fmt.Sprintf("a ledger entry %q with a value of %d bytes, which no transfer writes", key, len(value)))
	}
	for i := range legs {
		number, amount, version, ok := legAt(value, i)
		var err error
		if ok {
			err = e.entry(history.Row{
				Transaction: id, Number: uint32(i), Object: e.formula.number(number), Amount: amount, Version: uint64(version),
			})
		} else {
			err = e.end.Unexpected(fmt.Sprintf("a leg of transfer %v on an account that no formula makes", id))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
