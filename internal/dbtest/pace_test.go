package dbtest

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cli"
	"stroppy/internal/cluster"
	"stroppy/internal/history"
	"stroppy/internal/report"
)

// pacedRun is a run of the program with its result, history and series.
type pacedRun struct {
	result       *report.Result
	text         string
	transactions []history.Transaction // without audits
	waiting      []uint64              // waiting transactions in each second, from series.csv
	started      time.Time
}

// runPaced runs the program and reads the directory of the run. If hurt is not nil, runPaced calls it when the first
// transactions are recorded.
func runPaced(t *testing.T, hurt func(), args ...string) pacedRun {
	t.Helper()
	dir := runDir(t)
	var out, complaints bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(append([]string{"run", "bank", "--seed", "7", "--out", dir}, args...), nil, strings.NewReader(""), &out, &complaints)
	}()
	if hurt != nil {
		for !recording(dir) {
			select {
			case code := <-ended:
				t.Fatalf("%v ended with %d before the first transaction: %s", args, code, complaints.String())
			case <-time.After(5 * time.Millisecond):
			}
		}
		hurt()
	}
	if code := <-ended; code != 0 {
		t.Fatalf("%v ended with %d: %s", args, code, complaints.String())
	}
	return readPaced(t, dir, out.String())
}

// recording reports whether a block of the history is on disk.
func recording(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "history", "*"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.Size() > 4096 {
			return true
		}
	}
	return false
}

// readPaced reads the directory of a run.
func readPaced(t *testing.T, dir, text string) pacedRun {
	t.Helper()
	p := pacedRun{text: strings.Join(strings.Fields(text), " ")}
	var err error
	if p.result, err = report.Read(dir); err != nil {
		t.Fatal(err)
	}
	recorded, err := history.Open(filepath.Join(dir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	p.started = time.Unix(0, recorded.Header().Started)
	for record, err := range recorded.Transactions() {
		if err != nil {
			t.Fatal(err)
		}
		if tx := *record.Transaction; !tx.Kind.Background() {
			tx.Ops = nil
			p.transactions = append(p.transactions, tx)
		}
	}
	file, err := os.Open(filepath.Join(dir, "series.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := slices.Index(rows[0], "waiting")
	for _, row := range rows[1:] {
		n, err := strconv.ParseUint(row[column], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		p.waiting = append(p.waiting, n)
	}
	return p
}

// due returns the number of intended transactions: recorded, waiting at the end, and shed.
func (p *pacedRun) due() uint64 {
	return uint64(len(p.transactions)) + p.result.Drive.Backlog + p.result.Drive.Shed
}

// times returns the sorted values of f in milliseconds for the transactions that ok accepts, without the warm-up.
func (p *pacedRun) times(ok func(*history.Transaction) bool, f func(*history.Transaction) int64) (list []float64) {
	for i := range p.transactions {
		if tx := &p.transactions[i]; !tx.Warmup && ok(tx) {
			list = append(list, float64(f(tx))/1e6)
		}
	}
	slices.Sort(list)
	return list
}

// latency returns the time from the intended start to the end, in nanoseconds.
func latency(tx *history.Transaction) int64 { return tx.End - tx.Due }

// service returns the time from the actual start to the end, in nanoseconds.
func service(tx *history.Transaction) int64 { return tx.End - tx.Sent }

// anyone accepts every transaction.
func anyone(*history.Transaction) bool { return true }

// ended accepts the transactions with an outcome.
func ended(o history.Outcome) func(*history.Transaction) bool {
	return func(tx *history.Transaction) bool { return tx.Outcome == o }
}

// compare compares reported measurements with sorted times in milliseconds. The percentile for a share q of n times is
// the time with index ceil(q·n). The report has three significant digits, or half a microsecond below one millisecond.
func compare(t *testing.T, what string, got *report.Latency, times []float64) {
	t.Helper()
	if len(times) == 0 {
		if got != nil {
			t.Errorf("%s: measurements of nothing: %+v", what, got)
		}
		return
	}
	if got == nil {
		t.Fatalf("%s: no measurements of %d transactions", what, len(times))
	}
	sum := 0.0
	for _, x := range times {
		sum += x
	}
	at := func(q float64) float64 { return times[max(int(math.Ceil(q*float64(len(times))-1e-9)), 1)-1] }
	for _, c := range []struct {
		name              string
		got, want, within float64
	}{
		{"mean", got.Mean, sum / float64(len(times)), 2e-6},
		{"p50", got.P50, at(0.50), 0}, {"p90", got.P90, at(0.90), 0}, {"p95", got.P95, at(0.95), 0},
		{"p99", got.P99, at(0.99), 0}, {"p99.9", got.P999, at(0.999), 0},
		{"max", got.Max, times[len(times)-1], 1e-9},
	} {
		within := c.within
		if within == 0 {
			within = max(c.want/1000, 512e-6)
		}
		if math.Abs(c.got-c.want) > within {
			t.Errorf("%s: the reported %s of %d transactions is %v ms, want %v ms", what, c.name, len(times), c.got, c.want)
		}
	}
	t.Logf("%s: %d, p50 %.3f ms, p99 %.3f ms", what, len(times), got.P50, got.P99)
}

// compareHistogram compares the buckets of a histogram with sorted times in milliseconds.
func compareHistogram(t *testing.T, what string, h *report.Histogram, times []float64) {
	t.Helper()
	if h == nil {
		t.Fatalf("%s: there is no histogram", what)
	}
	at := 0
	for _, b := range h.Buckets {
		from := at
		for at < len(times) && times[at]*1000 < b[0]-1e-9 {
			at++
		}
		if float64(at-from) != b[1] {
			t.Fatalf("%s: %v transactions up to %v µs, want %d", what, b[1], b[0], at-from)
		}
		if width := b[0] - times[from]*1000; width > max(0.52, b[0]/100) {
			t.Fatalf("%s: %v µs lies in the bucket up to %v µs", what, times[from]*1000, b[0])
		}
	}
	if at != len(times) {
		t.Errorf("%s: %d of %d transactions are in the histogram", what, at, len(times))
	}
}

// TestLatencyFiguresMatchHistory computes each latency figure of real runs a second time, by sorting the recorded
// transactions.
func TestLatencyFiguresMatchHistory(t *testing.T) {
	needsTime(t)
	for name, args := range map[string][]string{
		"closed loop":          {"--duration", "3s", "--warmup", "1s", "--clients", "4"},
		"poisson":              {"--rate", "300", "--arrival", "poisson", "--duration", "4s", "--warmup", "1s"},
		"stages":               {"--rate", "100 for 1s, 100..500 for 2s"},
		"thinking":             {"--think-time", "5ms", "--duration", "2s", "--clients", "4"},
		"bad day":              {"--db", "memory:?unknown=0.01&abort=0.2", "--overdraft-share", "0.3", "--count", "20000", "--retries", "1"},
		"too fast for a timer": {"--db", "noop:", "--rate", "20000", "--duration", "2s", "--no-check"},
	} {
		t.Run(name, func(t *testing.T) {
			p := runPaced(t, nil, args...)
			d := p.result.Drive
			committed := p.times(ended(history.Committed), latency)
			compare(t, "latency", d.Latency, committed)
			compare(t, "service time", d.Service, p.times(ended(history.Committed), service))
			compare(t, "committed", d.Outcomes["committed"], committed)
			compare(t, "retried", d.Outcomes["retried"], p.times(func(tx *history.Transaction) bool {
				return tx.Outcome == history.Committed && tx.Attempts > 1
			}, latency))
			compare(t, "rejected", d.Outcomes["rejected"], p.times(ended(history.Rejected), latency))
			compare(t, "aborted", d.Outcomes["aborted"], p.times(ended(history.Aborted), latency))
			compare(t, "unknown", d.Outcomes["unknown"], p.times(ended(history.Unknown), latency))
			compareHistogram(t, "latency", d.Histogram, committed)
			compareHistogram(t, "service time", d.ServiceTimes, p.times(ended(history.Committed), service))
			compare(t, "pacing", d.Pacing, p.pacing())
		})
	}
}

// pacing returns the sorted times from intended to actual start, in milliseconds. It counts only transactions whose
// client was idle at the intended start.
func (p *pacedRun) pacing() (list []float64) {
	if p.result.Drive.RatePlan == "" && p.result.Drive.ThinkSeconds == 0 {
		return nil
	}
	bySent := slices.Clone(p.transactions)
	slices.SortFunc(bySent, func(a, b history.Transaction) int { return int(a.Sent - b.Sent) })
	last := map[uint64]int64{}
	for _, tx := range bySent {
		if tx.Due >= last[tx.ID.Client()] && !tx.Warmup {
			list = append(list, float64(tx.Sent-tx.Due)/1e6)
		}
		last[tx.ID.Client()] = tx.End
	}
	slices.Sort(list)
	return list
}

// TestLatencyIncludesServerPause pauses a real server for two seconds during a run at 400 transactions per second. The
// latency of each transaction due in the pause must include the rest of the pause. The service time shows the pause
// only for the few transactions in progress.
func TestLatencyIncludesServerPause(t *testing.T) {
	s := startRedis(t, 1, "no")
	const rate, clients = 400, 16
	var stopped, resumed time.Time
	p := runPaced(t, func() {
		time.Sleep(2 * time.Second)
		if err := cluster.LocalNodes(s)[0].Pause(t.Context()); err != nil {
			t.Error(err)
		}
		stopped = time.Now()
		time.Sleep(2 * time.Second)
		resumed = time.Now()
		if err := cluster.LocalNodes(s)[0].Resume(t.Context()); err != nil {
			t.Error(err)
		}
	}, "--db", s.URL()+"?timeout=20s", "--rate", strconv.Itoa(rate), "--duration", "8s", "--clients", strconv.Itoa(clients))
	if n := p.due(); n != 8*rate {
		t.Errorf("%d transactions were due, want %d", n, 8*rate)
	}
	// The times of the history do not follow adjustments of the wall clock.
	const apart = 5 * time.Millisecond
	from, to := int64(stopped.Sub(p.started)+apart), int64(resumed.Sub(p.started)-apart)
	due := 0
	for _, tx := range p.transactions {
		if tx.Due >= from && tx.Due < to {
			due++
			if tx.End < to { // the latency includes the rest of the pause
				t.Fatalf("%s was due at %d and ended at %d, while the server was stopped from %d to %d", tx.ID, tx.Due, tx.End, from, to)
			}
		}
	}
	if want := int(float64(to-from) / 1e9 * rate); due < want-1 || due > want+1 {
		t.Errorf("%d transactions were due while the server was stopped, want %d", due, want)
	}
	const late = 200.0 // ms
	above := func(times []float64) int { return len(times) - sortedBelow(times, late) }
	byLatency, byService := above(p.times(anyone, latency)), above(p.times(anyone, service))
	least := int((float64(to-from)/1e6 - late) / 1000 * rate)
	t.Logf("stopped for %v: %d were due then; %d are late by latency (at least %d must be), %d by service time; most waiting %d", resumed.Sub(stopped), due, byLatency, least, byService, p.result.Drive.MaxBacklog)
	// The transactions before the pause were in time, even if a busy machine takes long to catch up.
	if byLatency < least-1 || byLatency > len(p.transactions)-rate {
		t.Errorf("%d transactions of %d are late, want at least %d", byLatency, len(p.transactions), least)
	}
	if byService < clients || byService > byLatency/5 {
		t.Errorf("%d transactions of %d clients have a long service time", byService, clients)
	}
	d := p.result.Drive
	if d.Service.P90 > late || d.Latency.P90 < late {
		t.Errorf("p90 is %v ms by latency and %v ms by service time", d.Latency.P90, d.Service.P90)
	}
	if most := slices.Max(p.waiting); most != d.MaxBacklog || most < rate*9/10 || most > uint64(due)+rate {
		t.Errorf("the largest number of waiting transactions is %d in the series and %d in the result", most, d.MaxBacklog)
	}
}

// sortedBelow returns the number of times below a limit.
func sortedBelow(sorted []float64, limit float64) int {
	n, _ := slices.BinarySearch(sorted, limit)
	return n
}

// TestRateContinuesDuringRestart kills a real server and restarts it two seconds later. Every second must have its
// planned number of transactions, and none may be lost.
func TestRateContinuesDuringRestart(t *testing.T) {
	s := startRedis(t, 1, "always")
	p := runPaced(t, func() {
		time.Sleep(time.Second)
		if err := cluster.LocalNodes(s)[0].Kill(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if err := cluster.LocalNodes(s)[0].Restart(t.Context()); err != nil {
			t.Error(err)
		}
	}, "--db", s.URL()+"?timeout=1s", "--rate", "400", "--duration", "8s", "--clients", "8")
	d := p.result.Drive
	if p.due() != 3200 || d.Shed != 0 || d.Reconnects < 8 {
		t.Errorf("%d were due, %d shed, %d reconnects", p.due(), d.Shed, d.Reconnects)
	}
	begin := p.transactions[0].Due
	for _, tx := range p.transactions {
		begin = min(begin, tx.Due)
	}
	perSecond := make([]int, 8)
	for _, tx := range p.transactions {
		perSecond[(tx.Due-begin)/1e9]++
	}
	missing := 0 // on a busy machine these are in the backlog at the end
	for i, n := range perSecond {
		missing += max(0, 399-n)
		if n > 401 {
			t.Errorf("second %d: %d were due", i, n)
		}
	}
	if uint64(missing) > d.Backlog {
		t.Errorf("transactions due in each second: %v; %d are missing, and %d are in the backlog",
			perSecond, missing, d.Backlog)
	}
	if most := slices.Max(p.waiting); most < 300 {
		t.Errorf("at most %d waited: %v", most, p.waiting)
	}
}

// TestUnreachableRateIsReported checks the backlog, the number of shed transactions and the text of a run whose rate
// is too high.
func TestUnreachableRateIsReported(t *testing.T) {
	needsTime(t)
	p := runPaced(t, nil, "--rate", "100000", "--duration", "3s", "--max-backlog", "150000", "--no-check")
	d := p.result.Drive
	// A transaction that a client has just started is not in the backlog.
	const most, begun = 150_000, 16
	if p.due() != 300_000 || d.Shed == 0 || d.Backlog < most-begun || d.MaxBacklog < most-begun || d.MaxBacklog > most {
		t.Errorf("%d were due, %d shed, backlog %d, at most %d", p.due(), d.Shed, d.Backlog, d.MaxBacklog)
	}
	// On a busy machine the text names the client or the host.
	reported := regexp.MustCompile(`(The database|This client|This starved host) could not follow the rate of 100,000/s: 1[45]\d,\d{3} were due and not started when the load phase ended, (up to 1(50,000|49,9\d\d) waited at once, )?and `)
	if !reported.MatchString(p.text) {
		t.Errorf("%v is missing in %s", reported, p.text)
	}
}
