// Package report holds the result of a run, its form as result.json, and the documents for people. All are
// functions of the run's directory.
package report

import (
	"fmt"
	"time"

	"stroppy/internal/fault"
	"stroppy/internal/history"
	"stroppy/internal/stats"
)

// Schema is the version of result.json, and of sweep.json, that this program writes and
// reads. Keys may be added within a schema, never changed.
const Schema = 1

// FileName is the result's name in the run's directory.
const FileName = "result.json"

// maxFile is the largest result.json that is read, in bytes.
const maxFile = 64 << 20

// Result is result.json. A value that is not known is null, never zero.
type Result struct {
	Schema  int    `json:"schema"`
	Verdict string `json:"verdict"` // valid, invalid or unknown
	Reason  string `json:"reason"`  // the verdict's, in one sentence
	// Measured is set if the run is a measurement alone, in which nothing was to be checked.
	Measured        bool   `json:"measured,omitempty"`
	Cause           *Cause `json:"cause"` // of an invalid verdict; null of others
	Workload        string `json:"workload"`
	Database        string `json:"database"`
	DatabaseVersion string `json:"database_version"`
	Seed            uint64 `json:"seed"`
	LoadID          string `json:"load_id"` // of the data that the load phase used; empty if it has none

	// Identity names the run's history; null before it was begun and of a check of several.
	Identity *history.Identity `json:"identity"`
	Files    map[string]string `json:"files"` // SHA-256, in hexadecimal, of files of the directory

	StartedAt      string         `json:"started_at"` // RFC 3339
	Load           *Load          `json:"load"`
	Drive          *Drive         `json:"drive"`
	Checks         []Check        `json:"checks"`
	Faults         []fault.Record `json:"faults"`
	FootprintBytes *int64         `json:"footprint_bytes"`
	Client         *Client        `json:"client"`

	Host *Host `json:"host,omitempty"` // null if it was not sampled
	// Warnings hold the facts that a reader must know before the figures.
	Warnings []Warning `json:"warnings,omitempty"`
	// Resolved counts the transactions in doubt that the end state decided; null if no check did
	// that, or there were none.
	Resolved *Resolved `json:"resolved_unknown,omitempty"`

	Check *CheckCost `json:"check,omitempty"` // of the last check; null if it is not known

	// SampledRSS is the client's highest memory of all samples, in bytes; 0 is not
	// known. The system's own maximum may be below it, and Client has the larger.
	SampledRSS int64 `json:"-"`

	// FootprintTransfers are the committed transactions that wrote; the warm-up's are
	// among them.
	FootprintTransfers *uint64 `json:"footprint_transfers"`
	NoFootprint        bool    `json:"no_footprint,omitempty"` // the database cannot report what it keeps
	// FootprintPerTransfer is FootprintBytes over FootprintTransfers, in bytes.
	FootprintPerTransfer *float64 `json:"footprint_bytes_per_transfer"`
	Servers              []Server `json:"servers"` // that run on this machine; empty if none is known

	ServerMetrics *ServerMetrics `json:"server_metrics,omitempty"` // null if the database measures nothing

	Degradation   *Degradation `json:"degradation"`    // null without faults
	ClusterEvents []Event      `json:"cluster_events"` // actions of the cluster or its supervisor during the run, and changes of the leader; null if not known

	// Acknowledgements are null if no driver named the servers, or all writes went to one.
	Acknowledgements *Acknowledgements `json:"acknowledgements,omitempty"`

	Violations *Violations `json:"violations"` // null if no check found one

	// Objectives are the limits that the run was given on what was measured. The verdict
	// does not count them.
	Objectives []Objective `json:"objectives,omitempty"`

	Tables []Table `json:"tables,omitempty"` // what the workload adds
	Study  bool    `json:"study,omitempty"`  // the tables are from the Stroppy study

	Embedded    bool      `json:"embedded,omitempty"` // the database worked in the client's own process
	Finished    bool      `json:"finished"`           // false: the run was cut off before its end
	DatabaseURL string    `json:"database_url"`       // without passwords
	Settings    []Setting `json:"database_settings"`

	// DatabaseWarnings name missing parts of the database's set-up, a sentence each.
	DatabaseWarnings []string `json:"database_warnings,omitempty"`

	Claim    *Claim    `json:"claim"`
	Scenario []Setting `json:"scenario"` // every key of the run in effect

	// ScaledDownBy is the divisor of the scenario's sizes; 0: the run is the scenario as written.
	// ScaledDown lists the changed sizes.
	ScaledDownBy float64 `json:"scaled_down_by,omitempty"`
	ScaledDown   string  `json:"scaled_down,omitempty"`

	Phases  []Phase `json:"phases"`
	Command string  `json:"command"` // repeats the run
	Stroppy string  `json:"stroppy_version"`
	Machine string  `json:"machine"` // of the clients: system, architecture, processors

	Environment *Environment `json:"environment,omitempty"`

	// Checksum is the SHA-256, in hexadecimal, of this value as compact JSON with an empty
	// checksum. A result of an older version has none.
	Checksum string `json:"checksum,omitempty"`
}

// Violations describes the file in the run's directory with a line for each transaction that shows a
// violation, also if no check names it. The line has the place of its recording.
type Violations struct {
	File  string `json:"file"`
	Lines uint64 `json:"lines"`          // of the file, which is bounded
	More  uint64 `json:"more,omitempty"` // that were found and are not in it

	Checks []ViolationsOf `json:"checks,omitempty"` // of each invalid check, in their order
}

// ViolationsOf are the violations of one check.
type ViolationsOf struct {
	Check string `json:"check"`
	Found uint64 `json:"found"`
	Lines uint64 `json:"lines"` // of the file
}

// of returns the violations of a check; zero if they are not known.
func (v *Violations) of(check string) (found ViolationsOf) {
	if v != nil {
		for _, of := range v.Checks {
			if of.Check == check {
				return of
			}
		}
	}
	return found
}

// rest returns the number of violations of a check and their place, or nothing if it is not known.
func (v *Violations) rest(check string) string {
	switch of := v.of(check); {
	case of.Found < 2:
		return ""
	case of.Lines < of.Found:
		return fmt.Sprintf("%s violations were found, and %s has %s of them.", Group(of.Found), v.File, Group(of.Lines))
	default:
		return fmt.Sprintf("%s violations were found, and %s has them all.", Group(of.Found), v.File)
	}
}

// Table holds measurements that a workload adds to the report, as people read them.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	Notes   []string   `json:"notes,omitempty"`
}

// Load is the result of the load phase that filled the database. Its times are null if the data of an
// earlier load was used.
type Load struct {
	Accounts      uint64   `json:"accounts"`
	Things        string   `json:"things,omitempty"` // the noun for what Accounts counts; empty: accounts
	Seconds       *float64 `json:"seconds"`
	RowsPerSecond *float64 `json:"rows_per_second"`
	Total         string   `json:"total"`   // decimal text; empty if nothing is added up
	Resumed       uint64   `json:"resumed"` // accounts that an interrupted load had left
}

// LiveCheck counts the transactions that were checked during the load phase, and the transactions that the
// check left out because it did not keep up. The last transactions are in neither.
type LiveCheck struct {
	Checked uint64 `json:"checked"`
	Skipped uint64 `json:"skipped"`
}

// Drive is the result of the phase in which clients run transactions. The measurements leave the warm-up out.
type Drive struct {
	Clients     int         `json:"clients"`
	Workers     int         `json:"workers,omitempty"`      // processes that had the clients; 0: the run's own process
	WorkersLost int         `json:"workers_lost,omitempty"` // during the load phase; the result lacks their measurements
	Seconds     float64     `json:"seconds"`
	Rate        float64     `json:"rate"`      // asked for, per second; 0 is a closed loop
	Committed   uint64      `json:"committed"` // after the warm-up, by their end; so are those rejected, aborted and unknown
	Rejected    Rejected    `json:"rejected"`
	Aborted     uint64      `json:"aborted"`
	Unknown     uint64      `json:"unknown"`
	Retries     uint64      `json:"retries"`
	Conflicts   uint64      `json:"conflicts"`
	TPS         *Throughput `json:"tps"`
	Latency     *Latency    `json:"latency_ms"` // from when it was due
	Service     *Latency    `json:"service_ms"` // from when it was sent

	WarmupSeconds float64 `json:"warmup_seconds"`
	Interrupted   bool    `json:"interrupted"` // it ended early
	// StoppedOnViolation reports that a violation ended it, and not a person.
	StoppedOnViolation bool              `json:"stopped_on_violation,omitempty"`
	LiveCheck          *LiveCheck        `json:"live_check,omitempty"`
	Backlog            uint64            `json:"backlog"` // due, but not started when the load phase ended
	Reconnects         uint64            `json:"reconnects"`
	Style              map[string]string `json:"style"` // the workload's properties, such as update and mode in effect
	Kinds              map[string]uint64 `json:"committed_by_kind"`
	Writes             *uint64           `json:"committed_writes"`              // committed transactions that are not read-only
	Outage             *Outage           `json:"longest_gap"`                   // the longest time in which nothing was committed
	Silence            *Silence          `json:"closed_loop_silence,omitempty"` // null in an open loop, and if there was no silence
	Recorded           *RecordedCounts   `json:"recorded,omitempty"`            // the other commits; null if they were not counted
	Errors             []ErrorCount      `json:"errors"`

	RatePlan     string              `json:"rate_plan"`               // the rate over time, as asked for; empty is a closed loop
	Arrival      string              `json:"arrival"`                 // of an open loop: uniform or poisson
	ThinkSeconds float64             `json:"think_seconds"`           // of a closed loop, between two transactions of a client
	Shed         uint64              `json:"shed"`                    // due while the queue was full or too late for the latency limit, and so never sent
	WarmupUnsent uint64              `json:"warmup_unsent,omitempty"` // due in the warm-up and never sent, for either reason
	Clipped      uint64              `json:"clipped"`                 // longer than an hour, which the percentiles take for an hour
	MaxBacklog   uint64              `json:"max_backlog"`             // the most that were due and not sent at the end of a second
	Pacing       *Latency            `json:"pacing_ms"`               // from due to sent if the client was free: the tool's own error
	Outcomes     map[string]*Latency `json:"latency_by_outcome_ms"`   // committed, retried (committed after more than one try), rejected, aborted, unknown, all; from the intended start time. all has unknown transactions until they were given up, and unsent ones until the load phase ended
	Rebuilt      bool                `json:"rebuilt"`                 // from the recorded transactions alone, because the run ended before it wrote its measurements. Conflicts, reconnects, errors, backlog, shed and the cost of the load phase are unknown
	DueAtLeast   []string            `json:"all_at_least"`            // the keys of latency_by_outcome_ms.all that are lower bounds, because some work never ended
	Limit        *LatencyLimit       `json:"latency_limit,omitempty"` // null if there is none
	Connect      *Latency            `json:"connect_ms,omitempty"`    // to open the connection of a transaction; null if connections were kept
	Interval     *stats.Interval     `json:"tps_interval"`            // of the mean throughput
	Steady       *stats.Steadiness   `json:"steady"`
	ByKind       map[string]*Latency `json:"latency_by_kind_ms"` // of committed transactions by kind, from when they were due; null if it is not known
	Histogram    *Histogram          `json:"latency_histogram"`  // of committed transactions, from when they were due
	ServiceTimes *Histogram          `json:"service_histogram"`  // the same from when they were sent
}

// LatencyLimit counts the transactions that did not keep the latency limit.
type LatencyLimit struct {
	LimitMS float64 `json:"limit_ms"`
	Over    uint64  `json:"over"`    // committed, and took longer
	Skipped uint64  `json:"skipped"` // of shed: later than the limit before they could be sent
}

// text describes the effect of the limit.
func (l *LatencyLimit) text(committed uint64) string {
	text := fmt.Sprintf("%s of %s took longer than the latency limit of %s ms (%s)", Group(l.Over), Counted(committed, "committed transaction"), LatencyText(l.LimitMS), share(l.Over, committed))
	if l.Skipped > 0 {
		text += fmt.Sprintf(", and %s never sent because they were later than that", wereCount(l.Skipped))
	}
	return text + "."
}

// Histogram is a distribution of durations: pairs of a bucket's upper end in
// microseconds and how many fell into it, in ascending order, empty ones left
// out. The buckets have two significant digits.
type Histogram struct {
	Buckets [][2]float64 `json:"buckets_us"`
}

// NewHistogram is nil if nothing was measured.
func NewHistogram(buckets []stats.Bucket) *Histogram {
	if len(buckets) == 0 {
		return nil
	}
	h := &Histogram{Buckets: make([][2]float64, 0, len(buckets))}
	for _, b := range buckets {
		h.Buckets = append(h.Buckets, [2]float64{float64(b.Upper) / float64(time.Microsecond), float64(b.Count)})
	}
	return h
}

// Rejected counts the transactions that a rule of the workload refused, by the rule's
// name with _ for a space. The first two are always there.
type Rejected map[string]uint64

// The rules that every result has, and the name of the unknown rule during the load phase.
const (
	InsufficientFunds = "insufficient_funds"
	NoSuchAccount     = "no_such_account"
	Unsplit           = ""
)

// total counts the transactions that any rule rejected.
func (r Rejected) total() (n uint64) {
	for _, count := range r {
		n += count
	}
	return n
}

// ended counts the transactions by their outcomes.
func (d *Drive) ended() uint64 { return d.Committed + d.Rejected.total() + d.Aborted + d.Unknown }

// Throughput is committed transactions per second. Median and maximum are over whole seconds, and null if
// there were fewer than two. The mean is over whole seconds if there are ten or more, else over the measured
// time.
type Throughput struct {
	Mean   *float64 `json:"mean"`
	Median *float64 `json:"median"`
	Max    *float64 `json:"max"`
}

// Latency is milliseconds of committed transactions.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Outage is a time without a commit, in seconds since the run's start.
type Outage struct {
	AtSeconds float64 `json:"at_s"`
	Seconds   float64 `json:"seconds"`
}

// ErrorCount is how often one kind of error came back.
type ErrorCount struct {
	Class   string `json:"class"`
	Code    string `json:"code"`
	Op      string `json:"op"`
	Count   uint64 `json:"count"`
	Example string `json:"example"`
}

// notApplicable is the status of a check that had nothing to check.
const notApplicable = "not applicable"

// Check is the result of one check.
type Check struct {
	Name      string        `json:"name"`
	Status    string        `json:"status"` // valid, invalid, unknown or not applicable
	Detail    string        `json:"detail"`
	Witness   []string      `json:"witness"` // transaction ids
	Required  bool          `json:"required"`
	Anomalies []Anomaly     `json:"anomalies"`
	Where     []history.Ref `json:"where"`              // the places of the witnesses in the recording
	Findings  []Finding     `json:"findings,omitempty"` // what makes it invalid, by kind

	// Broken are the first few values that nobody wrote, with the writers of their bytes, if the
	// bytes were kept.
	Broken []BrokenValue `json:"broken_values,omitempty"`
}

// lateFrom is the least delay of a fault that is reported.
const lateFrom = fault.Seconds(100 * time.Millisecond)

// Event is something that a cluster's supervisor did by itself.
type Event struct {
	AtSeconds float64 `json:"at_s"` // since the run's start
	Text      string  `json:"text"`
	Leader    string  `json:"leader,omitempty"` // the node that leads from then on, if the event is a change of the leader
	Named     string  `json:"named,omitempty"`  // the node that clients can learn to be the leader from then on, if the event is that
	Repair    bool    `json:"repair,omitempty"` // an action for the operator, because the cluster does not do it by itself
}

// Degradation compares the last part of the load phase without a fault with the first.
type Degradation struct {
	FirstTPS float64 `json:"first_tps"`
	LastTPS  float64 `json:"last_tps"`
}

// Loss is the share of the throughput lost from the first part to the last; below zero: gained.
func (d Degradation) Loss() float64 { return 1 - d.LastTPS/d.FirstTPS }

// Client is the cost of the load phase on this side.
type Client struct {
	CPUSeconds  *float64 `json:"cpu_seconds"` // user and system, during the load phase
	MaxRSSBytes *int64   `json:"max_rss_bytes"`
	Threads     *float64 `json:"threads,omitempty"` // that could run this program's code at once, chosen in the warm-up or the first two seconds; a whole number (a mean in older recordings)
	// RunDelaySeconds is how long its threads were ready to run and had no processor.
	RunDelaySeconds *float64 `json:"run_delay_seconds,omitempty"`
	Bottleneck      string   `json:"bottleneck"`        // why the measurements are this client's rather than the database's; empty if they are not
	Workers         []Worker `json:"workers,omitempty"` // whose sum the client is; none: it is one process
}

// CheckCost is the cost of the check of the recording.
type CheckCost struct {
	MaxRSSBytes *int64 `json:"max_rss_bytes"` // the highest resident memory of this process during the check
}

// Worker is one process of a client that has several.
type Worker struct {
	Clients     int      `json:"clients"`
	CPUSeconds  *float64 `json:"cpu_seconds"` // user and system, during the load phase
	MaxRSSBytes *int64   `json:"max_rss_bytes"`
	Threads     *float64 `json:"threads,omitempty"`
}

// Server is the cost of one server of the database during the load phase.
type Server struct {
	Name        string   `json:"name"`
	CPUSeconds  *float64 `json:"cpu_seconds"` // user and system
	MaxRSSBytes *int64   `json:"max_rss_bytes"`
	// Known if the machine of the server reports it, as for a pod.
	ReceivedBytes  *int64 `json:"received_bytes,omitempty"`
	SentBytes      *int64 `json:"sent_bytes,omitempty"`
	MaxStoredBytes *int64 `json:"max_stored_bytes,omitempty"` // on its volumes
}

// Resource is a row of ResourcesFile: the cost of client and servers in one second.
type Resource struct {
	Second     int      `csv:"second"`     // since the run's start
	ClientCPU  *float64 `csv:"client_cpu"` // processors kept busy
	ClientRSS  *int64   `csv:"client_rss_bytes"`
	ServersCPU *float64 `csv:"servers_cpu"`
	ServersRSS *int64   `csv:"servers_rss_bytes"`

	ServersReceived *int64 `csv:"servers_received_bytes,optional"` // in this second
	ServersSent     *int64 `csv:"servers_sent_bytes,optional"`     // in this second
	ServersStored   *int64 `csv:"servers_stored_bytes,optional"`   // on volumes
}

// Setting is a name with its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Claim is the promise that the verdict is about.
type Claim struct {
	Isolation string `json:"isolation"` // as the database names it
	Level     string `json:"level"`     // what the database claims for it
	Source    string `json:"source"`    // the place of the claim
	Expect    string `json:"expect"`    // the level that the verdict is about

	Durable    string           `json:"durable,omitempty"`    // the place of its promise that acknowledged writes stay; empty: not known
	Caveats    []Caveat         `json:"caveats,omitempty"`    // the settings in effect under which it does not promise that
	Isolations []IsolationLevel `json:"isolations,omitempty"` // those that it has
}

// Phase is one part of the run and how long it took.
type Phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// derive updates the measurements that follow from others: the client's largest memory, and the footprint for
// each transaction that wrote.
func (r *Result) derive() {
	if c := r.Client; c != nil && r.SampledRSS > 0 && (c.MaxRSSBytes == nil || *c.MaxRSSBytes < r.SampledRSS) {
		c.MaxRSSBytes = new(r.SampledRSS)
	}
	r.FootprintPerTransfer = nil
	if n := r.FootprintTransfers; n != nil && *n > 0 && r.FootprintBytes != nil {
		r.FootprintPerTransfer = new(float64(*r.FootprintBytes) / float64(*n))
	}
}
