package history

import "fmt"

// Header is what a history says about its run.
type Header struct {
	Workload string            `json:"workload"`
	LoadID   string            `json:"load_id,omitempty"` // of the load that was driven; empty where it has none
	Run      uint64            `json:"run"`               // the run part of the IDs
	Seed     uint64            `json:"seed"`
	Accounts uint64            `json:"accounts"`
	Total    int64             `json:"total_cents"` // the canonical total
	Clients  int               `json:"clients"`
	Started  int64             `json:"started_unix_ns"` // wall clock at the run's start, for people; no time in the history depends on it
	Database string            `json:"database"`
	Keys     map[string]string `json:"keys,omitempty"` // further facts that a workload needs for its checks
}

// Ref says where in the files of a run a transaction is recorded.
type Ref struct {
	File   string // relative to the run's directory
	Offset int64  // of the block in the file, in bytes
	Record int    // within the block, from 0
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
