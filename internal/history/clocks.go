package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
)

// ClockError is the error of the times of some clients of one process. Their times were measured by another clock and
// converted to the history's clock. Times of one Clock are exact relative to each other: one clock measured them, and
// one monotonic function converted them.
type ClockError struct {
	Clock   int   `json:"clock"` // number of the clock, from 0
	First   int   `json:"first"` // the first of the clients, which have consecutive numbers
	Clients int   `json:"clients"`
	Error   int64 `json:"error_ns"` // maximal error in either direction; Unbounded: not known

	// Cut reports whether the process was lost, so that records are missing at the end of these clients.
	Cut bool `json:"cut,omitempty"`
}

// Unbounded is the error of a clock that was not compared with another one.
const Unbounded int64 = -1

// ClocksFile is the file with the clock errors in a history's folder. They are known only after the
// recording.
const ClocksFile = "clocks.json"

// clocksFile is the content of ClocksFile.
type clocksFile struct {
	Identity Identity     `json:"identity"`
	Clocks   []ClockError `json:"clocks"`
}

// KeepClocks writes ClocksFile for the history in dir.
func KeepClocks(dir string, clocks []ClockError) error {
	id, err := IdentityIn(dir)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, ClocksFile)
	text, err := json.MarshalIndent(clocksFile{id, clocks}, "", "  ")
	if err == nil {
		text = append(text, '\n')
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return explain(recording, path, err)
	}
	return list(dir, map[string]entry{ClocksFile: {Checksum: checksum(text)}})
}

// readClocks adds the errors to the header. If the file is missing, the errors remain unbounded.
func (r *Reader) readClocks(dir string) error {
	if len(r.header.Clocks) == 0 {
		return nil
	}
	path := filepath.Join(dir, ClocksFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var kept clocksFile
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		return clocksDamage(path, BadRecord, err.Error()+": restore it from a copy")
	}
	if h := r.header; kept.Identity != (Identity{h.Workload, h.LoadID, h.Run, r.source.preamble}) {
		what := fmt.Sprintf("it belongs to %s and not to the history beside it: put the files of one run together", kept.Identity)
		return clocksDamage(path, Replaced, what)
	}
	for i := range r.header.Clocks {
		c := &r.header.Clocks[i]
		for _, k := range kept.Clocks {
			if k.Clock == c.Clock && k.First == c.First && k.Clients == c.Clients {
				c.Error, c.Cut = k.Error, k.Cut
			}
		}
	}
	return nil
}

// clocksDamage returns the damage of ClocksFile. Without that file the times of the history cannot be
// compared, so the history counts as damaged.
func clocksDamage(path string, problem Problem, what string) *Damage {
	return &Damage{Input: Recorded, File: path, Problem: problem, Offset: -1, err: errDamaged, what: what,
		doing: "read the clocks of the history"}
}

// plausibleClocks returns an error for impossible clocks: each client has exactly one clock, and the clients
// of one clock have consecutive numbers.
func (r *Reader) plausibleClocks() error {
	next := 0
	for _, c := range r.header.Clocks {
		if c.First != next || c.Clients < 1 || c.Clients > r.header.Clients-next || c.Clock < 0 || c.Clock > len(r.header.Clocks) || c.Error < Unbounded {
			return r.source.damaged(preambleSize, Senseless, "its description of the clients' clocks makes no sense")
		}
		next += c.Clients
	}
	if next != 0 && next != r.header.Clients {
		return r.source.damaged(preambleSize, Senseless, "its description of the clients' clocks leaves some out")
	}
	return nil
}

// ClockOf returns the entry of Clocks for a client, or nil if there is none. Background clients share the
// clock of the first client.
func (h *Header) ClockOf(client uint64) *ClockError {
	for i := range h.Clocks {
		if c := &h.Clocks[i]; client >= uint64(c.First) && client < uint64(c.First+c.Clients) {
			return c
		}
	}
	if len(h.Clocks) > 0 {
		return &h.Clocks[0]
	}
	return nil
}

// Uncertainty returns the maximal error between the times of two clients, or Unbounded if it is not known.
func (h *Header) Uncertainty() int64 {
	errors := map[int]int64{}
	for _, c := range h.Clocks {
		if c.Error == Unbounded {
			return Unbounded
		}
		errors[c.Clock] = max(errors[c.Clock], c.Error)
	}
	first, second := int64(0), int64(0)
	for _, error := range errors {
		first, second = max(first, error), max(second, min(first, error))
	}
	if len(errors) < 2 {
		return 0
	}
	return first + second
}

// Part is a history without the blocks of some clients, in the order of the file.
type Part struct {
	*Reader
	of     func(client uint32) bool
	header Header
	cut    bool
}

// Part returns the part of the history with the clients for which of returns true. Header h describes it. If
// cut is set, the part is not complete.
func (r *Reader) Part(h Header, cut bool, of func(client uint32) bool) *Part {
	return &Part{r, of, h, cut}
}

// Has reports whether the part has the transactions of a client.
func (p *Part) Has(client uint64) bool { return p.of(uint32(client)) }

// Complete is like Reader.Complete, for these clients.
func (p *Part) Complete() bool { return !p.cut && p.Reader.Complete() }

// Header returns the description of the run for this part.
func (p *Part) Header() Header { return p.header }

// Blocks is like Reader.Blocks, for these clients.
func (p *Part) Blocks() iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		for b, err := range p.Reader.Blocks() {
			if (err != nil || p.of(b.Client)) && !yield(b, err) {
				return
			}
		}
	}
}

// EachBlock is like Reader.EachBlock, for these clients.
func (p *Part) EachBlock(workers int, do func(worker int, c *Cursor) error) error {
	return p.eachBlock(p.Blocks(), workers, do)
}

// Transactions is like Reader.Transactions, for these clients.
func (p *Part) Transactions() iter.Seq2[Record, error] { return p.TransactionsIn(p.Blocks()) }

// CopyTimes is like Copy for a recording with another clock. The function at converts its times to this
// recording's clock and must be monotonic.
func (w *Writer) CopyTimes(r *Reader, at func(ns int64) int64) error {
	c := r.Cursor()
	for b, err := range r.Blocks() {
		if err != nil {
			return err
		}
		if int(b.Client) >= len(w.clients) {
			return r.manyClients(b.Client, len(w.clients))
		}
		to := w.Client(int(b.Client))
		for c.Open(b); c.Next(); {
			tx := &c.Transaction
			tx.Due, tx.Sent, tx.Try, tx.End = at(tx.Due), at(tx.Sent), at(tx.Try), at(tx.End)
			if err := to.Append(tx); err != nil {
				return err
			}
		}
		if err := errors.Join(c.Err(), to.Flush()); err != nil {
			return err
		}
	}
	return w.copiedWhole(r)
}
