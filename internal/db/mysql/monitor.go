package mysql

import (
	"context"
	"strings"
	"time"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

// These are the charts of MySQL's metrics.
const (
	chartThreads = "Threads and row locks"
	chartLocks   = "Waits for row locks, deadlocks and rollbacks per second"
	chartRedo    = "Redo log, MB per second"
	chartSyncs   = "Syncs and writes per second"
	chartPages   = "Pages per second"
	chartQueue   = "Galera's queue of writes to apply"
	chartPaused  = "Share of the time in which Galera's flow control held writes back"
	chartGalera  = "Transactions that Galera rolled back per second"
)

// measurements are the metrics with their status variables. Metrics that a product or version lacks are not known
// (https://dev.mysql.com/doc/refman/8.4/en/server-status-variables.html,
// https://mariadb.com/docs/server/ha-and-performance/optimization-and-tuning/system-variables/innodb-status-variables).
var measurements = db.Measurements{
	{"threads_running", db.Metric{Name: "threads_running", Label: "threads running, the one that is asked among them", Chart: chartThreads}},
	{"innodb_row_lock_current_waits", db.Metric{Name: "row_lock_waiting", Label: "waiting for a row lock", Chart: chartThreads}},
	{"innodb_row_lock_waits", db.Metric{Name: "row_lock_waits_per_s", Label: "waits for a row lock", Chart: chartLocks, Counter: true}},
	{"innodb_deadlocks", db.Metric{Name: "deadlocks_per_s", Label: "deadlocks", Chart: chartLocks, Counter: true}},
	{"com_rollback", db.Metric{Name: "rollbacks_per_s", Label: "ROLLBACK", Chart: chartLocks, Counter: true}},
	{"innodb_row_lock_time", db.Metric{Name: "row_lock_wait_ms_per_s", Label: "time of waits for row locks", Counter: true}},
	{"com_commit", db.Metric{Name: "commits_per_s", Label: "COMMIT", Counter: true}},
	{"innodb_os_log_written", db.Metric{Name: "redo_bytes_per_s", Label: "written", Chart: chartRedo, Counter: true, Scale: db.Megabyte}},
	{"innodb_os_log_fsyncs", db.Metric{Name: "redo_syncs_per_s", Label: "syncs of the redo log", Chart: chartSyncs, Counter: true}},
	{"innodb_log_writes", db.Metric{Name: "redo_writes_per_s", Label: "writes of the redo log", Chart: chartSyncs, Counter: true}},
	{"innodb_data_fsyncs", db.Metric{Name: "data_syncs_per_s", Label: "syncs of data files", Chart: chartSyncs, Counter: true}},
	{"innodb_buffer_pool_read_requests", db.Metric{Name: "pages_requested_per_s", Label: "asked of the buffer pool", Chart: chartPages, Counter: true}},
	{"innodb_buffer_pool_reads", db.Metric{Name: "pages_read_per_s", Label: "read", Chart: chartPages, Counter: true}},
	{"innodb_buffer_pool_pages_flushed", db.Metric{Name: "pages_flushed_per_s", Label: "written", Chart: chartPages, Counter: true}},
	{"innodb_buffer_pool_pages_dirty", db.Metric{Name: "pages_dirty", Label: "dirty pages"}},
	{"innodb_checkpoint_age", db.Metric{Name: "checkpoint_age_bytes", Label: "redo log since the checkpoint"}},
}

// ofGalera lists the metrics that only a Galera node has
// (https://galeracluster.com/library/documentation/galera-status-variables.html).
var ofGalera = db.Measurements{
	{"wsrep_local_recv_queue", db.Metric{Name: "galera_receive_queue", Label: "to apply", Chart: chartQueue}},
	{"wsrep_local_send_queue", db.Metric{Name: "galera_send_queue", Label: "to send", Chart: chartQueue}},
	{"wsrep_flow_control_paused_ns", db.Metric{Name: "galera_paused_ns_per_s", Label: "paused", Chart: chartPaused, Counter: true, Scale: 1e9}},
	{"wsrep_local_cert_failures", db.Metric{Name: "galera_certification_failures_per_s", Label: "by certification", Chart: chartGalera, Counter: true}},
	{"wsrep_local_bf_aborts", db.Metric{Name: "galera_aborts_per_s", Label: "by a write of another node", Chart: chartGalera, Counter: true}},
}

// monitor is a separate connection to the server that accepts writes.
type monitor struct {
	database     *Database
	measurements db.Measurements
	link         *link // nil: there is none now
}

// Monitor implements db.Monitored. It reads threads, row locks, the redo log, the buffer pool and Galera's
// flow control from SHOW GLOBAL STATUS, which needs no privilege.
func (d *Database) Monitor() db.Monitor {
	m := &monitor{database: d, measurements: measurements}
	if d.server.galera {
		m.measurements = append(measurements[:len(measurements):len(measurements)], ofGalera...)
	}
	return m
}

func (*monitor) Interval() time.Duration { return time.Second }

func (m *monitor) Metrics() []db.Metric { return m.measurements.Metrics() }

func (m *monitor) Sample(ctx context.Context) (s db.Sample, err error) {
	d, op := m.database, m.database.op("ask for its status")
	if s.Fresh = m.link == nil; s.Fresh {
		// d.first is not used, because it would advance the sessions' turn.
		if m.link, err = d.connect(ctx, op, "", int(d.host.Load())%len(d.address.hosts)); err != nil {
			m.link = nil
			return s, err
		}
	}
	if err := m.link.arm(ctx, false); err != nil {
		m.Close()
		return s, wire.Lost(op, err, wire.Before)
	}
	var names []string
	for _, one := range m.measurements {
		names = append(names, "'"+one.Name+"'")
	}
	found, err := m.link.pairs("SHOW GLOBAL STATUS WHERE Variable_name IN (" + strings.Join(names, ", ") + ")")
	if err != nil {
		err := m.link.failure(ctx, op, err, wire.Before, m.link.out)
		m.Close()
		return s, err
	}
	s.Server = d.address.hosts[m.link.host].Addr
	s.Values = m.measurements.Values(found)
	return s, nil
}

func (m *monitor) Close() {
	if m.link != nil {
		m.link.drop()
		m.link = nil
	}
}
