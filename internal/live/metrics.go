//go:build !embedded

package live

import (
	"cmp"
	"math"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"stroppy/internal/run"
	"stroppy/internal/stats"
)

// schema is the schema of the native histogram: eight buckets for each doubling. Source:
// https://prometheus.io/docs/specs/native_histograms/#schema
const schema = 3

// edges holds the upper ends of the classic buckets in seconds, ascending from 10 µs.
var edges = []float64{
	1e-5, 1.5e-5, 2e-5, 3e-5, 5e-5, 7e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 7e-4,
	1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 7e-3, 1e-2, 1.5e-2, 2e-2, 3e-2, 5e-2, 7e-2,
	0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100,
}

// metrics converts the feed's snapshots to metrics. It reads only snapshots, so scraping costs the clients
// nothing.
type metrics struct{ feed *Feed }

// numbers lists the load phase's metrics with a single value. Counters end in _total.
var numbers = []struct {
	name, help string
	value      func(s *run.State) uint64
}{
	{"retries_total", "New tries of a transaction after a conflict.", func(s *run.State) uint64 { return s.Counters.Retries }},
	{"conflicts_total", "Tries that the database aborted.", func(s *run.State) uint64 { return s.Counters.Conflicts }},
	{"reconnects_total", "Sessions opened in place of a lost one.", func(s *run.State) uint64 { return s.Counters.Reconnects }},
	{"shed_total", "Transactions that came due while the queue of late work was full, and are never sent.", func(s *run.State) uint64 { return s.Counters.Shed }},
	{"backlog", "Transactions that are due and not sent.", func(s *run.State) uint64 { return s.Counters.Backlog }},
	{"clients", "Clients that run transactions.", func(s *run.State) uint64 { return uint64(s.Clients) }},
	{"clients_reconnecting", "Clients that have lost the database and had no answer since.", func(s *run.State) uint64 { return uint64(s.Counters.Reconnecting) }},
}

// describe returns the description of a metric, with its own labels and the labels of the run.
func describe(name, help string, own ...string) *prometheus.Desc {
	return prometheus.NewDesc("stroppy_"+name, help, append(own, "workload", "database", "run"), nil)
}

// Describe sends nothing, because the set of metrics depends on the progress of the run.
func (metrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends what is known of the run, and nothing before its database is known.
func (m metrics) Collect(to chan<- prometheus.Metric) {
	s := m.feed.Snapshot()
	if s.Result == nil || s.Result.Database == "" || s.Run == "" {
		return
	}
	common := []string{s.Result.Workload, s.Result.Database, s.Run}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value uint64, own ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, float64(value), append(own, common...)...)
	}
	phases := describe("phase", "1 for what the run does now; 0 for what it has done.", "phase")
	for _, phase := range s.Phases {
		send(phases, prometheus.GaugeValue, truth(phase == s.Phase), phase)
	}
	// A script may inject the same fault into the same nodes repeatedly.
	active := map[[2]string]bool{}
	for _, f := range s.Faults {
		if of := [2]string{f.Fault, f.Target}; f.Error == "" && f.Skipped == "" {
			active[of] = active[of] || f.Active()
		}
	}
	faults := describe("fault_active", "1 while a fault is in effect; 0 when it was healed.", "fault", "target")
	for of, now := range active {
		send(faults, prometheus.GaugeValue, truth(now), of[0], of[1])
	}
	s.sendChecks(send)
	if s.State.Drive == nil {
		return
	}
	outcomes := describe("transactions_total", "Transactions of the load phase that ended, the warm-up included, by kind and outcome.", "kind", "outcome")
	for _, c := range s.Kinds {
		for outcome, n := range map[string]uint64{"committed": c.Committed, "rejected": c.Rejected, "aborted": c.Aborted, "unknown": c.Unknown} {
			send(outcomes, prometheus.CounterValue, n, c.Kind, outcome)
		}
	}
	errors := describe("errors_total", "Errors that the database answered with, of background clients too, by what they mean for a transaction.", "class")
	for class, n := range s.Errors {
		send(errors, prometheus.CounterValue, n, class)
	}
	if target := s.State.Target; target > 0 {
		to <- prometheus.MustNewConstMetric(describe("target_rate", "Transactions per second that are asked for now; absent in a closed loop."), prometheus.GaugeValue, target, common...)
	}
	for _, n := range numbers {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(n.name, "_total") {
			kind = prometheus.CounterValue
		}
		send(describe(n.name, n.help), kind, n.value(&s.State))
	}
	duration := describe("transaction_duration_seconds",
		"Time from when a transaction was due until it was known to be committed, by kind. The sum is taken from the middle of narrow buckets and right to 1 %.", "kind")
	for _, c := range s.Kinds {
		to <- newHistogram(duration, cmp.Or(s.KindLatencies[c.Kind], new(stats.Reading)), s.Began, append([]string{c.Kind}, common...))
	}
}

// sendChecks sends the known status of each check. While the clients run, only checks with a violation have
// one.
func (s *Snapshot) sendChecks(send func(d *prometheus.Desc, kind prometheus.ValueType, value uint64, own ...string)) {
	status := map[string]string{}
	if l := s.State.LiveCheck; l != nil {
		looked := describe("live_check_transactions_total", "Transactions that the check beside the clients has looked at, or has left out because it did not keep up.", "result")
		send(looked, prometheus.CounterValue, l.Checked, "checked")
		send(looked, prometheus.CounterValue, l.Skipped, "skipped")
		for _, v := range l.Violations {
			status[v.Check] = "invalid"
		}
		violated := describe("live_check_violated", "How many checks have a violation that the check beside the clients has found.")
		send(violated, prometheus.GaugeValue, uint64(len(l.Violations)))
	}
	if s.Result != nil {
		for _, c := range s.Result.Checks { // made of the whole run, after it
			status[c.Name] = c.Status
		}
	}
	checks := describe("check_status", "1 for what a check has found.", "check", "status")
	for name, found := range status {
		send(checks, prometheus.GaugeValue, 1, name, found)
	}
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// histogram is one metric with classic and native buckets.
type histogram struct {
	prometheus.Metric // with the classic buckets
	native            prometheus.Metric
}

// newHistogram returns the metric of a reading that began to count at began. Each narrow bucket of the
// reading counts completely in one bucket of the metric, so bounds are exact to 1 %.
func newHistogram(d *prometheus.Desc, r *stats.Reading, began time.Time, values []string) prometheus.Metric {
	classic := make(map[float64]uint64, len(edges))
	native := map[int]int64{}
	buckets := r.Buckets()
	var count uint64
	next := 0
	reach := func(upper float64) {
		for ; next < len(edges) && upper > edges[next]*(1+1e-9); next++ {
			classic[edges[next]] = count
		}
	}
	for _, b := range buckets {
		reach(b.Upper.Seconds())
		count += b.Count
		// A native bucket covers 2^((index-1)/2^schema) to 2^(index/2^schema), including its upper end.
		native[int(math.Ceil(math.Log2(middle(b))*(1<<schema)))] += int64(b.Count)
	}
	reach(math.Inf(1))
	total := sum(buckets)
	return &histogram{
		prometheus.MustNewConstHistogram(d, count, total, classic, values...),
		prometheus.MustNewConstNativeHistogram(d, count, total, native, nil, 0, schema, prometheus.DefNativeHistogramZeroThreshold, began, values...),
	}
}

// Write writes both forms into one metric.
func (h *histogram) Write(to *dto.Metric) error {
	if err := h.native.Write(to); err != nil {
		return err
	}
	var classic dto.Metric
	if err := h.Metric.Write(&classic); err != nil {
		return err
	}
	if len(to.Histogram.GetPositiveSpan()) == 0 { // an empty span marks an empty histogram as native
		to.Histogram.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32), Length: new(uint32)}}
	}
	to.Histogram.Bucket = classic.GetHistogram().GetBucket()
	return nil
}

// metricsHandler returns the handler for Prometheus.
func metricsHandler(feed *Feed, version string) http.Handler {
	return promhttp.HandlerFor(registry(feed, version), promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// registry returns the registry of all exported metrics.
func registry(feed *Feed, version string) *prometheus.Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "stroppy_build_info", Help: "1; its labels say which program this is.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	r := prometheus.NewRegistry()
	r.MustRegister(build, metrics{feed}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
