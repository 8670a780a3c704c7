package bank

import (
	"stroppy/internal/db"
	"stroppy/internal/workload/dataset"
)

// Prefixes implements dataset.Keys.
func (m *kvModel) Prefixes() []string { return []string{accountPrefix, ledgerPrefix} }

// Put implements dataset.Keys.
func (m *kvModel) Put(s db.KVSession, note dataset.Note, from, to uint64) {
	f := newFormula(note.Seed)
	key := append(make([]byte, 0, accountKeyLength), accountPrefix...)[:accountKeyLength]
	value := make([]byte, 0, accountValue)
	for n := from; n < to; n++ {
		putAccountKey(key, f.key(n))
		value = appendAccount(value[:0], account{balance: f.opening(n)})
		s.Set(key, value)
	}
}
