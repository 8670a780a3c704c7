package voltdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stroppy/internal/db"
)

// Hosts asks a node by its URL for the current nodes of the cluster. It returns the values of @SystemInformation for
// each node, by their names in lower case.
func Hosts(ctx context.Context, url string) ([]map[string]string, error) {
	d, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return d.about(ctx, "OVERVIEW")
}

// about asks @SystemInformation, whose rows end with a name and a value. If the rows are about nodes, they begin with a
// node's number.
func (d *Database) about(ctx context.Context, what string) (of []map[string]string, err error) {
	err = d.with(ctx, func(s *session) error {
		r, err := s.system(ctx, "@SystemInformation", what)
		if err != nil {
			return err
		}
		places := map[int64]int{}
		for i := range r.Rows() {
			row := r.Row(i)
			node := int64(0)
			if len(row) > 2 {
				node = row[0].Int
			}
			at, known := places[node]
			if !known {
				at = len(of)
				places[node], of = at, append(of, map[string]string{})
			}
			of[at][strings.ToLower(string(row[len(row)-2].Text))] = string(row[len(row)-1].Text)
		}
		if len(of) == 0 {
			return fmt.Errorf("ask VoltDB for its %s: %w", strings.ToLower(what), errors.New("its answer is empty"))
		}
		return nil
	})
	return of, err
}

// monitor asks over a new connection each time.
type monitor struct{ database *Database }

// Monitor implements db.Monitored with a state and no metrics. The state holds the values of @Statistics for each node:
// its memory, its processor, its latencies and the calls that it has begun. It also names the leader of each partition.
func (d *Database) Monitor() db.Monitor { return monitor{d} }

// Interval implements db.Monitor: @Statistics asks all nodes.
func (monitor) Interval() time.Duration { return 5 * time.Second }
func (monitor) Metrics() []db.Metric    { return nil }
func (monitor) Close()                  {}

// Sample implements db.Monitor.
func (m monitor) Sample(ctx context.Context) (s db.Sample, err error) {
	s.State, err = m.database.state(ctx)
	return s, err
}

func (d *Database) state(ctx context.Context) ([]byte, error) {
	nodes, err := d.about(ctx, "OVERVIEW")
	if err != nil {
		return nil, err
	}
	status := map[string]any{}
	var short []map[string]string
	for _, n := range nodes {
		kept := map[string]string{}
		for _, name := range []string{"hostname", "ipaddress", "clusterstate", "clustersafety", "uptime"} {
			kept[name] = n[name]
		}
		short = append(short, kept)
	}
	status["nodes"] = short
	err = d.with(ctx, func(s *session) error {
		for _, component := range sampled {
			rows, err := s.statistics(ctx, component)
			if err != nil {
				return err
			}
			status[strings.ToLower(component)] = rows
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(status)
}

// sampled are the components of @Statistics that are part of a sample:
// https://docs.voltdb.com/UsingVoltDB/sysprocstatistics.php.
var sampled = []string{"MEMORY", "CPU", "LATENCY", "PROCEDUREPROFILE", "TOPO"}

// statistics asks @Statistics for a component. It returns an object for each row, with the columns' names in lower
// case. The values count from the start of the server, not from the last question.
func (s *session) statistics(ctx context.Context, component string) (rows []map[string]any, err error) {
	a, err := s.ask(ctx, "@Statistics", []db.Type{db.Text, db.Integer}, []db.Value{{Text: []byte(component)}, {Int: 0}})
	for i := 0; err == nil && i < a.count; i++ {
		var t table
		if t, err = a.tables.table(); err == nil {
			rows, err = t.objects(rows)
		}
	}
	if err == nil {
		err = a.ended()
	}
	if err != nil {
		return nil, fmt.Errorf("ask VoltDB for its statistics of %s: %w", component, err)
	}
	return rows, nil
}

// objects appends the rows as objects, by the columns' names in lower case. It leaves out a table that holds bytes,
// such as the hash ring of the partitions, because people cannot read it.
func (t *table) objects(rows []map[string]any) ([]map[string]any, error) {
	names := make([]string, len(t.types))
	for i := range names {
		names[i] = strings.ToLower(string(t.names.bytes()))
	}
	if slices.Contains(t.types, typeVarbinary) {
		return rows, nil
	}
	var row map[string]any
	err := t.each(func(column int, v db.Value) {
		if column == 0 {
			row = map[string]any{}
			rows = append(rows, row)
		}
		switch {
		case v.Null:
			row[names[column]] = nil
		case v.Text != nil:
			row[names[column]] = string(v.Text)
		default:
			row[names[column]] = v.Int
		}
	})
	return rows, err
}

// Footprint implements db.Footprinter. It returns the memory of all tables on all nodes, their indexes included. VoltDB
// keeps its data in memory.
func (d *Database) Footprint(ctx context.Context) (bytes int64, err error) {
	err = d.with(ctx, func(s *session) error {
		for component, column := range map[string]string{"TABLE": "tuple_allocated_memory", "INDEX": "memory_estimate"} { // in kilobytes
			rows, err := s.statistics(ctx, component)
			if err != nil {
				return err
			}
			for _, row := range rows {
				kilobytes, known := row[column].(int64)
				if !known {
					return fmt.Errorf("read VoltDB's statistics of %s: %w", component, errors.New("their form is not known"))
				}
				bytes += kilobytes << 10
			}
		}
		return nil
	})
	return bytes, err
}
