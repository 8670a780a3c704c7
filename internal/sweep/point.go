package sweep

import (
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// Point is the result of one run of a campaign. A measurement that is not known is nil.
type Point struct {
	Value float64 `json:"value"` // of the axis of a sweep; a rate of 0 is a closed loop

	Scenario string `json:"scenario,omitempty"`
	Settings string `json:"settings,omitempty"`      // in effect, as YAML
	Problem  string `json:"could_not_run,omitempty"` // why there is no run; empty: there is one
	Dir      string `json:"dir,omitempty"`           // of the run, below the directory of the campaign

	Verdict    string  `json:"verdict,omitempty"`
	Database   string  `json:"database,omitempty"` // with its version
	ScaledDown float64 `json:"scaled_down_by,omitempty"`
	Clients    int     `json:"clients,omitempty"`
	Loaded     uint64  `json:"loaded,omitempty"` // accounts, or what else the workload has
	Committed  uint64  `json:"committed,omitempty"`
	// Objectives is met, missed or unknown; empty if none was given.
	Objectives string `json:"objectives,omitempty"`
	// ObjectivesText names the objectives that were not met, and what was measured.
	ObjectivesText string `json:"objectives_text,omitempty"`
	// Violations are the first findings of the checks that make the verdict invalid.
	Violations []report.FirstFinding `json:"violations,omitempty"`

	TPS       *float64 `json:"tps"`     // committed a second, the mean
	Low       *float64 `json:"tps_low"` // of its confidence interval; both nil if it has none
	High      *float64 `json:"tps_high"`
	Median    *float64 `json:"tps_median"` // over whole seconds; nil if there were fewer than two
	Best      *float64 `json:"tps_best"`   // whole second; nil if there were fewer than two
	MeanMS    *float64 `json:"latency_mean_ms"`
	P50MS     *float64 `json:"latency_p50_ms"`
	P99MS     *float64 `json:"latency_p99_ms"`
	P999MS    *float64 `json:"latency_p999_ms"`
	MaxMS     *float64 `json:"latency_max_ms"`
	Footprint *int64   `json:"footprint_bytes"`
	Backlog   uint64   `json:"backlog"`    // due and never sent, shed ones included
	Left      float64  `json:"left_share"` // share of all due transactions that were not sent
	Unsteady  bool     `json:"unsteady"`
	Starved   bool     `json:"starved,omitempty"`         // the machine of the clients lacked processors
	Samples   uint64   `json:"latency_samples,omitempty"` // of the latencies; 0: not known
}

// witnesses is the number of transactions of a violation that a point has.
const witnesses = 5

// NewPoint returns the point of a run in a folder, at a value of the axis.
func NewPoint(value float64, dir string, r *report.Result) Point {
	p := Point{
		Value: value, Dir: dir, Verdict: r.Verdict, Objectives: r.ObjectivesStatus(), ObjectivesText: r.ObjectivesText(),
		Violations: r.Findings(witnesses), Database: strings.TrimSpace(r.Database + " " + r.DatabaseVersion),
		ScaledDown: r.ScaledDownBy, Footprint: r.FootprintBytes, Starved: r.Starved(),
	}
	if r.Load != nil {
		p.Loaded = r.Load.Accounts
	}
	d := r.Drive
	if d == nil {
		return p
	}
	p.Clients, p.Committed, p.Backlog = d.Clients, d.Committed, d.Backlog+d.Shed
	if due := value * (d.WarmupSeconds + d.Seconds); due > 0 {
		p.Left = min(1, float64(p.Backlog)/due)
	}
	if d.Latency != nil {
		p.Samples = d.Committed
	}
	for key, measure := range p.measures() {
		if x, known := r.Figure(key); known {
			*measure = new(report.Rounded(x, 6))
		}
	}
	p.Unsteady = d.Steady != nil && d.Steady.State == stats.Unsteady
	return p
}

// measures returns the throughput and the latencies by their keys in result.json.
func (p *Point) measures() map[string]**float64 {
	return map[string]**float64{
		"tps.mean": &p.TPS, "tps_interval.low": &p.Low, "tps_interval.high": &p.High, "tps.median": &p.Median, "tps.max": &p.Best,
		"latency_ms.mean": &p.MeanMS, "latency_ms.p50": &p.P50MS, "latency_ms.p99": &p.P99MS,
		"latency_ms.p999": &p.P999MS, "latency_ms.max": &p.MaxMS,
	}
}

// Figures returns the known figures of a run by their keys in result.json. Without clients there was no load
// phase that is known.
func (p *Point) Figures() map[string]float64 {
	figures := map[string]float64{}
	for key, measure := range p.measures() {
		if *measure != nil {
			figures[key] = **measure
		}
	}
	if p.Samples > 0 || p.Clients > 0 {
		figures["committed"] = float64(max(p.Samples, p.Committed))
	}
	if p.Clients > 0 {
		figures["clients"] = float64(p.Clients)
	}
	if p.Footprint != nil {
		figures["footprint_bytes"] = float64(*p.Footprint)
	}
	return figures
}
