package redis

import (
	"net"
	"sync"
	"time"

	"stroppy/internal/db"
)

// Hold keeps the connection of lanes from being used, until release, which may be
// called once.
func Hold(lane db.KVSession) (release func()) {
	l := lane.(*Lane)
	l.place.Acquire()
	return l.place.Release
}

// Lane is a session of a connection that several share.
type Lane = lane

// AwaitQueue returns when so many lanes wait for their requests to be sent.
func AwaitQueue(lane db.KVSession, requests int) {
	t := lane.(*Lane).trunk
	for t.Queued() < requests {
		time.Sleep(time.Millisecond)
	}
}

// Recorder keeps what is written to a connection, each write by itself.
type Recorder struct {
	net.Conn
	mu     sync.Mutex
	writes []string
}

// Record puts a recorder into the connection of lanes, which nobody may be using.
func Record(lane db.KVSession) *Recorder {
	w := lane.(*Lane).trunk.link.wire
	r := &Recorder{Conn: w.Conn}
	w.Conn = r
	return r
}

func (r *Recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, string(b))
	return r.Conn.Write(b)
}

// Take returns the writes since the last call.
func (r *Recorder) Take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.writes = nil }()
	return r.writes
}

// Break ends the connection of lanes, which nobody may be using, on our side.
func Break(lane db.KVSession) error { return lane.(*Lane).trunk.link.wire.Close() }
