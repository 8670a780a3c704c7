package live

import (
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"stroppy/internal/fault"
	"stroppy/internal/load"
	"stroppy/internal/report"
	"stroppy/internal/run"
	"stroppy/internal/stats"
)

// standIn is a load phase with configurable state.
type standIn struct {
	live    [2]stats.Live // by kind
	seconds []stats.Second
	all     []time.Duration // that were committed
	found   *run.LiveCheck
}

func (d *standIn) Seconds(from int) []stats.Second {
	i := slices.IndexFunc(d.seconds, func(s stats.Second) bool { return s.Second >= from })
	if i < 0 {
		return nil
	}
	return slices.Clone(d.seconds[i:])
}

func (d *standIn) KindLatencies() map[string]*stats.Reading {
	by := map[string]*stats.Reading{}
	for i, kind := range []string{"transfer", "inquiry"} {
		by[kind] = new(stats.Reading)
		by[kind].Read(&d.live[i])
	}
	return by
}

func (d *standIn) Kinds() []run.KindCount {
	n := uint64(len(d.all))
	return []run.KindCount{{Kind: "transfer", Committed: n - n/4, Rejected: 10, Aborted: 20, Unknown: 30}, {Kind: "inquiry", Committed: n / 4}}
}

func (d *standIn) Errors() map[string]uint64 {
	return map[string]uint64{"aborted": 40, "unavailable": 5}
}

// add adds a commit; every fourth is an inquiry.
func (d *standIn) add(took time.Duration) {
	d.all = append(d.all, took)
	kind := 0
	if len(d.all)%4 == 0 {
		kind = 1
	}
	d.live[kind].Add(int64(took))
}

// of returns the latencies of the committed transactions of a kind.
func (d *standIn) of(kind string) (list []time.Duration) {
	for i, took := range d.all {
		if (i%4 == 3) == (kind == "inquiry") {
			list = append(list, took)
		}
	}
	return list
}

// commit adds a second with n transactions, one in each of n equal parts of the logarithmic range from 1 µs
// to a minute.
func (d *standIn) commit(n int, random *rand.Rand) {
	for i := range n {
		took := time.Duration(1e3 * math.Exp((float64(i)+random.Float64())/float64(n)*math.Log(6e7)))
		d.add(took)
	}
	d.seconds = append(d.seconds, stats.Second{Second: len(d.seconds), Committed: uint64(n), P50: time.Millisecond, P99: time.Second, Max: time.Minute})
}

func (d *standIn) state() run.State {
	second := d.seconds[len(d.seconds)-1]
	n := uint64(len(d.all))
	return run.State{
		Done: n + 60, Elapsed: time.Duration(len(d.seconds)) * time.Second, Of: time.Minute,
		Clients: 16, Second: &second, Drive: d, Target: 250.5,
		LiveCheck: d.found,
		Counters: load.Counters{
			Done: n + 60, Committed: n, Rejected: 10, Aborted: 20, Unknown: 30, Conflicts: 40, Retries: 35, Reconnects: 7, Reconnecting: 2, Backlog: 9, Shed: 4,
		},
	}
}

// known returns what a run knows at the beginning of its load phase.
func known(warmup float64) *report.Result {
	return &report.Result{
		Schema: report.Schema, Verdict: "unknown", Reason: "The run was cut off before its end.", Workload: "bank", Database: "PostgreSQL", DatabaseVersion: "17.1",
		Drive: &report.Drive{Clients: 16, WarmupSeconds: warmup, TPS: &report.Throughput{}},
	}
}

// driven returns the feed of a run in its load phase, with one active and one past fault.
func driven() (*Feed, *standIn) {
	random := rand.New(rand.NewPCG(1, 2))
	f, d := NewFeed(), &standIn{}
	f.Named("20260101-bank")
	f.Begin("load")
	f.Begin(PhaseDrive)
	f.Known(known(0))
	f.Fault(fault.Record{Injection: fault.Injection{Number: 1, Fault: "kill leader at 1s", Target: "n0", At: fault.Round(1)}})
	f.Fault(fault.Record{Injection: fault.Injection{Number: 1, Fault: "kill leader at 1s", Target: "n0", At: fault.Round(1), Healed: new(fault.Round(2))}})
	f.Fault(fault.Record{Injection: fault.Injection{Number: 2, Fault: "pause n1 at 2s", Target: `n1 "x"`, At: fault.Round(2)}})
	f.Fault(fault.Record{Injection: fault.Injection{Number: 3, Fault: "pause n2 at 2s", Target: "n2", At: fault.Round(2), Error: "it was gone"}})
	for range 3 {
		d.commit(5000, random)
		f.Show(d.state())
	}
	return f, d
}

// violated is like driven, with a violation found during the run.
func violated() (*Feed, *standIn) {
	f, d := driven()
	d.found = &run.LiveCheck{LiveCheck: report.LiveCheck{Checked: 700, Skipped: 11}, Violations: []run.LiveViolation{{Check: "serializable", What: "a lost update", Found: report.Check{
		Name: "serializable", Status: "invalid", Detail: "a lost update", Required: true, Witness: []string{"1-2-3"},
		Anomalies: []report.Anomaly{{Name: "lost update", Count: 1, Detail: "a lost update", Drawing: "violations/lost-update.svg"}},
	}}}}
	d.commit(1, rand.New(rand.NewPCG(5, 6)))
	f.Show(d.state())
	return f, d
}

// scrape requests the metrics like Prometheus and parses them.
func scrape(t *testing.T, feed *Feed, accept string) map[string]*dto.MetricFamily {
	t.Helper()
	server := httptest.NewServer((&Server{feed: feed}).handler(metricsHandler(feed, "v0")))
	defer server.Close()
	request, err := http.NewRequest(http.MethodGet, server.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("it answers %s", answer.Status)
	}
	decoder := expfmt.NewDecoder(answer.Body, expfmt.ResponseFormat(answer.Header))
	families := map[string]*dto.MetricFamily{}
	for {
		var family dto.MetricFamily
		err := decoder.Decode(&family)
		if err == io.EOF {
			return families
		}
		if err != nil {
			t.Fatal(err)
		}
		families[family.GetName()] = &family
	}
}

const (
	asText     = "text/plain; version=0.0.4"
	asProtobuf = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// labelled returns the sum of a family's metrics with a label.
func labelled(t *testing.T, family *dto.MetricFamily, label, value string) float64 {
	t.Helper()
	total, found := 0.0, false
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == label && l.GetValue() == value {
				total, found = total+m.GetCounter().GetValue()+m.GetGauge().GetValue(), true
			}
		}
	}
	if found {
		return total
	}
	t.Errorf("%s has no %s=%q", family.GetName(), label, value)
	return math.NaN()
}

func TestMetricsMatchTheFeed(t *testing.T) {
	feed, d := violated()
	for _, accept := range []string{asText, asProtobuf} {
		families := scrape(t, feed, accept)
		for _, want := range []struct {
			family, label, value string
			is                   float64
		}{
			{"stroppy_transactions_total", "outcome", "committed", float64(len(d.all))},
			{"stroppy_transactions_total", "outcome", "rejected", 10},
			{"stroppy_transactions_total", "outcome", "aborted", 20},
			{"stroppy_transactions_total", "outcome", "unknown", 30},
			{"stroppy_transactions_total", "kind", "inquiry", float64(len(d.all) / 4)},
			{"stroppy_errors_total", "class", "aborted", 40},
			{"stroppy_errors_total", "class", "unavailable", 5},
			{"stroppy_target_rate", "workload", "bank", 250.5},
			{"stroppy_live_check_transactions_total", "result", "checked", 700},
			{"stroppy_live_check_transactions_total", "result", "skipped", 11},
			{"stroppy_live_check_violated", "run", "20260101-bank", 1},
			{"stroppy_check_status", "check", "serializable", 1},
			{"stroppy_check_status", "status", "invalid", 1},
			{"stroppy_retries_total", "run", "20260101-bank", 35},
			{"stroppy_conflicts_total", "workload", "bank", 40},
			{"stroppy_reconnects_total", "database", "PostgreSQL", 7},
			{"stroppy_shed_total", "run", "20260101-bank", 4},
			{"stroppy_backlog", "run", "20260101-bank", 9},
			{"stroppy_clients", "run", "20260101-bank", 16},
			{"stroppy_clients_reconnecting", "run", "20260101-bank", 2},
			{"stroppy_fault_active", "fault", "kill leader at 1s", 0},
			{"stroppy_fault_active", "target", `n1 "x"`, 1},
			{"stroppy_phase", "phase", "load", 0},
			{"stroppy_phase", "phase", "drive", 1},
			{"stroppy_build_info", "version", "v0", 1},
		} {
			if got := labelled(t, families[want.family], want.label, want.value); got != want.is {
				t.Errorf("%s{%s=%q} is %v, want %v", want.family, want.label, want.value, got, want.is)
			}
		}
		if n := len(families["stroppy_fault_active"].GetMetric()); n != 2 {
			t.Errorf("%d faults are reported; the one that was not injected is none", n)
		}
		for _, name := range []string{"go_goroutines", "process_cpu_seconds_total"} {
			if families[name] == nil {
				t.Errorf("there is no %s", name)
			}
		}
		for kind, h := range durations(families) {
			checkClassic(t, h, d.of(kind))
			if accept == asProtobuf {
				checkNative(t, h, d.of(kind))
			}
		}
	}
}

// durations returns the histograms by kind.
func durations(families map[string]*dto.MetricFamily) map[string]*dto.Histogram {
	by := map[string]*dto.Histogram{"transfer": nil, "inquiry": nil}
	for _, m := range families["stroppy_transaction_duration_seconds"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "kind" {
				by[l.GetValue()] = m.GetHistogram()
			}
		}
	}
	return by
}

// checkClassic checks that the buckets are cumulative and complete, and that each bound is exact to a bucket
// of the reading.
func checkClassic(t *testing.T, h *dto.Histogram, all []time.Duration) {
	t.Helper()
	if h.GetSampleCount() != uint64(len(all)) {
		t.Errorf("it counts %d of %d", h.GetSampleCount(), len(all))
	}
	var truth float64
	for _, d := range all {
		truth += d.Seconds()
	}
	if got := h.GetSampleSum(); math.Abs(got/truth-1) > 0.01 {
		t.Errorf("the sum is %v, want %v", got, truth)
	}
	var before uint64
	for _, b := range h.GetBucket() {
		if b.GetCumulativeCount() < before || b.GetCumulativeCount() > h.GetSampleCount() {
			t.Errorf("up to %v are %d, and %d before", b.GetUpperBound(), b.GetCumulativeCount(), before)
		}
		before = b.GetCumulativeCount()
		bound := b.GetUpperBound()
		below := func(seconds float64) (n uint64) {
			for _, d := range all {
				if d.Seconds() <= seconds {
					n++
				}
			}
			return n
		}
		slack := 0.512e-6 + bound*0.008
		if low, high := below(bound-slack), below(bound+slack); before < low || before > high {
			t.Errorf("up to %v are %d, want from %d to %d", bound, before, low, high)
		}
	}
	if n := len(h.GetBucket()); n < 40 {
		t.Errorf("there are %d buckets", n)
	}
}

// checkNative checks that the native buckets add up to the count. Each value must be in its bucket or, at the
// bucket's end, in the adjacent one.
func checkNative(t *testing.T, h *dto.Histogram, all []time.Duration) {
	t.Helper()
	if h.GetSchema() != schema || len(h.GetPositiveSpan()) == 0 {
		t.Fatalf("its schema is %d with %d spans", h.GetSchema(), len(h.GetPositiveSpan()))
	}
	var total, count int64
	got := map[int32]int64{}
	index, delta := int32(0), 0
	for i, span := range h.GetPositiveSpan() {
		if index += span.GetOffset(); i == 0 {
			index = span.GetOffset()
		}
		for range span.GetLength() {
			count += h.GetPositiveDelta()[delta]
			got[index] = count
			total += count
			index, delta = index+1, delta+1
		}
	}
	if total+int64(h.GetZeroCount()) != int64(h.GetSampleCount()) {
		t.Errorf("the native buckets hold %d of %d", total, h.GetSampleCount())
	}
	// The counts are cumulative, within the width of a bucket of the reading.
	var seen int64
	for i := int32(-200); i < 100; i++ {
		seen += got[i]
		bound := math.Exp2(float64(i) / (1 << schema))
		slack := 0.512e-6 + bound*0.008
		var low, high int64
		for _, d := range all {
			if d.Seconds() <= bound-slack {
				low++
			}
			if d.Seconds() <= bound+slack {
				high++
			}
		}
		if seen < low || seen > high {
			t.Errorf("up to %v are %d, want from %d to %d", bound, seen, low, high)
		}
	}
}

// TestMetricsNeverFall checks that every counter and cumulative bucket only grows.
func TestMetricsNeverFall(t *testing.T) {
	feed, d := driven()
	random := rand.New(rand.NewPCG(3, 4))
	last := map[float64]uint64{}
	for range 5 {
		h := durations(scrape(t, feed, asText))["inquiry"]
		for _, b := range h.GetBucket() {
			if b.GetCumulativeCount() < last[b.GetUpperBound()] {
				t.Errorf("up to %v were %d and are %d", b.GetUpperBound(), last[b.GetUpperBound()], b.GetCumulativeCount())
			}
			last[b.GetUpperBound()] = b.GetCumulativeCount()
		}
		d.commit(1000, random)
		feed.Show(d.state())
	}
}

// TestMetricsBeforeTheLoadPhase checks that unknown values are absent, and that an empty histogram is
// present.
func TestMetricsBeforeTheLoadPhase(t *testing.T) {
	feed := NewFeed()
	families := scrape(t, feed, asText)
	if families["stroppy_phase"] != nil || families["stroppy_transactions_total"] != nil || families["stroppy_build_info"] == nil {
		t.Errorf("before the run there are %d families", len(families))
	}
	feed.Named("x")
	feed.Begin(PhaseDrive)
	feed.Known(known(0))
	d := &standIn{}
	d.commit(0, nil)
	feed.Show(d.state())
	h := durations(scrape(t, feed, asProtobuf))["inquiry"]
	if time.Since(h.GetCreatedTimestamp().AsTime()) > time.Minute || h.GetSampleCount() != 0 || h.GetSampleSum() != 0 || len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) == 0 {
		t.Errorf("of nothing the histogram is %v", h)
	}
}

func TestNamesAreValid(t *testing.T) {
	feed, _ := driven()
	for name := range scrape(t, feed, asText) {
		if !model.LegacyValidation.IsValidMetricName(name) {
			t.Errorf("%s is no name of a metric", name)
		}
	}
}

// TestMiddleIsInItsBucket checks that the middle is in the bucket of the value.
func TestMiddleIsInItsBucket(t *testing.T) {
	for ns := int64(1); ns < int64(time.Hour); ns += 1 + ns/17 {
		var l stats.Live
		l.Add(ns)
		r := new(stats.Reading)
		r.Read(&l)
		b := r.Buckets()[0]
		got := middle(b) * 1e9
		if off := math.Abs(got - float64(ns)); off > 256 && off > 0.0041*float64(ns) {
			t.Fatalf("%d ns has the bucket up to %v, whose middle is %v", ns, b.Upper, got)
		}
	}
}
