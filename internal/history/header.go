package history

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Header describes the run of a history.
type Header struct {
	Workload string            `json:"workload"`
	LoadID   string            `json:"load_id,omitempty"` // of the data that were driven; empty: none
	Run      uint64            `json:"run"`               // the run part of the IDs
	Seed     uint64            `json:"seed"`
	Objects  uint64            `json:"objects"`
	Total    int64             `json:"total"` // the load's total, in the unit; 0: there is no sum
	Clients  int               `json:"clients"`
	Started  int64             `json:"started_unix_ns"` // wall clock at the run's start, for display only
	Database string            `json:"database"`
	Keys     map[string]string `json:"keys,omitempty"` // further facts that the workload's checks need

	// Clocks describes the clocks of the clients if there are several. ClocksFile holds their errors.
	Clocks []ClockError `json:"clocks,omitempty"`

	// The workload declares its kinds and reasons, so that a reader needs no table of its own.
	Kinds   []Declared `json:"kinds,omitempty"`
	Reasons []Declared `json:"reasons,omitempty"` // reasons of rejections
	Object  string     `json:"object,omitempty"`  // noun for an object: account, stream, record
	Unit    string     `json:"unit,omitempty"`    // of amounts and balances: cents, bytes, or number
}

// description is the JSON value in a history's preamble.
type description struct {
	Header
	Listed bool `json:"manifest,omitempty"` // a manifest is written when the history is complete
}

// Declared is a number in the records with its meaning.
type Declared struct {
	Number     uint8  `json:"number"`
	Name       string `json:"name"`
	ReadOnly   bool   `json:"read_only,omitempty"`  // for a kind: it changes nothing
	Background bool   `json:"background,omitempty"` // for a kind: it is not measured
}

// KindName returns the name of a kind in this history.
func (h *Header) KindName(k Kind) string { return declared(h.Kinds, "kind", uint8(k)) }

// ReasonName returns the name of a reason in this history.
func (h *Header) ReasonName(r Reason) string { return declared(h.Reasons, "reason", uint8(r)) }

func declared(list []Declared, what string, number uint8) string {
	for _, d := range list {
		if d.Number == number {
			return d.Name
		}
	}
	return fmt.Sprintf("undeclared %s %d", what, number)
}

// Identity identifies the history to which another file of the run's directory belongs.
type Identity struct {
	Workload string `json:"workload"`
	LoadID   string `json:"load_id,omitempty"`
	Run      uint64 `json:"run"`
	Header   uint32 `json:"header_checksum"` // checksum of the history's preamble, which differs between runs
}

func (i Identity) String() string {
	if i == (Identity{}) {
		return "no run that is known"
	}
	return fmt.Sprintf("run %d of the workload %s, load %q, started as %08x", i.Run, i.Workload, i.LoadID, i.Header)
}

// IdentityIn returns the identity of the history in dir, or the zero value if there is none.
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

// Ref is the position of a transaction in the files of a run.
type Ref struct {
	File   string `json:"file"`   // relative to the run's directory
	Offset int64  `json:"offset"` // of the block in the file, in bytes
	Record int    `json:"record"` // within the block, from 0
}

// String formats the position for reports.
func (r Ref) String() string {
	return fmt.Sprintf("%s, block at %d, record %d", r.File, r.Offset, r.Record)
}

// Record is a transaction with its position.
type Record struct {
	*Transaction
	Ref Ref
}
