package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/pgwire"
)

// measurement is a metric with its SQL expression over the row of query.
type measurement struct {
	db.Metric
	sql string
}

// These are the charts of PostgreSQL's metrics.
const (
	chartSessions = "Sessions in a transaction, by what they wait for"
	chartWAL      = "WAL, MB per second"
	chartSyncs    = "Syncs of the WAL per second"
	chartBuffers  = "Buffers per second"
	chartEvents   = "Rollbacks, deadlocks and checkpoints per second"
)

// waiting counts the active client sessions of one class of waits
// (https://www.postgresql.org/docs/current/monitoring-stats.html, table "Wait Event Types").
func waiting(name, label, condition string) measurement {
	return measurement{
		db.Metric{Name: name, Label: label, Chart: chartSessions},
		"count(*) FILTER (WHERE state = 'active' AND " + condition + ")",
	}
}

// sessions lists the measurements from one read of pg_stat_activity. It takes no lock that a transaction
// waits for, unlike pg_locks.
var sessions = []measurement{
	waiting("sessions_running", "running", "wait_event_type IS NULL"),
	waiting("sessions_waiting_lock", "Lock", "wait_event_type = 'Lock'"),
	waiting("sessions_waiting_lwlock", "LWLock", "wait_event_type = 'LWLock'"),
	waiting("sessions_waiting_io", "IO", "wait_event_type = 'IO'"),
	waiting("sessions_waiting_ipc", "IPC", "wait_event_type = 'IPC'"),
	waiting("sessions_waiting_client", "Client", "wait_event_type = 'Client'"),
	waiting("sessions_waiting_other", "another wait", "wait_event_type NOT IN ('Lock', 'LWLock', 'IO', 'IPC', 'Client')"),
	{
		db.Metric{Name: "sessions_idle_in_transaction", Label: "idle in transaction", Chart: chartSessions},
		"count(*) FILTER (WHERE state LIKE 'idle in transaction%')",
	},
}

// counted lists the values that the server counts, each with one column of a query.
var counted = []measurement{
	{db.Metric{Name: "wal_bytes_per_s", Label: "written", Chart: chartWAL, Scale: db.Megabyte},
		"CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END - '0/0'::pg_lsn"},
	{db.Metric{Name: "wal_syncs_per_s", Label: "syncs", Chart: chartSyncs}, "wal_syncs"},
	{db.Metric{Name: "buffers_hit_per_s", Label: "found in shared buffers", Chart: chartBuffers}, "d.blks_hit"},
	{db.Metric{Name: "buffers_read_per_s", Label: "read", Chart: chartBuffers}, "d.blks_read"},
	{db.Metric{Name: "buffers_checkpointed_per_s", Label: "written by checkpoints", Chart: chartBuffers}, "checkpoint_buffers"},
	{db.Metric{Name: "rollbacks_per_s", Label: "rollbacks", Chart: chartEvents}, "d.xact_rollback"},
	{db.Metric{Name: "deadlocks_per_s", Label: "deadlocks", Chart: chartEvents}, "d.deadlocks"},
	{db.Metric{Name: "checkpoints_timed_per_s", Label: "checkpoints by time", Chart: chartEvents}, "checkpoints_timed"},
	{db.Metric{Name: "checkpoints_requested_per_s", Label: "checkpoints by request", Chart: chartEvents}, "checkpoints_requested"},
	{db.Metric{Name: "commits_per_s", Label: "commits"}, "d.xact_commit"},
	{db.Metric{Name: "temporary_bytes_per_s", Label: "temporary files"}, "d.temp_bytes"},
}

// query returns the query for all measurements on a server of a major version: one row, after the server's
// address.
func query(version int) string {
	// Until version 16, pg_stat_bgwriter counts checkpoints. pg_stat_wal exists since 14, and since 18
	// pg_stat_io has the syncs.
	checkpoints := "SELECT checkpoints_timed, checkpoints_req AS checkpoints_requested, buffers_checkpoint AS checkpoint_buffers FROM pg_stat_bgwriter"
	if version >= 17 {
		checkpoints = "SELECT num_timed AS checkpoints_timed, num_requested AS checkpoints_requested, buffers_written AS checkpoint_buffers FROM pg_stat_checkpointer"
	}
	wal := "SELECT NULL AS wal_syncs"
	switch {
	case version >= 18:
		wal = "SELECT sum(fsyncs) AS wal_syncs FROM pg_stat_io WHERE object = 'wal'"
	case version >= 14:
		wal = "SELECT wal_sync AS wal_syncs FROM pg_stat_wal"
	}
	var columns, waits []string
	for i, m := range sessions {
		waits = append(waits, fmt.Sprintf("%s AS s%d", m.sql, i))
		columns = append(columns, fmt.Sprintf("s%d", i))
	}
	for _, m := range counted {
		columns = append(columns, m.sql)
	}
	return "SELECT host(inet_server_addr()), inet_server_port(), " + strings.Join(columns, ", ") +
		" FROM (SELECT " + strings.Join(waits, ", ") + " FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) activity" +
		", (" + checkpoints + ") checkpoints, (" + wal + ") wal, pg_stat_database d WHERE d.datname = current_database()"
}

// monitor is a separate connection to the server that accepts writes.
type monitor struct {
	database *Database
	conn     *pgwire.Control // nil: there is none now
}

// Monitor implements db.Monitored. It reads waits by class, the WAL, buffers, checkpoints, rollbacks and
// deadlocks from the cumulative statistics.
func (d *Database) Monitor() db.Monitor { return &monitor{database: d} }

func (*monitor) Interval() time.Duration { return time.Second }

func (*monitor) Metrics() (all []db.Metric) {
	for _, m := range sessions {
		all = append(all, m.Metric)
	}
	for _, m := range counted {
		m.Counter = true
		all = append(all, m.Metric)
	}
	return all
}

func (m *monitor) Sample(ctx context.Context) (s db.Sample, err error) {
	const op = "ask for the statistics of PostgreSQL"
	if s.Fresh = m.conn == nil || m.conn.Conn.IsClosed(); s.Fresh {
		if m.conn, err = m.database.Connect(ctx, op); err != nil {
			return s, err
		}
	}
	row, err := m.conn.Row(ctx, query(major(m.conn.Conn.ParameterStatus("server_version"))))
	if err != nil {
		defer m.Close()
		return s, m.conn.Failure(ctx, op, err)
	}
	if s.Server = row[0]; s.Server != "" {
		s.Server += ":" + row[1]
	}
	for _, text := range row[2:] {
		s.Values = append(s.Values, db.ParseValue(text))
	}
	return s, nil
}

func (m *monitor) Close() {
	if m.conn != nil {
		m.conn.Close()
		m.conn = nil
	}
}

// major returns the number at the beginning of a version, or 0.
func major(version string) (n int) {
	_, _ = fmt.Sscan(version, &n)
	return n
}
