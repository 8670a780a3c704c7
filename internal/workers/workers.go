// Package workers spreads the clients of one load phase over several processes. The coordinator is the process of the
// run. It starts the workers, or lets them join from other machines. It assigns a share of the clients to each, starts
// all at the same time, and adds up their results. It merges their recordings with times on its own clock. The package
// is independent of databases and workloads.
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

// Assignment holds the data with which a worker opens its share of the clients.
type Assignment struct {
	First, Clients int    // of the clients that are its own
	All            int    // clients of all workers together
	Background     bool   // it runs the background clients too
	Settings       []byte // of the run, as the program that assigned them writes them
	LoadID         string // of the data
	Run            uint64 // the run number that the coordinator has taken
}

// Opened is a worker's part of the load phase before its beginning.
type Opened struct {
	// Options are the load phase's options without Start, History, Ended and Connected.
	Options load.Options
	Header  history.Header
	Servers []string // of the clients, HOST:PORT; empty: not known
	Close   func() error
}

// message is one message between coordinator and worker. One field is set, or none for a sign of life.
type message struct {
	Hello     *hello      // of a worker, the first one
	Welcome   *welcome    // to a worker, the answer
	Refused   string      // or why it may not join
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
	Ack       *ack
	Failed    string // what the worker cannot do, and why
	Done      bool   // to a worker: all has arrived
}

// hello is a worker's first message on a connection that has proved the token.
type hello struct {
	Version string
	PID     int
	Host    string
	Clock   string // on which clock Start is given; empty: the system does not say
	Index   int    // the number that it is to have, from 0; -1: any

	// For a further connection: its purpose, and the Key of the worker's Welcome.
	For purpose
	Key string
}

type purpose uint8

const (
	orders        purpose = iota
	clockReadings         // of clocks
	uploads               // of the recording
)

// welcome admits a worker.
type welcome struct {
	Number int
	Key    string // by which its further connections are known
	Apart  bool   // its clock is another: it has it compared
	Stream bool   // it sends what it records while it does
}

type ready struct {
	Header  history.Header
	Servers []string
}

// start holds the zero of the history's times in nanoseconds on the worker's clock, and the delay until the
// load phase begins.
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
	Data   []byte // compressed (zstd)
	Sum    uint32 // CRC-32C of all up to the end of this piece
	Last   bool
}

// ack states how much of a recording was received and kept.
type ack struct {
	Offset int64
	Sum    uint32 // CRC-32C of it
	Whole  bool   // the last piece too
}

// channel sends and receives messages. Any goroutine may send; one receives.
type channel struct {
	net.Conn
	mu      sync.Mutex
	encoder *gob.Encoder
	decoder *gob.Decoder
}

func newChannel(conn net.Conn) *channel {
	return &channel{Conn: conn, encoder: gob.NewEncoder(conn), decoder: gob.NewDecoder(conn)}
}

// silence limits the time for which the other side may accept nothing, and for which a worker may send
// nothing. Each side sends something every second.
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

// greeting receives the first message of a connection.
func (c *channel) greeting() (*message, error) {
	_ = c.SetReadDeadline(time.Now().Add(joinLimit))
	m, err := c.receive()
	_ = c.SetReadDeadline(time.Time{})
	return m, err
}

// OwnFolder is the subfolder of a worker's folder in which it records.
const OwnFolder = "recorded"

// errClock is the error of a started worker with another clock.
var errClock = errors.New("its clock is not the clock of this process: run the workers on the machine of the run")
