package sweep

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/internal/report"
	"stroppy/internal/stats"
)

// Kind is a kind of campaign. Its text is the name of the file that keeps the book.
type Kind string

// The kinds of campaigns.
const (
	Steps      Kind = "sweep.json" // also the zero value
	Scenarios  Kind = "scenarios.json"
	Comparison Kind = "comparison.json"
	Levels     Kind = "levels.json" // the load of an isolation matrix
)

// maxFile is the largest book that is read, in bytes.
const maxFile = 16 << 20

// String returns the noun for a campaign of the kind.
func (k Kind) String() string {
	switch k {
	case Comparison:
		return "comparison"
	case Levels:
		return "isolation test"
	}
	return "sweep"
}

// KindOf returns the kind of the campaign whose book a directory holds; empty if it holds none.
func KindOf(dir string) Kind {
	for _, k := range []Kind{Scenarios, Steps, Comparison, Levels} {
		if _, err := os.Stat(filepath.Join(dir, string(k))); err == nil {
			return k
		}
	}
	return ""
}

// Book is the state of a campaign: a sweep, scenarios, a comparison, or the load of an isolation matrix.
type Book struct {
	Kind Kind `json:"-"`
	// Over is the text of a Spec. Names are the scenarios in their order, the
	// sides of a comparison, or the levels of an isolation test.
	Over  string   `json:"-"`
	Names []string `json:"-"`
	// Points are in the order in which they were run. The points of a comparison alternate between its sides.
	Points []Point `json:"-"`

	Schema    int    `json:"schema"`
	Workload  string `json:"workload"`
	Database  string `json:"database"`
	Scenario  string `json:"scenario"` // of every run, without the seed and what the campaign changes
	Seed      uint64 `json:"seed"`     // of each run that names none
	StartedAt string `json:"started_at"`
	Command   string `json:"command"` // repeats the campaign; with --out it continues
	Machine   string `json:"machine"` // that drove

	Environment *report.Environment `json:"environment,omitempty"` // of the first run

	Stroppy  string `json:"stroppy"` // the version
	Finished bool   `json:"finished"`
	Repeat   int    `json:"repeat,omitempty"` // measurements of each step, or rounds of a comparison, if more than one

	Conclusions *Conclusions   `json:"conclusions,omitempty"` // of a sweep, from all points
	Tables      []report.Table `json:"tables,omitzero"`       // of studies, with our measurements beside theirs
}

// Side is a side of a comparison, as comparison.json keeps it.
type Side struct {
	Name string   `json:"name"`
	Runs []string `json:"runs"` // their directories, relative to the directory of the comparison
}

// plain is a Book without methods.
type plain Book

// form is the content of a book's file. The kinds have different keys for the names and the runs.
type form struct {
	plain
	Over   any     `json:"over,omitempty"` // a text, or a list of scenarios
	Points []Point `json:"points,omitzero"`
	Runs   []Point `json:"runs,omitzero"`
	Rounds int     `json:"rounds,omitempty"`
	Sides  []Side  `json:"sides,omitempty"`
}

// MarshalJSON returns the content of the book's file.
func (b *Book) MarshalJSON() ([]byte, error) {
	f, points := form{plain: plain(*b)}, append([]Point{}, b.Points...)
	switch b.Kind {
	case Scenarios, Levels:
		f.Over, f.Runs = append([]string{}, b.Names...), points
	case Comparison:
		f.Rounds, f.Runs = b.Repeat, points
		for i, name := range b.Names {
			side := Side{name, []string{}}
			for at := i; at < len(points); at += len(b.Names) {
				side.Runs = append(side.Runs, points[at].Dir)
			}
			f.Sides = append(f.Sides, side)
		}
	default:
		f.Over, f.Points = b.Over, points
	}
	return json.Marshal(f)
}

// book returns the book of a file. A comparison that an earlier version kept has sides without
// results.
func (f *form) book(kind Kind) (*Book, error) {
	b := (*Book)(&f.plain)
	b.Kind, b.Points = kind, append(f.Points, f.Runs...)
	switch over := f.Over.(type) {
	case string:
		b.Over = over
	case []any:
		for _, name := range over {
			b.Names = append(b.Names, fmt.Sprint(name))
		}
	}
	for _, side := range f.Sides {
		b.Names = append(b.Names, side.Name)
	}
	for round := 0; len(f.Runs) == 0 && round < f.Rounds; round++ {
		for _, side := range f.Sides {
			if round < len(side.Runs) {
				b.Points = append(b.Points, Point{Scenario: side.Name, Dir: side.Runs[round]})
			}
		}
	}
	switch kind {
	case Comparison:
		if b.Repeat = f.Rounds; len(b.Names) < 2 {
			return nil, errors.New("it names fewer than two sides")
		}
	case Steps:
		if _, err := Parse(b.Over); err != nil {
			return nil, fmt.Errorf("it does not fit schema %d: %w", report.Schema, err)
		}
	}
	return b, nil
}

// Conclusions are the result of all steps together. A conclusion that is not claimed is null, and Findings
// give the reason.
type Conclusions struct {
	Findings []string `json:"findings"`
	Knee     *AtKnee  `json:"knee"`
	Law      *Fitted  `json:"law"`
}

// AtKnee is a claimed knee.
type AtKnee struct {
	Rate    float64 `json:"rate"`
	P99MS   float64 `json:"latency_p99_ms"` // the median of the measurements there
	Samples uint64  `json:"latency_samples"`
}

// Fitted is the scalability law, if it explains the measurements. A peak, or a limit, that is not claimed is
// null.
type Fitted struct {
	Lambda  Coefficient `json:"lambda"`
	Sigma   Coefficient `json:"sigma"`
	Kappa   Coefficient `json:"kappa"`
	R2      float64     `json:"r2"`
	PeakN   *float64    `json:"peak_n"`
	PeakTPS *float64    `json:"peak_tps"`
	Limit   *float64    `json:"limit_tps"`
}

// Coefficient has a 95 % interval, which is null if it is not known.
type Coefficient struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// ErrOther is the error of a directory that holds another campaign than the one asked for.
var ErrOther = errors.New("another one is kept there")

// Resume returns the book that a directory keeps of the campaign b, or b if it keeps none.
func (b *Book) Resume(dir string) (*Book, error) {
	kept, err := b.Kind.Read(dir)
	refused := func(format string, args ...any) (*Book, error) {
		return nil, fmt.Errorf("go on with the %s in %s: %w: take another directory", b.Kind, dir, fmt.Errorf(format, args...))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b, nil
	case err != nil:
		return nil, err
	case kept.Over != b.Over:
		return refused("%w: over %s, and this one is over %s", ErrOther, kept.Over, b.Over)
	case !slices.Equal(kept.Names, b.Names):
		return refused("%w, over other scenarios or levels", ErrOther)
	case kept.Scenario != b.Scenario:
		return refused("%w: its runs have other settings", ErrOther)
	case len(kept.Points) > 0 && kept.Stroppy != b.Stroppy:
		return refused("its runs were made by stroppy %s and this is %s", kept.Stroppy, b.Stroppy)
	case b.Repeat > 0 && b.Repeat < kept.Repeat:
		return refused("each run is repeated %d times there, and --repeat %d is less", kept.Repeat, b.Repeat)
	case b.Seed != 0 && kept.Seed != 0 && b.Seed != kept.Seed,
		b.Kind == Comparison && kept.Seed == 0 && len(kept.Points) > 0: // of an earlier version
		return refused("its seed is %d and not %d", kept.Seed, b.Seed)
	}
	kept.Seed, kept.Repeat = max(kept.Seed, b.Seed), max(kept.Repeat, b.Repeat)
	kept.Finished, kept.Command, kept.Stroppy = false, b.Command, b.Stroppy
	return kept, nil
}

// Read reads the book in a directory. If there is none, the error is an fs.ErrNotExist.
func (k Kind) Read(dir string) (*Book, error) {
	k = cmp.Or(k, Steps)
	return report.ReadFile(dir, string(k), k.String(), maxFile, k.parse)
}

func (k Kind) parse(data []byte) (*Book, error) {
	f, err := report.Decode[form](data, k.String())
	if err != nil {
		return nil, err
	}
	return f.book(k)
}

// Save puts the book in place at once: nobody ever sees half of it.
func (b *Book) Save(dir string) error {
	b.Schema = report.Schema
	k := cmp.Or(b.Kind, Steps)
	var err error
	if k == Steps {
		var spec Spec
		if spec, err = Parse(b.Over); err == nil {
			b.Conclusions = &summarize(spec.Axis, shown(b.Points, spec.Axis)).Conclusions
		}
	}
	if err == nil {
		err = report.WriteJSON(dir, string(k), b)
	}
	if err != nil {
		return fmt.Errorf("keep the %s in %s: %w", k, dir, err)
	}
	return nil
}

// Point returns the run of a scenario; nil if it was not tried.
func (b *Book) Point(scenario string) *Point {
	if i := slices.IndexFunc(b.Points, func(p Point) bool { return p.Scenario == scenario }); i >= 0 {
		return &b.Points[i]
	}
	return nil
}

// Done reports whether the book has a run of a scenario.
func (b *Book) Done(scenario string) bool {
	p := b.Point(scenario)
	return p != nil && p.Problem == ""
}

// Put enters a run into the book in place of the earlier one of its scenario.
func (b *Book) Put(p Point) {
	if known := b.Point(p.Scenario); known != nil {
		*known = p
		return
	}
	b.Points = append(b.Points, p)
}

// Missing returns the scenarios that could not be run.
func (b *Book) Missing() (names []string) {
	for _, p := range b.Points {
		if p.Problem != "" {
			names = append(names, p.Scenario)
		}
	}
	return names
}

// Runs returns the directories of a campaign's runs, if the directory of the campaign is dir.
func (b *Book) Runs(dir string) (list []string) {
	for _, p := range b.Points {
		switch {
		case filepath.IsAbs(p.Dir):
			list = append(list, p.Dir)
		case p.Dir != "":
			list = append(list, filepath.Join(dir, p.Dir))
		}
	}
	return list
}

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
		if x := r.Figure(key); x != nil {
			*measure = new(report.Rounded(*x, 6))
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
