package history

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Header is what a history says about its run.
type Header struct {
	Workload string            `json:"workload"`
	LoadID   string            `json:"load_id,omitempty"` // of the load that was driven; empty where it has none
	Run      uint64            `json:"run"`               // the run part of the IDs
	Seed     uint64            `json:"seed"`
	Objects  uint64            `json:"objects"`
	Total    int64             `json:"total"` // the canonical total, in the unit; 0 where nothing is added up
	Clients  int               `json:"clients"`
	Started  int64             `json:"started_unix_ns"` // wall clock at the run's start, for people; no time in the history depends on it
	Database string            `json:"database"`
	Keys     map[string]string `json:"keys,omitempty"` // further facts that a workload needs for its checks

	// Clocks are those of the clients where they had several. Their errors are in ClocksFile.
	Clocks []ClockError `json:"clocks,omitempty"`

	// What the workload declares, so that a reader needs no table of its own.
	Kinds   []Declared `json:"kinds,omitempty"`   // of its transactions
	Reasons []Declared `json:"reasons,omitempty"` // for which it rejects one
	Object  string     `json:"object,omitempty"`  // what an object is, in the singular: account, stream, record
	Unit    string     `json:"unit,omitempty"`    // of amounts and balances: cents, bytes, or number
}

// description is the JSON text of a history's preamble.
type description struct {
	Header
	Listed bool `json:"manifest,omitempty"` // a manifest is made when the history is complete
}

// Declared is a number of the records and what it stands for.
type Declared struct {
	Number     uint8  `json:"number"`
	Name       string `json:"name"`
	ReadOnly   bool   `json:"read_only,omitempty"`  // of a kind: it changes nothing
	Background bool   `json:"background,omitempty"` // of a kind: it is not measured
}

// KindName is what a kind is called in this history.
func (h *Header) KindName(k Kind) string { return declared(h.Kinds, "kind", uint8(k)) }

// ReasonName is what a reason is called in this history.
func (h *Header) ReasonName(r Reason) string { return declared(h.Reasons, "reason", uint8(r)) }

func declared(list []Declared, what string, number uint8) string {
	for _, d := range list {
		if d.Number == number {
			return d.Name
		}
	}
	return fmt.Sprintf("undeclared %s %d", what, number)
}

// Identity names the history that another file of the run's directory belongs to.
type Identity struct {
	Workload string `json:"workload"`
	LoadID   string `json:"load_id,omitempty"`
	Run      uint64 `json:"run"`
	Header   uint32 `json:"header_checksum"` // of the history's preamble: no two runs have the same
}

func (i Identity) String() string {
	if i == (Identity{}) {
		return "no run that is known"
	}
	return fmt.Sprintf("run %d of the workload %s, load %q, started as %08x", i.Run, i.Workload, i.LoadID, i.Header)
}

// IdentityIn is that of the history in dir; the zero one where there is none.
func IdentityIn(dir string) (Identity, error) {
	s, err := openSource("read the history", filepath.Join(dir, transactionsFile), transactions)
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, nil
	}
	if err != nil {
		return Identity{}, err
	}
	defer s.close()
	var h Header
	if err := s.unmarshal(&h); err != nil {
		return Identity{}, err
	}
	return Identity{h.Workload, h.LoadID, h.Run, s.preamble}, nil
}

// Ref says where in the files of a run a transaction is recorded.
type Ref struct {
	File   string `json:"file"`   // relative to the run's directory
	Offset int64  `json:"offset"` // of the block in the file, in bytes
	Record int    `json:"record"` // within the block, from 0
}

// String returns the place as reports show it.
func (r Ref) String() string {
	return fmt.Sprintf("%s, block at %d, record %d", r.File, r.Offset, r.Record)
}

// Record is a transaction together with where it is recorded.
type Record struct {
	*Transaction
	Ref Ref
}
