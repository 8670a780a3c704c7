package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"stroppy/internal/stats"
)

// width is the number of columns that the text fills.
const width = 100

// Options say how the text is shown.
type Options struct {
	Color bool   // ANSI colours
	Dir   string // the run's directory, as the person named it
}

// Text writes the report of a run: the verdict first.
func Text(w io.Writer, r *Result, o Options) error {
	t := &text{r: r, color: o.Color}
	t.out.WriteString(t.status(r.Verdict, strings.ToUpper(r.Verdict)) + "  " +
		t.paint(bold, clean(strings.TrimSpace(r.Workload+" on "+databaseOf(r)))) + "\n")
	if r.Reason != "" {
		t.hang("", 2, r.Reason)
	}
	t.what()
	if r.Drive != nil {
		t.throughput(r.Drive)
		t.latencies(r.Drive)
		t.outcomes(r.Drive)
	}
	for _, p := range ownTables(r) {
		t.head(p.Title)
		_ = p.WriteText(&t.out)
		t.hang("", 2, p.Note)
	}
	t.faults()
	t.events()
	t.checks()
	t.errors()
	t.cost()
	t.files(o.Dir)
	_, err := io.WriteString(w, t.out.String())
	return err
}

type text struct {
	r     *Result
	out   strings.Builder
	color bool
}

// The colours are those of ECMA-48: bold, green, red, yellow, faint.
const (
	bold   = "\x1b[1m"
	green  = "\x1b[1;32m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	faint  = "\x1b[2m"
	plain  = "\x1b[0m"
)

func (t *text) paint(color, s string) string {
	if !t.color || s == "" {
		return s
	}
	return color + s + plain
}

func (t *text) status(status, shown string) string {
	return t.paint(cmp.Or(map[string]string{"valid": green, "invalid": red}[status], yellow), shown)
}

func (t *text) head(title string) { t.out.WriteString("\n" + t.paint(bold, clean(title)) + "\n") }

// line writes a name and its value, which is wrapped under itself.
func (t *text) line(name, value string) {
	const column = 16
	if value != "" {
		t.hang(fmt.Sprintf("  %-*s", column, name), column+2, value)
	}
}

// section writes names and values below a title; nothing where no value is known.
func (t *text) section(title string, lines [][2]string) {
	lines = slices.DeleteFunc(lines, func(l [2]string) bool { return l[1] == "" })
	if len(lines) > 0 {
		t.head(title)
	}
	for _, l := range lines {
		t.line(l[0], l[1])
	}
}

// row writes a name and right-aligned columns.
func (t *text) row(cells ...string) {
	line := fmt.Sprintf("  %-12s", cells[0])
	for _, c := range cells[1:] {
		line += fmt.Sprintf("%11s", c)
	}
	t.out.WriteString(strings.TrimRight(line, " ") + "\n")
}

// hang writes lead and then detail, wrapped at the indent.
func (t *text) hang(lead string, indent int, detail string) {
	parts := wrap(detail, width-indent)
	if len(parts) == 0 {
		parts = []string{""}
	}
	for i, part := range parts {
		if i > 0 || lead == "" {
			lead = strings.Repeat(" ", indent)
		}
		t.out.WriteString(strings.TrimRight(lead+part, " ") + "\n")
	}
}

func (t *text) what() {
	r := t.r
	var settings []string
	for _, s := range r.Settings {
		settings = append(settings, s.Name+" = "+s.Value)
	}
	expect, phase := "", ""
	if c := r.Claim; c != nil && c.Expect != c.Level {
		expect = c.Expect + ", which the verdict is about"
	}
	if d := r.Drive; d != nil {
		phase = joined(d.phaseText(), d.Style["update"], d.Style["mode"])
	}
	t.section("Run", [][2]string{
		{"started", r.StartedAt}, {"database", r.DatabaseURL}, {"settings", strings.Join(settings, " · ")},
		{"isolation", r.claimText()}, {"expected", expect}, {"data", loadText(r.Load)}, {"load phase", phase},
		{"seed", fmt.Sprint(r.Seed)}, {"machine", r.Machine}, {"times", phasesText(r.Phases)},
	})
}

func (t *text) throughput(d *Drive) {
	if d.TPS == nil {
		return
	}
	t.head("Throughput, committed transactions per second")
	t.row("", "mean", "median", "max")
	t.row("", textOr(none, d.TPS.Mean, RateText), textOr(none, d.TPS.Median, RateText), textOr(none, d.TPS.Max, RateText))
	if i := d.Interval; i != nil {
		t.line("interval", fmt.Sprintf("%.0f %% confidence interval of the mean %s to %s; effective sample size %.0f",
			100*i.Confidence, RateText(i.Low), RateText(i.High), i.Effective))
	}
	if s := d.Steady; s != nil && s.State != stats.SteadyUnknown {
		t.line("steadiness", s.Detail)
	}
	if why := t.r.Client.bottleneck(); why != "" {
		t.line("bottleneck", "the client: "+why)
	}
}

func (t *text) latencies(d *Drive) {
	if d.Latency == nil && d.Outcomes[allDue] == nil {
		return
	}
	t.head("Latency of committed transactions, milliseconds")
	t.row("", "mean", "p50", "p90", "p95", "p99", "p99.9", "max")
	lacks := d.lackingText()
	for _, p := range latencyTables(d) {
		for _, row := range p.Rows {
			name := row.Cells[0]
			if row.Cells[1] != NotKnown && name != "committed" && name != pacingError && (name != "all due" || lacks != "") {
				t.row(row.Cells...)
			}
		}
	}
	t.line(lacking, lacks)
	if p := d.Pacing; p != nil {
		t.line("pacing", fmt.Sprintf("the tool's own delay from due to sent: p50 %s ms, p99 %s ms, max %s ms", LatencyText(p.P50), LatencyText(p.P99), LatencyText(p.Max)))
	}
	t.line("clipped", d.clippedText())
	if o := d.Outage; o != nil && o.Seconds >= 1 {
		t.line("longest gap", fmt.Sprintf("%s without a commit, from second %.3g of the run", seconds(o.Seconds), o.AtSeconds))
	}
}

func (t *text) outcomes(d *Drive) {
	t.head("Outcomes")
	count := func(name, n, what string) { t.hang(fmt.Sprintf("  %-12s%13s   ", name, n), 30, what) }
	for _, row := range outcomeTables(d)[0].Rows {
		if c := row.Cells; c[0] != notSent {
			count(c[0], c[1], c[3])
		}
	}
	if !d.Rebuilt && (d.Backlog > 0 || d.Shed > 0) {
		count("backlog", group(d.Backlog), d.backlogText(t.r.Client))
	}
	switch {
	case d.Rebuilt:
		t.line("note", rebuiltText)
	case d.Unmeasured():
		t.line("note", unmeasuredText)
	}
}

// faults writes a line a fault: when, what, and how the database took it.
func (t *text) faults() {
	if len(t.r.Faults) == 0 {
		return
	}
	t.head("Faults")
	const columns = "  %7s  %-28s%9s%9s  %8s%8s%8s%10s\n"
	fmt.Fprintf(&t.out, columns, "at", "", "outage", "back in", "tps", "", "", "in doubt")
	t.out.WriteString(strings.TrimRight(fmt.Sprintf(columns, "", "", "", "", "before", "during", "after", ""), " \n") + "\n")
	for _, f := range t.r.Faults {
		row := faultRow(f)
		c := row.Cells
		fmt.Fprintf(&t.out, columns, c[2], short(clean(f.Fault), 28), c[4], c[5], c[6], c[7], c[8], c[12])
		if c[9] != none {
			row.Below = append(row.Below, fmt.Sprintf("p99 in ms %s before, %s during, %s after", c[9], c[10], c[11]))
		}
		for _, note := range row.Below {
			const indent = 11
			for _, part := range wrap(note, width-indent) {
				t.out.WriteString(strings.Repeat(" ", indent) + t.paint(faint, part) + "\n")
			}
		}
	}
	if d := t.r.Degradation; d != nil {
		t.line("degradation", d.text())
	}
}

// events reports what the cluster's supervisor did by itself.
func (t *text) events() {
	for _, p := range eventTables(t.r) {
		t.head(p.Title)
		for _, row := range p.Rows {
			t.line(row.Cells[0]+" s", row.Cells[1])
		}
		t.line("", p.Note)
	}
}

func (t *text) checks() {
	t.head("Checks")
	if len(t.r.Checks) == 0 {
		t.out.WriteString("  None was made.\n")
	}
	for _, c := range t.r.Checks {
		t.check(pageCheck(c))
	}
	if v := t.r.Violations; v != nil {
		t.line("all witnesses", fmt.Sprintf("%s, %s; `stroppy history RUN_DIR ID` shows a transaction", v.File, Counted(v.Lines, "line")))
	}
}

func (t *text) check(c PageCheck) {
	weight, shown := "required", c.Status
	if !c.Required {
		weight = "for information"
	}
	if shown == "invalid" {
		shown = "INVALID"
	}
	lead := fmt.Sprintf("  %-17s", clean(c.Name)) + t.status(c.Status, fmt.Sprintf("%-9s", shown)) + t.paint(faint, fmt.Sprintf("%-17s", weight))
	if c.Status != "invalid" {
		t.hang(lead, 45, c.Detail)
		return
	}
	t.out.WriteString(strings.TrimRight(lead, " ") + "\n")
	evidence := append([]string{c.Detail}, c.Anomalies...)
	for _, line := range append(evidence, labelled("transactions: ", some(c.Witness, 20), "recorded in: ", some(c.Where, 6))...) {
		t.hang("", 6, line)
	}
}

func (t *text) errors() {
	if t.r.Drive == nil || len(t.r.Drive.Errors) == 0 {
		return
	}
	t.head(errorsTitle)
	for _, e := range t.r.Drive.Errors {
		t.hang(fmt.Sprintf("  %12s  %-11s  %-10s  ", group(e.Count), clean(e.Class), clean(e.Code)), 40, e.Example)
	}
}

// cost writes what the database keeps, and what client and servers took.
func (t *text) cost() {
	r, client := t.r, cmp.Or(t.r.Client, &Client{})
	footprint := textOr("", r.FootprintBytes, bytesText)
	if footprint != "" {
		footprint += " in the database"
		if each, n := r.FootprintPerTransfer, r.FootprintTransfers; each != nil && n != nil {
			footprint += fmt.Sprintf(", %.0f bytes a committed transaction that wrote (%s of them)", *each, group(*n))
		}
	}
	cpu := ""
	if d := r.Drive; d != nil && client.CPUSeconds != nil {
		cpu = cpuText(*client.CPUSeconds) + " in the load phase"
		if done := d.ended(); done > 0 && d.WarmupSeconds == 0 {
			cpu += fmt.Sprintf(", %.1f µs a transaction", *client.CPUSeconds/float64(done)*1e6)
		}
		if client.Threads != nil {
			cpu += ", on " + Counted(uint64(math.Round(*client.Threads)), "thread")
		}
	}
	mostText := func(n int64) string { return bytesText(n) + " at most" }
	var serverCPU, serverMemory []string
	for _, s := range r.Servers {
		serverCPU = append(serverCPU, labelled(s.Name+" ", textOr("", s.CPUSeconds, cpuText))...)
		serverMemory = append(serverMemory, labelled(s.Name+" ", textOr("", s.MaxRSSBytes, mostText))...)
	}
	t.section("Cost", [][2]string{
		{"footprint", footprint}, {"client CPU", cpu}, {"client memory", textOr("", client.MaxRSSBytes, mostText)},
		{"server CPU", strings.Join(serverCPU, " · ")}, {"server memory", strings.Join(serverMemory, " · ")},
	})
}

func cpuText(s float64) string { return fmt.Sprintf("%.2f s", s) }

func (t *text) files(dir string) {
	t.head("Files")
	t.line("directory", dir)
	if t.r.Command != "" {
		t.out.WriteString("  " + fmt.Sprintf("%-16s", "repeat with") + clean(t.r.Command) + "\n")
	}
	if !t.r.Finished {
		t.line("note", cutOffText)
	}
}
