// Package workers spreads the clients of one load phase over several processes. A
// coordinator, which is the process of the run, starts the workers or lets them join, has
// each open its part of the clients, starts all at one moment, adds up what they do, and
// collects their recordings into that of the run. It knows neither databases nor workloads.
package workers

import (
	"encoding/gob"
	"errors"
	"net"
	"sync"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
)

// Assignment is what a worker has to know to open its part of the clients.
type Assignment struct {
	First, Clients int    // of the clients that are its own
	All            int    // clients of all workers together
	Background     bool   // it runs the background clients too
	Settings       []byte // of the run, as the program that assigned them writes them
	LoadID         string // of the data
	Run            uint64 // the run number that the coordinator has taken
}

// Opened is a worker's part of the load phase before it begins.
type Opened struct {
	// Options are those of the load phase but for Start, History, Ended and Connected.
	Options load.Options
	Header  history.Header
	Servers []string // of the clients, HOST:PORT; empty: not known
	Close   func() error
}

// message is what goes between coordinator and worker; one field is set, or none in what only
// says that a worker is there.
type message struct {
	Hello     *hello      // of a worker, the first one
	Assign    *Assignment // to a worker
	Ready     *ready      // the clients are open
	Start     *start      // to a worker
	Moved     *moved      // a client has another connection
	Status    *load.Snapshot
	Over      bool         // of a worker: nothing new is started any more
	Release   bool         // to a worker: what hurts the database has ended, too
	Stop      bool         // to a worker: begin nothing new
	Abort     bool         // to a worker: end at once
	Result    *load.Result // of the load phase
	Collect   bool         // to a worker: send the recording
	Recording *piece
	Failed    string // what the worker cannot do, and why
	Done      bool   // to a worker: all has arrived
}

type hello struct {
	Version string
	PID     int
	Clock   string // on which clock Start is given; empty: the system does not say
}

type ready struct {
	Header  history.Header
	Servers []string
}

// start is the zero of the history's times, in nanoseconds on the clock that coordinator
// and worker share, and how long after it the load phase begins.
type start struct {
	At int64
	In time.Duration
}

type moved struct {
	Client int
	At     int64
	Server string
}

// piece is a part of a recording, in order.
type piece struct {
	Offset int64
	Data   []byte
	Sum    uint32 // CRC-32C of all up to the end of this piece
	Last   bool
}

// channel sends messages and receives them. Any goroutine may send; one receives.
type channel struct {
	net.Conn
	mu      sync.Mutex
	encoder *gob.Encoder
	decoder *gob.Decoder
}

func newChannel(conn net.Conn) *channel {
	return &channel{Conn: conn, encoder: gob.NewEncoder(conn), decoder: gob.NewDecoder(conn)}
}

// silence bounds how long the other side may take nothing, and a worker say nothing. Each
// says something every second, whatever it does.
const silence = 30 * time.Second

func (c *channel) send(m *message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	return c.encoder.Encode(m)
}

func (c *channel) receive() (*message, error) {
	m := new(message)
	return m, c.decoder.Decode(m)
}

// OwnFolder is the folder below a worker's own in which it records.
const OwnFolder = "recorded"

// Clock reads the clock that all processes of this machine share, in nanoseconds, as t is
// on it, and names that clock; false where the system does not say.
type Clock func(t time.Time) (name string, at int64, known bool)

// errClock says why a worker cannot take part.
var errClock = errors.New("its clock is not that of this process, so that times could not be compared: run the workers on the machine of the run")
