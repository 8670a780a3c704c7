package cluster

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Event is something that a cluster observed or did by itself.
type Event struct {
	Time   time.Time
	Text   string
	Leader string // the node that became leader; empty for other events
	Named  string // the leader that clients can find from now on, if that is later than its election; empty for other events
	Repair bool   // this program repaired the cluster, as an operator would have to
}

// EventLog holds the events of a cluster. The zero value is empty. Its methods may be called from several goroutines.
type EventLog struct {
	mu   sync.Mutex
	list []Event
}

// Events returns all events so far, the oldest first.
func (l *EventLog) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// Note records an event, unless it repeats the last one.
func (l *EventLog) Note(format string, args ...any) { l.note(Event{}, format, args) }

// NoteLeader records that a node became leader.
func (l *EventLog) NoteLeader(name, format string, args ...any) {
	l.note(Event{Leader: name}, format, args)
}

// NoteNamed records that clients can now find the leader.
func (l *EventLog) NoteNamed(name, format string, args ...any) {
	l.note(Event{Named: name}, format, args)
}

// NoteRepair records a repair that this program made in place of an operator.
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
