package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

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
	t.verdict()
	t.what()
	t.throughput()
	t.outcomes()
	t.tables()
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
	switch status {
	case "valid":
		return t.paint(green, shown)
	case "invalid":
		return t.paint(red, shown)
	}
	return t.paint(yellow, shown)
}

func (t *text) head(title string) { t.out.WriteString("\n" + t.paint(bold, title) + "\n") }

// line writes a name and its value, which is wrapped under itself.
func (t *text) line(name, value string) {
	const column = 16
	if value != "" {
		t.hang(fmt.Sprintf("  %-*s", column, name), column+2, value)
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

func (t *text) verdict() {
	r := t.r
	t.out.WriteString(t.status(r.Verdict, strings.ToUpper(r.Verdict)) + "  " +
		t.paint(bold, clean(strings.TrimSpace(r.Workload+" on "+databaseOf(r)))) + "\n")
	if r.Reason != "" {
		t.hang("", 2, r.Reason)
	}
}

func (t *text) what() {
	r := t.r
	t.head("Run")
	t.line("started", r.StartedAt)
	t.line("database", r.DatabaseURL)
	var settings []string
	for _, s := range r.Settings {
		settings = append(settings, s.Name+" = "+s.Value)
	}
	t.line("settings", strings.Join(settings, " · "))
	if c := r.Claim; c != nil {
		t.line("isolation", r.claimText())
		if c.Expect != c.Level {
			t.line("expected", c.Expect+", which the verdict is about")
		}
	}
	t.line("data", loadLine(r.Load))
	t.line("load phase", driveLine(r.Drive))
	t.line("seed", fmt.Sprint(r.Seed))
	t.line("machine", r.Machine)
	t.line("times", phases(r.Phases, seconds))
}

func loadLine(l *Load) string {
	if l == nil {
		return ""
	}
	s := Counted(l.Accounts, "account")
	if l.Things != "" {
		s = group(l.Accounts) + " " + l.Things
	}
	if l.Total != "" {
		s += " holding " + l.Total
	}
	switch {
	case l.Seconds == nil:
		return s + ", loaded before"
	case l.Resumed > 0:
		s += fmt.Sprintf(", of which %s were there already", group(l.Resumed))
	}
	s += " in " + seconds(*l.Seconds)
	if l.RowsPerSecond != nil {
		s += ", " + RateText(*l.RowsPerSecond) + " rows/s"
	}
	return s
}

func driveLine(d *Drive) string {
	if d == nil {
		return ""
	}
	parts := []string{d.lengthText(seconds), d.loopText(), d.Style["update"], d.Style["mode"]}
	if d.Interrupted {
		parts = append(parts, "ended early by the user")
	}
	return joined(parts...)
}

// throughput writes the load phase's throughput and latencies.
func (t *text) throughput() {
	d := t.r.Drive
	if d == nil {
		return
	}
	if p := d.TPS; p != nil {
		t.head("Throughput, committed transactions per second")
		t.row("", "mean", "median", "max")
		t.row("", optional(p.Mean), optional(p.Median), optional(p.Max))
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
	if d.Latency == nil && d.Outcomes[allDue] == nil {
		return
	}
	t.head("Latency of committed transactions, milliseconds")
	t.row("", "mean", "p50", "p90", "p95", "p99", "p99.9", "max")
	if d.Latency != nil {
		t.row(d.Latency.cells("since due", d.committedText)...)
	}
	if d.Service != nil {
		t.row(d.Service.cells("since sent", d.committedText)...)
	}
	for _, name := range []string{"retried", "rejected", "aborted", "unknown", allDue} {
		if d.Outcomes[name] != nil && (name != allDue || d.lackingText() != "") {
			t.row(d.outcomeCells(name)...)
		}
	}
	t.line(lacking, d.lackingText())
	t.line("pacing", d.pacingText())
	t.line("clipped", d.clippedText())
	if o := d.Outage; o != nil && o.Seconds >= 1 {
		t.line("longest gap", fmt.Sprintf("%s without a commit, from second %.3g of the run", seconds(o.Seconds), o.AtSeconds))
	}
}

func (t *text) outcomes() {
	d := t.r.Drive
	if d == nil {
		return
	}
	t.head("Outcomes")
	t.count("committed", d.Committed, kinds(d.Kinds))
	t.count("rejected", d.Rejected.total(), d.Rejected.reasons())
	if d.Rebuilt {
		t.count("aborted", d.Aborted, "tries beyond the first "+group(d.Retries))
		t.count("unknown", d.Unknown, "")
		t.line("note", rebuiltText)
		return
	}
	t.count("aborted", d.Aborted, fmt.Sprintf("conflicts %s · retries %s", group(d.Conflicts), group(d.Retries)))
	t.count("unknown", d.Unknown, "reconnects "+group(d.Reconnects))
	if d.Backlog > 0 || d.Shed > 0 {
		t.count("backlog", d.Backlog, d.backlogText(t.r.Client))
	}
	if d.Unmeasured() {
		t.line("note", unmeasuredText)
	}
}

// count writes a name, a right-aligned number and what is in it.
func (t *text) count(name string, n uint64, more string) {
	t.hang(fmt.Sprintf("  %-12s%13s   ", name, group(n)), 30, more)
}

// tables writes what the workload adds, in columns.
func (t *text) tables() {
	for _, table := range t.r.Tables {
		t.head(clean(table.Title))
		widths := make([]int, len(table.Columns))
		rows := append([][]string{table.Columns}, table.Rows...)
		for _, row := range rows {
			for i, cell := range row[:min(len(row), len(widths))] {
				widths[i] = max(widths[i], utf8.RuneCountInString(clean(cell)))
			}
		}
		for _, row := range rows {
			var line strings.Builder
			for i, cell := range row[:min(len(row), len(widths))] {
				width := widths[i]
				if i == 0 {
					width = -width // at the left
				}
				fmt.Fprintf(&line, "  %*s", width, clean(cell))
			}
			t.out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
		for _, note := range table.Notes {
			t.hang("", 2, note)
		}
	}
}

// mostEvents bounds what of a supervisor's work is shown; result.json has all.
const mostEvents = 40

// events reports what the cluster's supervisor did by itself.
func (t *text) events() {
	list := t.r.ClusterEvents
	if len(list) == 0 {
		return
	}
	t.head("Cluster events")
	for i, e := range list {
		if i == mostEvents {
			t.line("", fmt.Sprintf("… and %d more, in %s", len(list)-i, FileName))
			return
		}
		t.line(fmt.Sprintf("%.2f s", e.AtSeconds), e.Text)
	}
}

func (t *text) checks() {
	t.head("Checks")
	if len(t.r.Checks) == 0 {
		t.out.WriteString("  None was made.\n")
		return
	}
	for _, c := range t.r.Checks {
		t.check(c)
	}
	if v := t.r.Violations; v != nil {
		t.line("all witnesses", fmt.Sprintf("%s, %s; `stroppy history RUN_DIR ID` shows a transaction", v.File, Counted(v.Lines, "line")))
	}
}

func (t *text) check(c Check) {
	const indent = 45
	weight := "required"
	if !c.Required {
		weight = "for information"
	}
	shown := c.Status
	if shown == "invalid" {
		shown = "INVALID"
	}
	lead := fmt.Sprintf("  %-17s", clean(c.Name)) + t.status(c.Status, fmt.Sprintf("%-9s", shown)) + t.paint(faint, fmt.Sprintf("%-17s", weight))
	if c.Status != "invalid" {
		t.hang(lead, indent, c.Detail)
		return
	}
	t.out.WriteString(strings.TrimRight(lead, " ") + "\n")
	t.hang("", 6, c.Detail)
	for _, a := range c.Anomalies {
		t.hang("", 6, a.text())
	}
	if len(c.Witness) > 0 {
		t.hang("", 6, "transactions: "+some(c.Witness, 20))
	}
	var places []string
	for _, w := range c.Where {
		places = append(places, fmt.Sprintf("%s block at %d record %d", w.File, w.Offset, w.Record))
	}
	if len(places) > 0 {
		t.hang("", 6, "recorded in: "+strings.ReplaceAll(some(places, 6), ", ", "; "))
	}
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

func (t *text) errors() {
	if t.r.Drive == nil || len(t.r.Drive.Errors) == 0 {
		return
	}
	t.head("Errors that the database reported")
	for _, e := range t.r.Drive.Errors {
		t.hang(fmt.Sprintf("  %12s  %-11s  %-10s  ", group(e.Count), clean(e.Class), clean(e.Code)), 40, e.Example)
	}
}

// cost writes what the database keeps, and what client and servers took.
func (t *text) cost() {
	r := t.r
	footprint, cpu, memory := "", "", ""
	if r.FootprintBytes != nil {
		footprint = bytesText(*r.FootprintBytes) + " in the database"
		if each, n := r.FootprintPerTransfer, r.FootprintTransfers; each != nil && n != nil {
			footprint += fmt.Sprintf(", %.0f bytes a committed %s (%s of them)", *each, writer(r.Workload), group(*n))
		}
	}
	if c := r.Client; c != nil && c.CPUSeconds != nil && r.Drive != nil {
		cpu = fmt.Sprintf("%.2f s in the load phase", *c.CPUSeconds)
		if done := r.Drive.ended(); done > 0 && r.Drive.WarmupSeconds == 0 {
			cpu += fmt.Sprintf(", %.1f µs a transaction", *c.CPUSeconds/float64(done)*1e6)
		}
		if c.Threads != nil {
			cpu += fmt.Sprintf(", on %s", Counted(uint64(math.Round(*c.Threads)), "thread"))
		}
	}
	if c := r.Client; c != nil && c.MaxRSSBytes != nil {
		memory = bytesText(*c.MaxRSSBytes) + " at most"
	}
	var serverCPU, serverMemory []string
	for _, s := range r.Servers {
		if s.CPUSeconds != nil {
			serverCPU = append(serverCPU, fmt.Sprintf("%s %.2f s", clean(s.Name), *s.CPUSeconds))
		}
		if s.MaxRSSBytes != nil {
			serverMemory = append(serverMemory, clean(s.Name)+" "+bytesText(*s.MaxRSSBytes))
		}
	}
	if len(serverMemory) > 0 {
		serverMemory[len(serverMemory)-1] += " at most"
	}
	if footprint+cpu+memory == "" && len(serverCPU)+len(serverMemory) == 0 {
		return
	}
	t.head("Cost")
	t.line("footprint", footprint)
	t.line("client CPU", cpu)
	t.line("client memory", memory)
	t.line("server CPU", strings.Join(serverCPU, " · "))
	t.line("server memory", strings.Join(serverMemory, " · "))
}

func (t *text) files(dir string) {
	t.head("Files")
	t.line("directory", dir)
	if t.r.Command != "" {
		t.out.WriteString("  " + fmt.Sprintf("%-16s", "repeat with") + clean(t.r.Command) + "\n")
	}
	if !t.r.Finished {
		t.line("note", "The run was cut off before its end; what was recorded until then is there.")
	}
}

func seconds(s float64) string {
	switch {
	case s >= 120 && s < 1e9:
		return time.Duration(s * float64(time.Second)).Round(time.Second).String()
	case s > 0 && s < 0.001:
		return "<1 ms"
	case s > 0 && s < 0.9995:
		return fmt.Sprintf("%.0f ms", s*1000)
	}
	return fmt.Sprintf("%.3g s", s)
}
