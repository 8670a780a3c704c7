package report

import (
	"fmt"
	"strings"

	"stroppy/internal/stats"
)

// certainty writes the confidence interval of the mean throughput, the steady state,
// and whether the client was the bottleneck.
func (t *text) certainty() {
	d := t.r.Drive
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

// byOutcome are the rows of the latency table beside that of all committed
// transactions: what was refused or tried again is reported by itself.
func (t *text) byOutcome() {
	d := t.r.Drive
	for _, name := range []string{"retried", "rejected", "aborted", "unknown"} {
		if l := d.Outcomes[name]; l != nil {
			t.out.WriteString(row(name, d.outcomeCells(name, l)...))
		}
	}
	if l := d.Outcomes[allDue]; l != nil && d.lackingText() != "" {
		t.out.WriteString(row("all due", d.outcomeCells(allDue, l)...))
	}
}

// servers are the lines of what the database's own processes cost.
func servers(list []Server) []string {
	var cpu, rss []string
	for _, s := range list {
		if s.CPUSeconds != nil {
			cpu = append(cpu, fmt.Sprintf("%s %.2f s", clean(s.Name), *s.CPUSeconds))
		}
		if s.MaxRSSBytes != nil {
			rss = append(rss, clean(s.Name)+" "+bytesText(*s.MaxRSSBytes))
		}
	}
	var lines []string
	if len(cpu) > 0 {
		lines = append(lines, "server CPU", strings.Join(cpu, " · "))
	}
	if len(rss) > 0 {
		lines = append(lines, "server memory", strings.Join(rss, " · ")+" at most")
	}
	return lines
}
