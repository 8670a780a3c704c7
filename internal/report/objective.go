package report

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/fault"
)

// Objective is a limit on a measurement of the run, and whether the run kept it. The verdict does not count it.
type Objective struct {
	Name   string `json:"name"`   // max-outage, max-degradation, or the threshold, such as p99<50ms
	Status string `json:"status"` // met, missed or unknown
	Detail string `json:"detail"` // what was measured
}

// The statuses of an objective.
const (
	ObjectiveMet     = "met"
	ObjectiveMissed  = "missed"
	ObjectiveUnknown = "unknown"
)

// ObjectivesStatus returns missed if an objective was missed, else unknown if one is unknown, else met. It is
// empty without objectives.
func (r *Result) ObjectivesStatus() string {
	if len(r.Objectives) == 0 {
		return ""
	}
	for _, status := range []string{ObjectiveMissed, ObjectiveUnknown} {
		if slices.ContainsFunc(r.Objectives, func(o Objective) bool { return o.Status == status }) {
			return status
		}
	}
	return ObjectiveMet
}

// ObjectivesText returns a sentence with the objectives that were not met, or nothing.
func (r *Result) ObjectivesText() string {
	status := r.ObjectivesStatus()
	if status == "" || status == ObjectiveMet {
		return ""
	}
	var parts []string
	for _, o := range r.Objectives {
		if o.Status == status {
			parts = append(parts, o.Name+": "+strings.TrimSuffix(FirstLine(o.Detail), "."))
		}
	}
	lead := "objectives missed: "
	if status == ObjectiveUnknown {
		lead = "objectives that could not be decided: "
	}
	return lead + strings.Join(parts, "; ")
}

// Judge compares the figure with the limit. The worst value of a list counts, such as a value for each fault.
// An unknown value leaves the objective unknown, unless another value misses it.
func (t Threshold) Judge(r *Result) Objective {
	o := Objective{Name: t.String(), Status: ObjectiveUnknown}
	found, missing := values(reflect.ValueOf(r).Elem(), t.path)
	if t.share && len(found) > 0 {
		ended := r.Drive.ended()
		if ended == 0 {
			found = nil
		}
		for i := range found {
			found[i] /= float64(ended)
		}
	}
	if len(found) == 0 {
		o.Detail = "Not decided: the run has no such measurement."
		return o
	}
	worst := slices.Max(found)
	if t.op[0] == '>' {
		worst = slices.Min(found)
	}
	o.Detail = fmt.Sprintf("It is %s.", t.text(worst))
	if len(found)+missing > 1 {
		o.Detail = fmt.Sprintf("The worst of %d is %s.", len(found), t.text(worst))
	}
	switch {
	case !t.holds(worst) && !(t.op[0] == '>' && t.atLeast(r)):
		o.Status = ObjectiveMissed
	case missing > 0:
		o.Detail = fmt.Sprintf("Not decided: of %d such measurements %d are not known. ", len(found)+missing, missing) + o.Detail
	case t.atLeast(r) && (t.op[0] == '<' || !t.holds(worst)):
		o.Detail = fmt.Sprintf("Not decided: it is %s or more, because of work that never ended.", t.text(worst))
	default:
		o.Status = ObjectiveMet
	}
	return o
}

func (t Threshold) text(x float64) string {
	if t.share {
		return short4(100*x) + " % of all transactions"
	}
	return t.unit.text(x)
}

func (t Threshold) holds(x float64) bool {
	switch t.op {
	case "<":
		return x < t.value
	case "<=":
		return x <= t.value
	case ">":
		return x > t.value
	}
	return x >= t.value
}

// atLeast reports whether the figure is a lower bound.
func (t Threshold) atLeast(r *Result) bool {
	prefix := "drive.latency_by_outcome_ms." + allDue + "."
	key, ok := strings.CutPrefix(strings.Join(t.path, "."), prefix)
	return ok && r.Drive != nil && slices.Contains(r.Drive.DueAtLeast, key)
}

// Threshold is a limit on one figure of result.json, such as p99<50ms.
type Threshold struct {
	name  string   // of the figure, as it was given
	path  []string // its keys in result.json
	op    string   // < <= > >=
	limit string   // as it was given
	unit  *unit    // of the figure
	value float64  // the limit, in that unit; of a share of all transactions from 0 to 1
	share bool     // it is about the figure's share of all transactions that ended
}

// String is the threshold as it was given, without spaces.
func (t Threshold) String() string { return t.name + t.op + t.limit }

// OfFaults reports whether only a run with faults has the figure.
func (t Threshold) OfFaults() bool { return t.path[0] == "faults" || t.path[0] == "degradation" }

// unit is the unit of a figure.
type unit struct {
	name    string                              // as result.json has it; empty: a number alone
	example string                              // of limits, for errors
	parse   func(limit string) (float64, error) // reads a limit that is no number alone
	text    func(float64) string                // writes a value of the figure for people
}

var (
	millisecond = spanUnit("ms", time.Millisecond, func(x float64) string { return LatencyText(x) + " ms" })
	second      = spanUnit("s", time.Second, seconds)
	byteUnit    = &unit{"bytes", " of bytes, or with a unit, such as 500MB or 2GiB", parseBytes, func(x float64) string { return bytesText(int64(x)) }}
	plainNumber = &unit{"", ", such as 1000", func(string) (float64, error) { return 0, strconv.ErrSyntax }, short4}
)

// spanUnit returns a unit of time.
func spanUnit(name string, one time.Duration, text func(float64) string) *unit {
	parse := func(limit string) (float64, error) {
		d, err := time.ParseDuration(limit)
		return float64(d) / float64(one), err
	}
	return &unit{name, ", in " + name + " or with a unit, such as 50ms or 1.5s", parse, text}
}

func parseBytes(limit string) (float64, error) {
	digits := strings.TrimRight(limit, "BKMGTki")
	scale := byteScales[limit[len(digits):]]
	if scale == 0 {
		return 0, strconv.ErrSyntax
	}
	x, err := strconv.ParseFloat(digits, 64)
	return x * scale, err
}

// byteScales are the units in which a limit on a number of bytes may be given.
var byteScales = map[string]float64{
	"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// shorthands are the figures that most thresholds are about, by names that are no keys.
var shorthands = map[string]string{
	"mean": "drive.latency_ms.mean", "p50": "drive.latency_ms.p50", "p90": "drive.latency_ms.p90", "p95": "drive.latency_ms.p95",
	"p99": "drive.latency_ms.p99", "p999": "drive.latency_ms.p999", "p99.9": "drive.latency_ms.p999", "max": "drive.latency_ms.max",
	"tps": "drive.tps.mean", "outage": "faults.outage_s", "gap": "drive.longest_gap.seconds",
}

// ofAll are the counts that a limit may take as a share of all transactions that ended.
var ofAll = []string{"committed", "aborted", "unknown", "retries", "conflicts"}

// ParseThresholds reads thresholds, one a line. The error names what is wrong in one sentence.
func ParseThresholds(text string) (list []Threshold, err error) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		t, err := parseThreshold(line)
		if err != nil {
			return nil, fmt.Errorf("the threshold %q %w", strings.TrimSpace(line), err)
		}
		list = append(list, t)
	}
	return list, nil
}

func parseThreshold(line string) (t Threshold, err error) {
	text := strings.ReplaceAll(line, " ", "")
	at := strings.IndexAny(text, "<>=")
	if at <= 0 {
		return t, errors.New("must be a figure of result.json, < or >, and a limit, as in p99<50ms")
	}
	t.name, t.op = text[:at], text[at:at+1]
	if t.limit = text[at+1:]; strings.HasPrefix(t.limit, "=") {
		t.op, t.limit = t.op+"=", t.limit[1:]
	}
	if t.op[0] == '=' {
		return t, errors.New("must compare with <, <=, > or >=")
	}
	if t.path, t.unit, err = findFigure(t.name); err != nil {
		return t, err
	}
	if percent, ok := strings.CutSuffix(t.limit, "%"); ok {
		last := t.path[len(t.path)-1]
		if len(t.path) != 2 || !slices.Contains(ofAll, last) {
			return t, fmt.Errorf("has a limit in per cent, a share of all transactions that ended, which only %s can have", strings.Join(ofAll, ", "))
		}
		t.share = true
		t.value, err = strconv.ParseFloat(percent, 64)
		t.value /= 100
	} else if t.value, err = strconv.ParseFloat(t.limit, 64); err != nil {
		t.value, err = t.unit.parse(t.limit)
	}
	if err != nil || t.value < 0 || t.value-t.value != 0 {
		given := line[strings.IndexAny(line, "<>=")+1:] // with its spaces
		given = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(given), "="))
		return t, fmt.Errorf("has the limit %q, which must be a number%s", given, t.unit.example)
	}
	return t, nil
}

// Figure returns a figure by its name in a threshold; nil if it is not known, or is a list.
func (r *Result) Figure(name string) *float64 {
	path, _, err := findFigure(name)
	if err != nil {
		return nil
	}
	if found, missing := values(reflect.ValueOf(r).Elem(), path); len(found) == 1 && missing == 0 {
		return &found[0]
	}
	return nil
}

// findFigure finds a figure by a shorthand or by its keys in result.json, of which drive may be left out. A
// percentile may also be written as p(99).
func findFigure(name string) ([]string, *unit, error) {
	plain := strings.NewReplacer("(", "", ")", "").Replace(name)
	tries := []string{plain, "drive." + plain}
	if long, ok := shorthands[plain]; ok {
		tries = []string{long}
	}
	for _, try := range tries {
		path := strings.Split(try, ".")
		if u, ok := figureUnit(reflect.TypeFor[Result](), path, plainNumber); ok {
			return path, u, nil
		}
	}
	return nil, plainNumber, fmt.Errorf("names no figure of result.json: take p50, p99, p999, max, tps, outage, or keys of it such as drive.service_ms.p99 or faults.recovered_s, and not %s", name)
}

// figureUnit follows keys through the types of result.json, and returns the unit of the number at their end.
// It returns false if there is no number.
func figureUnit(t reflect.Type, path []string, u *unit) (*unit, bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if len(path) == 0 {
		switch t.Kind() {
		case reflect.Float64, reflect.Int, reflect.Int64, reflect.Uint64:
			return u, true
		}
		return u, false
	}
	switch t.Kind() {
	case reflect.Map:
		return figureUnit(t.Elem(), path[1:], u)
	case reflect.Struct:
		if index, ok := fieldOf(t, path[0]); ok && path[0] != "schema" && path[0] != "seed" {
			return figureUnit(t.FieldByIndex(index).Type, path[1:], unitOf(path[0], u))
		}
	}
	return u, false
}

// unitOf returns the unit in the suffix of a key, or the unit of the key before it.
func unitOf(key string, before *unit) *unit {
	switch {
	case strings.HasSuffix(key, "_ms"):
		return millisecond
	case strings.HasSuffix(key, "_s") || strings.HasSuffix(key, "seconds"):
		return second
	case strings.HasSuffix(key, "_bytes"):
		return byteUnit
	}
	return before
}

// fieldOf finds the field of a type by its JSON key.
func fieldOf(t reflect.Type, key string) ([]int, bool) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name == key && key != "-" {
			return f.Index, true
		}
	}
	return nil, false
}

// values follows keys through a result. It returns the values at their end, or of all elements,
// and the number of values that are not known.
func values(v reflect.Value, path []string) (found []float64, missing int) {
	if span, ok := v.Interface().(fault.Seconds); ok {
		return []float64{span.Seconds()}, 0
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil, 1
		}
		return values(v.Elem(), path)
	case reflect.Slice:
		for i := range v.Len() {
			more, lacking := values(v.Index(i), path)
			found, missing = append(found, more...), missing+lacking
		}
		return found, missing
	case reflect.Map:
		if v = v.MapIndex(reflect.ValueOf(path[0])); !v.IsValid() {
			return nil, 1
		}
		return values(v, path[1:])
	case reflect.Struct:
		index, _ := fieldOf(v.Type(), path[0])
		return values(v.FieldByIndex(index), path[1:])
	case reflect.Float64:
		return []float64{v.Float()}, 0
	case reflect.Uint64:
		return []float64{float64(v.Uint())}, 0
	}
	return []float64{float64(v.Int())}, 0
}
