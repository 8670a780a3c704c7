package schedule

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"stroppy/internal/db"
)

// State is the result of a schedule.
type State uint8

const (
	Undecided     State = iota // it could not be carried out as written
	NotApplicable              // the data model cannot express it
	Prevented
	Seen
)

var stateNames = [...]string{"undecided", "not applicable", "prevented", "seen"}

func (s State) String() string { return stateNames[s] }

// MarshalText and UnmarshalText carry a state through JSON by name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(stateNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("no outcome of a schedule is called %q", text)
	}
	*s = State(i)
	return nil
}

// Outcome is the result of one schedule at one isolation.
type Outcome struct {
	Anomaly   Anomaly `json:"-"`
	Variant   string  `json:"variant"`
	Predicate bool    `json:"predicate,omitempty"`
	Every     bool    `json:"every_level,omitempty"` // each level forbids this form
	Sampled   bool    `json:"sampled,omitempty"`     // it was run several times, and proves nothing if no run showed the anomaly
	State     State   `json:"schedule"`
	// How names what prevented the anomaly, or why the schedule does not apply or is undecided.
	How string `json:"how,omitempty"`
	// Witness is a sentence about the anomaly that was seen.
	Witness string `json:"witness,omitempty"`
	Steps   []Line `json:"steps,omitempty"` // in the order in which they began
}

// Line is one step as it went.
type Line struct {
	Transaction int    `json:"transaction"`
	Step        string `json:"step"`
	Result      string `json:"result"`
	Waited      bool   `json:"waited,omitempty"`
}

func (l Line) String() string {
	text := fmt.Sprintf("T%d %s", l.Transaction, l.Step)
	if l.Waited {
		text += ", waited"
	}
	if l.Result != "" {
		text += ": " + l.Result
	}
	return text
}

// executed is a step that was carried out or refused.
type executed struct {
	Result
	step   *Step
	err    error
	waited bool
	number int // in the order in which the steps ended
}

// observed holds the observations of one run of a schedule.
type observed struct {
	begun []*executed
	fate  []fate // of each transaction, from 1
	final []Row
}

// fate is the end of a transaction.
type fate uint8

const (
	isOpen fate = iota
	isCommitted
	isRolledBack // as the schedule asked
	isAborted    // by the database
)

// step returns the step of the label, which was carried out, or nil. The label left stands for the rows that are left.
func (o *observed) step(label string) *executed {
	if label == "left" {
		return &executed{Result: Result{Rows: o.final}}
	}
	i := slices.IndexFunc(o.begun, func(e *executed) bool { return e.step.label == label && e.err == nil })
	if i < 0 {
		return nil
	}
	return o.begun[i]
}

// rows returns the rows that the step of the label found.
func (o *observed) rows(label string) []Row {
	if e := o.step(label); e != nil {
		return e.Rows
	}
	return nil
}

func texts(rows []Row) string {
	if len(rows) == 0 {
		return "nothing"
	}
	var list []string
	for _, r := range rows {
		list = append(list, r.String())
	}
	return strings.Join(list, ", ")
}

// waited reports whether a step took longer than the wait.
func (o *observed) waited() bool {
	return slices.ContainsFunc(o.begun, func(e *executed) bool { return e.waited })
}

// restsOnWait reports whether a transaction waited and went on. A transaction that was aborted
// shows by that how the anomaly was prevented.
func (o *observed) restsOnWait() bool {
	return slices.ContainsFunc(o.begun, func(e *executed) bool {
		return e.waited && o.fate[e.step.Transaction] != isAborted
	})
}

// prevention returns what prevented the anomaly.
func (o *observed) prevention() string {
	var how []string
	for _, e := range o.begun {
		if e.waited {
			how = append(how, fmt.Sprintf("T%d waited", e.step.Transaction))
		}
	}
	how = slices.Compact(how)
	for _, e := range o.begun {
		if e.err != nil {
			how = append(how, fmt.Sprintf("T%d was aborted at its %s%s", e.step.Transaction, verbs[e.step.Kind], code(e.err)))
		}
	}
	if o.oldVersion() {
		how = append(how, "an old version was read")
	}
	if len(how) == 0 {
		how = append(how, "no step showed it")
	}
	return strings.Join(how, "; ")
}

// code returns the database's name of an error in parentheses; empty if it has none.
func code(err error) string {
	switch e := asError(err); {
	case e.Code != "":
		return " (" + e.Code + ")"
	case e.Class == db.Constraint:
		return " (a constraint)"
	}
	return ""
}

// oldVersion reports whether a read that waited for nobody did not see the newest write of
// another transaction before it, committed or not.
func (o *observed) oldVersion() bool {
	for _, e := range o.begun {
		if e.err != nil || e.waited || !e.step.Kind.reads() {
			continue
		}
		for id := int64(1); id <= lastID; id++ {
			w := o.newest(id, e)
			if w == nil || w.step.Kind != Write && w.step.Kind != Insert || w.step.Transaction == e.step.Transaction {
				continue
			}
			if o.fateBefore(w, e) != isRolledBack {
				if written := (Row{id, w.step.Amount}); e.step.covers(written) && !slices.Contains(e.Rows, written) {
					return true
				}
			}
		}
	}
	return false
}

// newest returns the last write of a row by its key that had ended when a step ended; nil if
// there was none.
func (o *observed) newest(id int64, before *executed) (last *executed) {
	for _, w := range o.begun {
		if w.err == nil && w.number < before.number && w.step.Kind.writes() && slices.Contains(w.step.IDs, id) && (last == nil || w.number > last.number) {
			last = w
		}
	}
	return last
}

// fateBefore returns the end of the transaction of a write when a step ended.
func (o *observed) fateBefore(w, before *executed) fate {
	t := w.step.Transaction
	for _, e := range o.begun {
		if e.step.Transaction == t && e.number < before.number && (e.err != nil || e.step.Kind == Rollback) {
			return isRolledBack
		}
	}
	return isOpen
}

// covers reports whether a read of the newest state would bring the row.
func (s *Step) covers(r Row) bool {
	if s.Kind != Read {
		return len(s.among([]Row{r})) > 0
	}
	return slices.Contains(s.IDs, r.ID)
}

// lines returns the steps as a person reads them.
func (o *observed) lines() (list []Line) {
	for _, e := range o.begun {
		l := Line{Transaction: e.step.Transaction, Step: e.step.String(), Waited: e.waited}
		switch {
		case e.err != nil:
			l.Result = "aborted" + code(e.err)
		case e.step.Kind.reads():
			l.Result = texts(e.Rows)
		case e.Counted && (e.step.Kind == AddWhere || e.step.Kind == DeleteWhere):
			l.Result = fmt.Sprintf("%d rows", e.Affected)
		}
		list = append(list, l)
	}
	return list
}

// condition is a part of what shows an anomaly. A label names the step that it is about.
type condition func(o *observed) bool

// shown returns a Schedule.seen: the text if all transactions committed and the conditions hold. In
// the text, ${LABEL} stands for the rows of a step.
func shown(text string, conditions ...condition) func(o *observed) string {
	return shownIf(text, append(slices.Clone(conditions), func(o *observed) bool {
		return !slices.ContainsFunc(o.fate[1:], func(f fate) bool { return f != isCommitted })
	})...)
}

// shownIf is like shown, but transactions need not commit.
func shownIf(text string, conditions ...condition) func(o *observed) string {
	return func(o *observed) string {
		if !allOf(conditions...)(o) {
			return ""
		}
		return os.Expand(text, func(label string) string { return texts(o.rows(label)) })
	}
}

func not(c condition) condition { return func(o *observed) bool { return !c(o) } }

func allOf(conditions ...condition) condition {
	return func(o *observed) bool {
		return !slices.ContainsFunc(conditions, func(c condition) bool { return !c(o) })
	}
}

func oneOf(conditions ...condition) condition {
	return func(o *observed) bool {
		return slices.ContainsFunc(conditions, func(c condition) bool { return c(o) })
	}
}

// commits holds if a transaction committed.
func commits(transaction int) condition {
	return func(o *observed) bool { return o.fate[transaction] == isCommitted }
}

// brought holds if the step was carried out with such a result.
func brought(label string, holds func(r Result) bool) condition {
	return func(o *observed) bool {
		e := o.step(label)
		return e != nil && holds(e.Result)
	}
}

// did holds if the step was carried out.
func did(label string) condition { return brought(label, func(Result) bool { return true }) }

// saw holds if the step found a row, perhaps among others.
func saw(label string, row Row) condition {
	return brought(label, func(r Result) bool { return slices.Contains(r.Rows, row) })
}

// found holds if the step found these rows and no other.
func found(label string, rows ...Row) condition {
	return brought(label, func(r Result) bool { return slices.Equal(r.Rows, rows) })
}

// changed holds if the write changed or deleted this many rows.
func changed(label string, n int64) condition {
	return brought(label, func(r Result) bool { return r.Counted && r.Affected == n })
}

// wroteRow holds if the write found its row. A client that writes without reading makes the row
// if it is not there.
func wroteRow(label string) condition {
	return brought(label, func(r Result) bool { return !r.Counted || r.Affected > 0 })
}
