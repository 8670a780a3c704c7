package report

import (
	"fmt"
	"slices"
	"strings"
)

// Acknowledgements record which server acknowledged writes when, by the server of the client's session. A
// write that a look-up found was acknowledged by none.
type Acknowledgements struct {
	OnePrimary bool           `json:"one_primary"` // only one server may take writes, so an overlap is an error
	Intervals  []Acknowledged `json:"intervals"`   // in order; an interval ends after a second without an acknowledged write
	Overlaps   []Overlap      `json:"overlaps"`    // if only one server may take writes: the times in which two did
}

// Acknowledged is a time in which one server acknowledged writes.
type Acknowledged struct {
	Server          string   `json:"server"` // a node's name, or HOST:PORT
	FromSeconds     float64  `json:"from_s"` // the first acknowledgement; the last is at to_s
	ToSeconds       float64  `json:"to_s"`
	Acknowledged    uint64   `json:"acknowledged"` // writes
	Lost            *uint64  `json:"lost"`         // writes that are not in the end state; null if this is not known
	LostFromSeconds *float64 `json:"lost_from_s"`  // the first acknowledgement of a lost write; null if there is none
}

// Overlap is a time in which two servers took writes, or were ready to. Each acknowledged writes that were
// sent after the other had acknowledged one, or one was the leader while the other acknowledged some. The
// counts cover the whole time.
type Overlap struct {
	FromSeconds float64        `json:"from_s"`
	ToSeconds   float64        `json:"to_s"`
	Servers     []Acknowledged `json:"servers"`
}

// text returns a sentence about an overlap.
func (o *Overlap) text() string {
	var each []string
	took := "took"
	for _, s := range o.Servers {
		if s.Acknowledged == 0 {
			took = "were ready to take"
			each = append(each, s.Server+" had become the leader, and no client wrote to it")
			continue
		}
		each = append(each, s.Server+" acknowledged "+s.countText())
	}
	return fmt.Sprintf("Two nodes %s writes for %s, from %s to %s: %s.",
		took, seconds(o.ToSeconds-o.FromSeconds), atText(o.FromSeconds), atText(o.ToSeconds), strings.Join(each, "; "))
}

// lostText returns a sentence about writes that were acknowledged and lost.
func (a *Acknowledged) lostText() string {
	return fmt.Sprintf("%[2]s acknowledged %[1]s writes from %[3]s to %[4]s: %[5]s are lost, the first of them acknowledged at %[6]s.",
		Group(a.Acknowledged), a.Server, atText(a.FromSeconds), atText(a.ToSeconds), Perhaps(a.Lost, Group), textOr(none, a.LostFromSeconds, atText))
}

// countText counts the acknowledged writes of an overlap, and the lost ones among them.
func (a *Acknowledged) countText() string {
	text := Group(a.Acknowledged) + " then"
	switch {
	case a.Lost == nil:
	case *a.Lost == 0:
		text += ", of which none is lost"
	case *a.Lost == 1:
		text += ", of which 1 is lost"
	default:
		text += fmt.Sprintf(", of which %s are lost", Group(*a.Lost))
	}
	return text
}

// shown reports whether more than one server acknowledged writes, or one while another led.
func (a *Acknowledgements) shown() bool {
	if a == nil || len(a.Intervals) == 0 {
		return false
	}
	other := func(i Acknowledged) bool { return i.Server != a.Intervals[0].Server }
	if slices.ContainsFunc(a.Intervals, other) {
		return true
	}
	return len(a.Overlaps) > 0
}

// mostAcknowledged bounds the rows of the table; result.json has all.
const mostAcknowledged = 40

// acknowledgedTables list which server acknowledged writes, and when.
func acknowledgedTables(r *Result) []DataTable {
	a := r.Acknowledgements
	if !a.shown() {
		return nil
	}
	t := NewTable("Writes acknowledged by node", "An interval ends where the node acknowledged no write for a second. Lost are those that are not in the end state.",
		[]int{0}, "node", "from", "to", "acknowledged", "lost", "lost from")
	for i, x := range a.Intervals {
		if i == mostAcknowledged {
			t.Note += fmt.Sprintf(" And %d more, in %s.", len(a.Intervals)-i, FileName)
			break
		}
		t.Add(x.Server, atText(x.FromSeconds), atText(x.ToSeconds), Group(x.Acknowledged), Perhaps(x.Lost, Group), textOr(none, x.LostFromSeconds, atText))
	}
	if a.OnePrimary && len(a.Overlaps) == 0 {
		t.Note += " No two nodes took writes at the same time."
	}
	return []DataTable{t}
}
