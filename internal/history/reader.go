package history

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
)

// Reader reads a recorded history. Several goroutines may call its methods.
type Reader struct {
	source *blockSource
	header Header
	listed bool // a complete history must have a manifest
	end    place

	earlier earlierReads
	change  func(*Transaction) // of each transaction that is read; may be nil
}

// Open opens the history in dir, the run's history folder. If there is none, the error is an fs.ErrNotExist.
func Open(dir string) (*Reader, error) {
	r, err := openWithoutClocks(dir)
	if err != nil {
		return nil, err
	}
	if err := r.readClocks(dir); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// openWithoutClocks is Open without ClocksFile.
func openWithoutClocks(dir string) (*Reader, error) {
	s, err := openSource("read the history", filepath.Join(dir, transactionsFile), transactions)
	if err != nil {
		return nil, err
	}
	r := &Reader{source: s, end: s.end()}
	var d description
	if err = s.unmarshal(&d); err == nil {
		r.header, r.listed = d.Header, d.Listed
		err = cmp.Or(r.plausible(), r.plausibleClocks())
	}
	if err != nil {
		_ = s.close()
		return nil, err
	}
	return r, nil
}

// plausible returns an error if the header claims more than an ID can hold.
func (r *Reader) plausible() error {
	switch h := &r.header; {
	case h.Clients < 0 || h.Clients > 1<<ClientBits:
		return r.source.damaged(preambleSize, Senseless, fmt.Sprintf("its description claims %d clients, and a run has at most %d", h.Clients, 1<<ClientBits))
	case h.Run >= 1<<RunBits:
		return r.source.damaged(preambleSize, Senseless, fmt.Sprintf("its description claims to be of run %d, and the last one is %d", h.Run, 1<<RunBits-1))
	}
	return nil
}

// Header returns the description of the run.
func (r *Reader) Header() Header { return r.header }

// Complete reports whether the history was closed after every client had delivered its last record. An
// incomplete history lacks records at the end of some clients.
func (r *Reader) Complete() bool { return r.end == atFooter || r.source.added != nil }

// Records returns the number of transactions by the footer of a complete history.
func (r *Reader) Records() uint64 { return r.source.footer.Records }

// Rebase makes all later readings return the transactions as if a Base were the loaded data.
func (r *Reader) Rebase(o *Base) { r.change = o.Rebase }

// Close closes the file.
func (r *Reader) Close() error { return r.source.close() }

// Transactions yields every recorded transaction. The transactions of one client are in order. Transactions of
// different clients are only approximately in the order of time. The next step reuses the Transaction and its Ops. At
// the first damage it yields an error with an empty Record and ends. The sequence can be used repeatedly.
func (r *Reader) Transactions() iter.Seq2[Record, error] { return r.TransactionsIn(r.Blocks()) }

// TransactionsIn is like Transactions, for the transactions of some blocks. It ends at the first error of blocks.
func (r *Reader) TransactionsIn(blocks iter.Seq2[Block, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		c := r.Cursor()
		for b, err := range blocks {
			if err == nil {
				for c.Open(b); c.Next(); {
					if !yield(Record{Transaction: &c.Transaction, Ref: c.Ref()}, nil) {
						return
					}
				}
				err = c.Err()
			}
			if err != nil {
				yield(Record{Ref: c.Ref()}, err)
				return
			}
		}
	}
}
