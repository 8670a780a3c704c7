package foundationdb

import (
	"math"

	"stroppy/internal/db"
)

// The charts of FoundationDB's metrics.
const (
	chartTransactions = "Transactions per second, as the cluster counts them"
	chartOperations   = "Operations per second"
	chartBytes        = "Keys and values, MB per second"
	chartLag          = "Lag of the storage servers, s"
	chartQueues       = "Longest queues, MB"
	chartProbe        = "Latency that the cluster measures by probes, s"
	chartMoving       = "Data that is being moved, MB"
)

// measurement is a metric and its place in the status; nil is not known. All metrics are about the whole cluster. The
// cluster itself measures the rates.
type measurement struct {
	db.Metric
	of func(*status) *float64
}

var measurements = []measurement{
	{db.Metric{Name: "transactions_started_per_s", Label: "started", Chart: chartTransactions}, func(s *status) *float64 { return s.Cluster.Workload.Transactions.Started.Hz }},
	{db.Metric{Name: "transactions_committed_per_s", Label: "committed", Chart: chartTransactions}, func(s *status) *float64 { return s.Cluster.Workload.Transactions.Committed.Hz }},
	{db.Metric{Name: "transactions_conflicted_per_s", Label: "conflicted", Chart: chartTransactions}, func(s *status) *float64 { return s.Cluster.Workload.Transactions.Conflicted.Hz }},
	{db.Metric{Name: "transactions_released_per_s", Label: "released by the rate keeper", Chart: chartTransactions}, func(s *status) *float64 { return s.Cluster.QOS.Released }},
	{db.Metric{Name: "reads_per_s", Label: "reads", Chart: chartOperations}, func(s *status) *float64 { return s.Cluster.Workload.Operations.Reads.Hz }},
	{db.Metric{Name: "writes_per_s", Label: "writes", Chart: chartOperations}, func(s *status) *float64 { return s.Cluster.Workload.Operations.Writes.Hz }},
	{db.Metric{Name: "read_bytes_per_s", Label: "read", Chart: chartBytes, Scale: db.Megabyte}, func(s *status) *float64 { return s.Cluster.Workload.Bytes.Read.Hz }},
	{db.Metric{Name: "written_bytes_per_s", Label: "written", Chart: chartBytes, Scale: db.Megabyte}, func(s *status) *float64 { return s.Cluster.Workload.Bytes.Written.Hz }},
	{db.Metric{Name: "worst_data_lag_s", Label: "data", Chart: chartLag}, func(s *status) *float64 { return s.Cluster.QOS.WorstDataLag.Seconds }},
	{db.Metric{Name: "worst_durability_lag_s", Label: "durability", Chart: chartLag}, func(s *status) *float64 { return s.Cluster.QOS.WorstDurabilityLag.Seconds }},
	{db.Metric{Name: "worst_log_queue_bytes", Label: "log server", Chart: chartQueues, Scale: db.Megabyte}, func(s *status) *float64 { return s.Cluster.QOS.LogQueue }},
	{db.Metric{Name: "worst_storage_queue_bytes", Label: "storage server", Chart: chartQueues, Scale: db.Megabyte}, func(s *status) *float64 { return s.Cluster.QOS.StorageQueue }},
	{db.Metric{Name: "probe_start_s", Label: "start", Chart: chartProbe}, func(s *status) *float64 { return s.Cluster.Latency.Start }},
	{db.Metric{Name: "probe_read_s", Label: "read", Chart: chartProbe}, func(s *status) *float64 { return s.Cluster.Latency.Read }},
	{db.Metric{Name: "probe_commit_s", Label: "commit", Chart: chartProbe}, func(s *status) *float64 { return s.Cluster.Latency.Commit }},
	{db.Metric{Name: "moving_bytes", Label: "moving", Chart: chartMoving, Scale: db.Megabyte}, func(s *status) *float64 { return s.Cluster.Data.MovingData.bytes() }},
}

func metrics() (all []db.Metric) {
	for _, m := range measurements {
		all = append(all, m.Metric)
	}
	return all
}

// values returns the values of the metrics.
func (s *status) values() (all []float64) {
	for _, m := range measurements {
		x := math.NaN()
		if known := m.of(s); known != nil {
			x = *known
		}
		all = append(all, x)
	}
	return all
}
