package redis

import (
	"cmp"
	"context"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// The charts of Redis's metrics.
const (
	chartCommands = "Commands per second"
	chartClients  = "Connections"
	chartMemory   = "Memory, MB"
	chartDisk     = "Saving to the disk"
	chartDelayed  = "Syncs of the append-only file that came late, errors and evictions per second"
	chartNetwork  = "Network, MB per second"
)

// measurements are the metrics of INFO (https://redis.io/docs/latest/commands/info/).
var measurements = db.Measurements{
	{"total_commands_processed", db.Metric{Name: "commands_per_s", Label: "commands", Chart: chartCommands, Counter: true}},
	{"connected_clients", db.Metric{Name: "connected_clients", Label: "clients", Chart: chartClients}},
	{"blocked_clients", db.Metric{Name: "blocked_clients", Label: "blocked", Chart: chartClients}},
	{"connected_slaves", db.Metric{Name: "connected_replicas", Label: "replicas", Chart: chartClients}},
	{"used_memory", db.Metric{Name: "used_memory_bytes", Label: "data", Chart: chartMemory, Scale: db.Megabyte}},
	{"used_memory_rss", db.Metric{Name: "resident_memory_bytes", Label: "resident", Chart: chartMemory, Scale: db.Megabyte}},
	{"rdb_bgsave_in_progress", db.Metric{Name: "snapshot_in_progress", Label: "a snapshot is being written", Chart: chartDisk}},
	{"aof_rewrite_in_progress", db.Metric{Name: "aof_rewrite_in_progress", Label: "the append-only file is being rewritten", Chart: chartDisk}},
	{"aof_delayed_fsync", db.Metric{Name: "aof_delayed_syncs_per_s", Label: "late syncs", Chart: chartDelayed, Counter: true}},
	{"total_error_replies", db.Metric{Name: "error_replies_per_s", Label: "error replies", Chart: chartDelayed, Counter: true}},
	{"evicted_keys", db.Metric{Name: "evicted_keys_per_s", Label: "evicted keys", Chart: chartDelayed, Counter: true}},
	{"total_net_input_bytes", db.Metric{Name: "received_bytes_per_s", Label: "received", Chart: chartNetwork, Counter: true, Scale: db.Megabyte}},
	{"total_net_output_bytes", db.Metric{Name: "sent_bytes_per_s", Label: "sent", Chart: chartNetwork, Counter: true, Scale: db.Megabyte}},
	{"master_repl_offset", db.Metric{Name: "replication_bytes_per_s", Label: "for replicas", Chart: chartNetwork, Counter: true, Scale: db.Megabyte}},
	{"aof_current_size", db.Metric{Name: "aof_bytes", Label: "append-only file"}},
	{"latest_fork_usec", db.Metric{Name: "latest_fork_us", Label: "latest fork"}},
}

// monitor has its own connection to the primary.
type monitor struct {
	database *Database
	link     *link // nil: there is no connection now
}

// Monitor implements db.Monitored. The metrics are from INFO: commands, connections, memory and saving to the disk.
func (d *Database) Monitor() db.Monitor { return &monitor{database: d} }

func (*monitor) Interval() time.Duration { return time.Second }

func (*monitor) Metrics() []db.Metric { return measurements.Metrics() }

func (m *monitor) Sample(ctx context.Context) (s db.Sample, err error) {
	const op = "ask for the statistics"
	if s.Fresh = m.link == nil; s.Fresh {
		if m.link, err = m.database.primary(ctx); err != nil {
			m.link = nil
			return s, err
		}
	}
	about := goredis.NewStringCmd(ctx, "info")
	if err := cmp.Or(m.link.run(ctx, about), about.Err()); err != nil {
		node := m.link.node
		m.Close()
		return s, failure(op, node, err, optimistic.Reading)
	}
	found := fields(about.Val())
	if s.Server = m.link.node; found["role"] != "master" && !m.database.config.any {
		m.Close() // the next sample finds the primary
	}
	s.Values = measurements.Values(found)
	return s, nil
}

func (m *monitor) Close() {
	if m.link != nil {
		m.link.close()
		m.link = nil
	}
}

// fields parses the answer to INFO, which has lines of the form name:value.
func fields(info string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			found[name] = value
		}
	}
	return found
}
