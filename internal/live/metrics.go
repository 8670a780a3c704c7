package live

import (
	"math"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"stroppy/internal/stats"
)

// schema is that of the native histogram: eight buckets for each doubling.
// Source: https://prometheus.io/docs/specs/native_histograms/#schema
const schema = 3

// steps are the upper ends of the classic buckets within one power of ten; they
// go from 10 µs to 100 s.
var steps = []float64{1, 1.5, 2, 3, 5, 7}

const (
	leastPower = -5
	mostPower  = 2
)

// bounds returns the upper ends of the classic buckets in seconds, ascending.
func bounds() (list []float64) {
	for power := leastPower; power < mostPower; power++ {
		for _, step := range steps {
			list = append(list, rounded(step*math.Pow10(power)))
		}
	}
	return append(list, math.Pow10(mostPower))
}

// rounded takes away what multiplication adds behind the last digit.
func rounded(x float64) float64 { return math.Round(x*1e7) / 1e7 }

// labels are on everything that is said of a run.
var labels = []string{"workload", "database", "run"}

// metrics turns the feed's snapshots into metrics. It looks at the snapshot
// alone, so that how often it is asked costs the clients nothing.
type metrics struct {
	feed *Feed

	transactions, retries, conflicts, reconnects, shed *prometheus.Desc
	backlog, clients, reconnecting, fault, phase       *prometheus.Desc
	duration                                           *prometheus.Desc
}

func newMetrics(feed *Feed) *metrics {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("stroppy_"+name, help, append(more, labels...), nil)
	}
	return &metrics{
		feed:         feed,
		transactions: desc("transactions_total", "Transactions of the load phase that ended, the warm-up included, by outcome.", "outcome"),
		retries:      desc("retries_total", "New tries of a transaction after a conflict."),
		conflicts:    desc("conflicts_total", "Tries that the database aborted."),
		reconnects:   desc("reconnects_total", "Sessions opened in place of a lost one."),
		shed:         desc("shed_total", "Transactions that came due while the queue of late work was full, and are never sent."),
		backlog:      desc("backlog", "Transactions that are due and not sent."),
		clients:      desc("clients", "Clients that run transactions."),
		reconnecting: desc("clients_reconnecting", "Clients that have lost the database and had no answer since."),
		fault:        desc("fault_active", "1 while a fault is in effect; 0 when it was healed.", "fault", "target"),
		phase:        desc("phase", "1 for what the run does now; 0 for what it has done.", "phase"),
		duration: desc("transaction_duration_seconds",
			"Time from when a transaction was due until it was known to be committed. The sum is taken from the middle of narrow buckets and right to 1 %."),
	}
}

// Describe sends what Collect may collect.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		m.transactions, m.retries, m.conflicts, m.reconnects, m.shed, m.backlog, m.clients, m.reconnecting, m.fault, m.phase, m.duration,
	} {
		to <- d
	}
}

// Collect sends what is known of the run. Before it is known which database is
// driven that is nothing.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	s := m.feed.Snapshot()
	if s.Result == nil || s.Result.Database == "" || s.Run == "" {
		return
	}
	common := []string{s.Result.Workload, s.Result.Database, s.Run}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, own ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, append(own, common...)...)
	}
	for _, phase := range s.Phases {
		send(m.phase, prometheus.GaugeValue, truth(phase == s.Phase), phase)
	}
	for of, active := range effects(&s) {
		send(m.fault, prometheus.GaugeValue, truth(active), of.fault, of.target)
	}
	if s.State.Drive == nil {
		return
	}
	c := s.State.Counters
	for outcome, n := range map[string]uint64{"committed": c.Committed, "rejected": c.Rejected, "aborted": c.Aborted, "unknown": c.Unknown} {
		send(m.transactions, prometheus.CounterValue, float64(n), outcome)
	}
	send(m.retries, prometheus.CounterValue, float64(c.Retries))
	send(m.conflicts, prometheus.CounterValue, float64(c.Conflicts))
	send(m.reconnects, prometheus.CounterValue, float64(c.Reconnects))
	send(m.shed, prometheus.CounterValue, float64(c.Shed))
	send(m.backlog, prometheus.GaugeValue, float64(c.Backlog))
	send(m.clients, prometheus.GaugeValue, float64(s.State.Clients))
	send(m.reconnecting, prometheus.GaugeValue, float64(c.Reconnecting))
	to <- newHistogram(m.duration, s.Latencies, s.Began, common)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// suffering is a fault and the nodes that it came to. A script may bring the
// same one again and again.
type suffering struct{ fault, target string }

// effects says which faults are in effect, of all that ever were.
func effects(s *Snapshot) map[suffering]bool {
	all := map[suffering]bool{}
	for _, f := range s.Faults {
		if f.Error != "" || f.Skipped != "" {
			continue
		}
		of := suffering{f.Fault, f.Target}
		all[of] = all[of] || active(f)
	}
	return all
}

// histogram is one metric with classic and native buckets.
type histogram struct {
	prometheus.Metric // with the classic buckets
	native            prometheus.Metric
}

// newHistogram makes the metric of a reading. Each of its narrow buckets counts
// as a whole in one bucket of the metric, so that what a bound says is right to
// 1 % of the bound. It began to count then.
func newHistogram(d *prometheus.Desc, r *stats.Reading, began time.Time, values []string) prometheus.Metric {
	edges := bounds()
	classic := make(map[float64]uint64, len(edges))
	native := map[int]int64{}
	buckets := r.Buckets()
	var count uint64
	next := 0
	for _, b := range buckets {
		for next < len(edges) && b.Upper.Seconds() > edges[next]*(1+1e-9) {
			classic[edges[next]] = count
			next++
		}
		count += b.Count
		native[nativeIndex(middle(b))] += int64(b.Count)
	}
	for ; next < len(edges); next++ {
		classic[edges[next]] = count
	}
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
	if len(to.Histogram.GetPositiveSpan()) == 0 { // one of no length says that it is native although it is empty
		to.Histogram.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32), Length: new(uint32)}}
	}
	to.Histogram.Bucket = classic.GetHistogram().GetBucket()
	return nil
}

// nativeIndex is the bucket that x falls into, which goes from
// 2^((index-1)/2^schema) to 2^(index/2^schema), its upper end included.
func nativeIndex(x float64) int { return int(math.Ceil(math.Log2(x) * (1 << schema))) }

// The width of a bucket of an HdrHistogram with two significant digits from a
// microsecond: half a microsecond at first, and later a power of two that is at
// most this part of its value (http://hdrhistogram.org).
const (
	narrowest = 512 * time.Nanosecond
	parts     = 128
)

// middle is that of a bucket in seconds.
func middle(b stats.Bucket) float64 {
	width := narrowest
	for b.Upper-width >= width*2*parts {
		width *= 2
	}
	return (b.Upper - width/2).Seconds()
}

// sum is that of all durations in seconds, as if each were the middle of its
// bucket.
func sum(buckets []stats.Bucket) (total float64) {
	for _, b := range buckets {
		total += middle(b) * float64(b.Count)
	}
	return total
}

// registry holds everything that is exported.
func registry(feed *Feed, version string) *prometheus.Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "stroppy_build_info", Help: "1; its labels tell which program this is.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	r := prometheus.NewRegistry()
	r.MustRegister(build, newMetrics(feed), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
