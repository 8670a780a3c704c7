package fact

import (
	"time"

	"stroppy/internal/history"
)

// These facts are about invariants: queries of the user with an expected result.
type (
	// InvariantBroken states that an invariant does not hold.
	InvariantBroken struct {
		Name   string        `json:"name"`
		Expect string        `json:"expect"`                // as the user wrote it, such as unchanged
		Want   string        `json:"want,omitempty"`        // the expected value; empty: see Expect
		Saw    string        `json:"saw,omitempty"`         // the value that was read; empty: see Rows
		Count  int           `json:"count"`                 // rows that were read
		Rows   []string      `json:"rows,omitempty"`        // the first of them
		Other  []string      `json:"other_rows,omitempty"`  // the first rows of the second query alone; Rows then too
		Others int           `json:"other_count,omitempty"` // rows of the second query
		By     history.ID    `json:"transaction,omitempty"` // the first audit that read it; 0: the end state
		At     time.Duration `json:"at_ns,omitempty"`       // the end of that audit, since the run's start
	}
	// InvariantsHold counts the invariants and the completed audits. All invariants held in all audits and in the end.
	InvariantsHold struct {
		Invariants int `json:"invariants"`
		Audits     int `json:"audits"`
	}
	// InvariantUnread states that the end state has no answer for an invariant. Later means that runs which began
	// later may have changed what it sums.
	InvariantUnread struct {
		Name  string `json:"name"`
		Later bool   `json:"later,omitempty"`
	}
	// InvariantOpen states that a sum is known only within bounds, because of transactions of unknown outcome.
	InvariantOpen struct {
		Name    string `json:"name"`
		Saw     string `json:"saw"`
		Low     string `json:"low"`
		High    string `json:"high"`
		Unknown int    `json:"unknown"` // transactions
	}
)

func (InvariantBroken) Fact() string { return "invariant-broken" }
func (InvariantsHold) Fact() string  { return "invariants-hold" }
func (InvariantUnread) Fact() string { return "invariant-unread" }
func (InvariantOpen) Fact() string   { return "invariant-open" }
