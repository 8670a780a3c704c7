package cluster

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Event is something that a cluster saw or did by itself.
type Event struct {
	Time   time.Time
	Text   string
	Leader string // the node that leads from then on; empty: the event is another one
	Named  string // the node that clients can learn from then on to lead, where that is later; empty: the event is another one
	Repair bool   // it is what an operator has to do, for the cluster does not do it by itself
}

// EventLog keeps the events of a cluster. The zero value has none. Its methods may be
// called from several goroutines.
type EventLog struct {
	mu   sync.Mutex
	list []Event
}

// Events are all events so far, the oldest first.
func (l *EventLog) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// Note records an event, unless it is the last one again.
func (l *EventLog) Note(format string, args ...any) { l.note(Event{}, format, args) }

// NoteLeader records that a node leads now.
func (l *EventLog) NoteLeader(name, format string, args ...any) {
	l.note(Event{Leader: name}, format, args)
}

// NoteNamed records that clients can learn now that a node leads.
func (l *EventLog) NoteNamed(name, format string, args ...any) {
	l.note(Event{Named: name}, format, args)
}

// NoteRepair records what was done as an operator does it.
func (l *EventLog) NoteRepair(format string, args ...any) {
	l.note(Event{Repair: true}, format, args)
}

func (l *EventLog) note(e Event, format string, args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time, e.Text = time.Now(), fmt.Sprintf(format, args...)
	if last := len(l.list) - 1; last >= 0 && l.list[last].Text == e.Text {
		return
	}
	l.list = append(l.list, e)
}
