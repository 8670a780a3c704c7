package run

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"stroppy/internal/history"
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// connectionsHead is the first line of connections.jsonl.
type connectionsHead struct {
	Identity   *history.Identity `json:"identity"`
	OnePrimary bool              `json:"one_primary"` // one server alone is to take writes
}

// connectionLine is another line: a client's session is with this server from then on.
type connectionLine struct {
	At     int64  `json:"at_ns"`
	Client int    `json:"client"`
	Server string `json:"server"` // a node's name, or HOST:PORT; empty: it is not known
}

// connectionLog keeps connections.jsonl. A client costs it something only when it has a
// new connection.
type connectionLog struct {
	conductor *conductor
	servers   []string // HOST:PORT by client, each its own goroutine's; empty: not known

	mu      sync.Mutex
	pending bytes.Buffer
	first   string // server's name
	several bool   // there was another one
}

// log has the load phase report new connections.
func (l *connectionLog) log(options *load.Options) {
	if !slices.ContainsFunc(l.servers, func(s string) bool { return s != "" }) {
		return // the driver names no servers
	}
	options.Connected = func(client int, at int64, server string) {
		if client < len(l.servers) && l.servers[client] != server {
			l.servers[client] = server
			l.add(client, at, server)
		}
	}
}

func (l *connectionLog) add(client int, at int64, server string) {
	if names := l.conductor.o.Names; names != nil && server != "" {
		server = names(server)
	}
	line, _ := json.Marshal(connectionLine{at, client, server}) // which has nothing that could fail
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first = cmp.Or(l.first, server)
	l.several = l.several || server != "" && server != l.first
	l.pending.Write(append(line, '\n'))
}

// start writes where the clients begin, and what changes every second until end is
// called, which returns the first error.
func (l *connectionLog) start() (end func() error) {
	if !slices.ContainsFunc(l.servers, func(s string) bool { return s != "" }) {
		return func() error { return nil }
	}
	head, failed := json.Marshal(connectionsHead{l.conductor.result.Identity, l.conductor.o.OnePrimary})
	l.pending.Write(append(head, '\n'))
	for client, server := range l.servers {
		l.add(client, 0, server)
	}
	flush := func() {
		l.mu.Lock()
		if !l.several && !l.conductor.o.OnePrimary { // there is nothing that a reader would ask
			l.mu.Unlock()
			return
		}
		lines := slices.Clone(l.pending.Bytes())
		l.pending.Reset()
		l.mu.Unlock()
		if len(lines) > 0 && failed == nil {
			failed = l.conductor.o.Dir.Append(ConnectionsFile, lines)
		}
	}
	flush()
	stop := Every(time.Second, flush)
	return func() error {
		stop()
		flush()
		if failed != nil {
			return fmt.Errorf("record the clients' connections: %w", failed)
		}
		return nil
	}
}

// recordedMoves holds the content of connections.jsonl.
type recordedMoves struct {
	connectionsHead
	names []string // of the servers, by their numbers
	moves []stats.Move
}

// readConnections reads connections.jsonl. It returns nil if there is no file, as in an older run. A line that was
// cut off is left out.
func readConnections(dir string) (*recordedMoves, error) {
	path := filepath.Join(dir, ConnectionsFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the clients' connections: %w", err)
	}
	read, number := new(recordedMoves), 0
	for line := range bytes.Lines(data) {
		number++
		var one connectionLine
		var into any = &one
		if number == 1 {
			into = &read.connectionsHead
		}
		switch err := json.Unmarshal(line, into); {
		case err != nil && !bytes.HasSuffix(line, []byte("\n")):
			return read, nil
		case err != nil || one.Client < 0 || one.At < 0:
			return nil, fmt.Errorf("read the clients' connections: line %d of %s is no connection: move the file away, and the run is read without it", number, path)
		case number > 1:
			read.moves = append(read.moves, stats.Move{Client: uint64(one.Client), At: one.At, Server: read.number(one.Server)})
		}
	}
	return read, nil
}

// number returns the number of a server's name, or -1 if there is none.
func (r *recordedMoves) number(name string) int {
	if name == "" {
		return -1
	}
	i := slices.Index(r.names, name)
	if i < 0 {
		i = len(r.names)
		r.names = append(r.names, name)
	}
	return i
}

// acknowledgements writes into the result which server acknowledged writes when, where the
// clients had sessions with more than one. The verdict stands without it.
func (c *conductor) acknowledgements() {
	c.result.Acknowledgements = nil
	read, err := readConnections(c.o.Dir.Path)
	if err == nil && read != nil && len(read.names) > 0 && (read.OnePrimary || len(read.names) > 1) {
		err = c.acknowledged(read)
	}
	if err != nil {
		c.log.Warn("which server acknowledged what is not known", "error", err)
	}
}

func (c *conductor) acknowledged(read *recordedMoves) error {
	var leads []stats.Move
	for _, e := range c.result.ClusterEvents {
		if e.Leader != "" && read.OnePrimary {
			leads = append(leads, stats.Move{At: int64(seconds(e.AtSeconds)), Server: read.number(e.Leader)})
		}
	}
	if len(read.names) < 2 { // one server acknowledged all, and no other one led
		return nil
	}
	recorded, err := history.Open(c.o.Dir.History())
	if err != nil {
		return err
	}
	defer recorded.Close()
	kept, err := c.kept(recorded.Header().Run)
	if err != nil {
		return err
	}
	var has func(history.ID) bool
	if kept != nil {
		has = kept.Has
	}
	a := stats.NewAcknowledgements(len(read.names), read.moves)
	count := func() {
		for rec := range readable(recorded) {
			a.Add(rec.Transaction, has)
		}
	}
	count()
	intervals := a.Intervals()
	var overlaps []stats.Overlap
	if read.OnePrimary {
		overlaps = surely(stats.Overlaps(intervals, leads), recorded.Header())
	}
	if len(overlaps) > 0 { // which are known only now, and mostly there are none
		a = stats.NewAcknowledgements(len(read.names), read.moves)
		a.CountDuring(overlaps)
		count()
	}
	c.result.Acknowledgements = shownAcknowledgements(read, intervals, overlaps, a.During(), kept != nil)
	return nil
}

// surely returns the overlaps that are longer than the uncertainty of the clients' clocks.
func surely(list []stats.Overlap, h history.Header) []stats.Overlap {
	uncertain := h.Uncertainty()
	return slices.DeleteFunc(list, func(o stats.Overlap) bool {
		return uncertain == history.Unbounded || uncertain > 0 && int64(o.To-o.From) <= uncertain
	})
}

// kept returns the transactions of a run that the ledger of the end state has, or nil without a ledger.
func (c *conductor) kept(run uint64) (*stats.Kept, error) {
	end, err := history.OpenEnd(c.o.Dir.History())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer end.Close()
	return stats.KeptOf(end.Rows(), run)
}

// shownAcknowledgements returns the acknowledgements in the form of the result.
func shownAcknowledgements(read *recordedMoves, intervals []stats.Acknowledging, overlaps []stats.Overlap, during [][2]stats.Acknowledging, ledger bool) *report.Acknowledgements {
	shown := func(i stats.Acknowledging) report.Acknowledged {
		s := report.Acknowledged{
			Server: read.names[i.Server], FromSeconds: i.From.Seconds(), ToSeconds: i.To.Seconds(), Acknowledged: i.Acknowledged,
		}
		if ledger {
			s.Lost = &i.Lost
		}
		if i.Lost > 0 {
			s.LostFromSeconds = new(i.LostFrom.Seconds())
		}
		return s
	}
	r := &report.Acknowledgements{OnePrimary: read.OnePrimary, Intervals: []report.Acknowledged{}, Overlaps: []report.Overlap{}}
	for _, i := range intervals {
		r.Intervals = append(r.Intervals, shown(i))
	}
	for i, o := range overlaps {
		both := report.Overlap{FromSeconds: o.From.Seconds(), ToSeconds: o.To.Seconds()}
		for _, one := range during[i] {
			both.Servers = append(both.Servers, shown(one))
		}
		r.Overlaps = append(r.Overlaps, both)
	}
	return r
}
