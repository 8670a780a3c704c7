package redis

import (
	"net"
	"sync"
	"time"

	"stroppy/internal/db"
)

// Hold keeps the connection of streams busy until release is called. release may be called once.
func Hold(stream db.KVSession) (release func()) {
	l := stream.(*Stream)
	l.handle.Acquire()
	return l.handle.Release
}

// Stream is a session that shares its connection with others.
type Stream = session

// AwaitQueue returns when the given number of streams wait for their requests to be sent.
func AwaitQueue(stream db.KVSession, requests int) {
	t := stream.(*Stream).of
	for t.Queued() < requests {
		time.Sleep(time.Millisecond)
	}
}

// Recorder records what is written to a connection, each write separately.
type Recorder struct {
	net.Conn
	mu     sync.Mutex
	writes []string
}

// Record puts a recorder into the connection of streams. Nobody may use the connection meanwhile.
func Record(stream db.KVSession) *Recorder {
	w := stream.(*Stream).of.link.wire
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

// Break ends the connection of streams on our side. Nobody may use the connection meanwhile.
func Break(stream db.KVSession) error { return stream.(*Stream).of.link.wire.Close() }
