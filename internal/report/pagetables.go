package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"stroppy/internal/fault"
)

// latencyTables returns the percentiles, from each of the clocks and by outcome. A live run leaves out values
// that are not known yet.
func latencyTables(d *Drive, live bool) []DataTable {
	if live && d.Latency == nil {
		return []DataTable{}
	}
	columns := []string{"ms", "mean", "50 %", "90 %", "95 %", "99 %", "99.9 %", "max"}
	clocks := NewTable("Latency percentiles", "Committed transactions, in milliseconds.", []int{0}, columns...)
	if ended := !live || d.Service != nil; open(d) && ended {
		clocks.Note += " Since due is measured from the intended start time and includes the wait for a free client; since sent does not."
		clocks.Add(d.Latency.cells("since due", d.committedText)...)
		clocks.Add(d.Service.cells("since sent", d.committedText)...)
	} else if open(d) {
		clocks.Note += " It is measured from the intended start time and includes the wait for a free client."
		clocks.Add(d.Latency.cells("since due", d.committedText)...)
	} else { // work is due when its client is free, so that both clocks begin together
		clocks.Add(d.Latency.cells("latency", d.committedText)...)
		if s := d.silent(); s != nil {
			clocks.Note += " " + Capital(s.text()) + ". No percentile shows that time."
		}
	}
	if text := d.lackingText(); text != "" {
		clocks.Note += " " + lacking + ": " + text
	}
	if open(d) && (!live || d.Pacing != nil) {
		clocks.Add(d.Pacing.cells("pacing error", measurement.text)...)
		clocks.Note += " The pacing error is how long after it was due a transaction was sent although its client was free."
	}
	tables := []DataTable{clocks}
	if len(d.ByKind) > 1 {
		tables = append(tables, d.kindsTable(columns))
	}
	if len(d.Outcomes) > 0 {
		since := ""
		if open(d) {
			since = ", since due"
		}
		by := NewTable("Latency by outcome", "In milliseconds"+since+". Retried transactions committed after a conflict.", []int{0}, columns...)
		for _, name := range outcomeNames(d.Outcomes) {
			by.Add(d.outcomeCells(name)...)
		}
		tables = append(tables, by)
	}
	return tables
}

// outcomeNames lists the names in their usual order, and then any other.
func outcomeNames(by map[string]*Latency) []string {
	usual := []string{"committed", "retried", "rejected", "aborted", "unknown", allDue}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(by)), func(name string) bool { return slices.Contains(usual, name) })
	there := slices.DeleteFunc(usual, func(name string) bool { _, there := by[name]; return !there })
	return append(there, others...)
}

// outcomeTables counts the transactions by outcome, and the errors.
func outcomeTables(d *Drive) []DataTable {
	t := NewTable("", "", []int{0, 3}, "outcome", "transactions", "share", "of these")
	add := func(name string, n uint64, what string) { t.Add(name, Group(n), share(n, d.ended()), what) }
	aborted := fmt.Sprintf("given up; of all, conflicts %s and retries %s", Group(d.Conflicts), Group(d.Retries))
	unknown := "in doubt to the end; reconnects " + Group(d.Reconnects)
	if d.Rebuilt {
		aborted, unknown = "given up; tries beyond the first "+Group(d.Retries), "in doubt to the end"
	}
	add("committed", d.Committed, kinds(d.Kinds))
	add("rejected", d.Rejected.total(), d.Rejected.reasons())
	add("aborted", d.Aborted, aborted)
	add("unknown", d.Unknown, unknown)
	if open(d) {
		t.Add("not sent", Group(d.Backlog+d.Shed), none,
			fmt.Sprintf("waiting at the end %s · shed %s · most waiting %s", Group(d.Backlog), Group(d.Shed), Group(max(d.MaxBacklog, d.Backlog))))
	}
	t.Note = d.countsText()
	tables := []DataTable{t}
	if len(d.Errors) > 0 {
		e := NewTable("Errors that the database reported", "", []int{0, 1, 2, 4}, "class", "code", "doing", "times", "example")
		for _, x := range d.Errors {
			e.Add(x.Class, cmp.Or(x.Code, none), cmp.Or(x.Op, none), Group(x.Count), x.Example)
		}
		tables = append(tables, e)
	}
	return tables
}

func share(n, of uint64) string {
	if of == 0 {
		return none
	}
	percent := 100 * float64(n) / float64(of)
	if n > 0 && percent < 0.01 {
		return "< 0.01 %"
	}
	return fmt.Sprintf("%.2f %%", percent)
}

func kinds(by map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if n := by[name]; n > 0 {
			parts = append(parts, name+" "+Group(n))
		}
	}
	return joined(parts...)
}

// faultTables returns the effect of each fault, which is measured after the load phase.
func faultTables(r *Result, live bool) []DataTable {
	if len(r.Faults) == 0 {
		return []DataTable{}
	}
	t := NewTable("", "Throughput is per second, 99 % is latency in milliseconds; – is where there was nothing to measure. Outage is the longest time without a commit from the injection on, if it is longer than what the database does without a fault. Back is from the injection to the first second after the fall with 90 % of the mean throughput before. Three of the five seconds from it on have as much; single slow seconds are no fall. No commit is the share of the time from the injection to the heal in which nothing committed. The 99 % during leaves most of it out.",
		[]int{1}, "№", "fault", "at", "healed", "outage", "back", "tps before", "during", "after", "99 % before", "during", "no commit", "after", "in doubt")
	for _, f := range r.Faults {
		t.Rows = append(t.Rows, faultRow(f, live))
	}
	return []DataTable{t}
}

func faultRow(f fault.Record, live bool) Row {
	lead := []string{fmt.Sprint(f.Number), f.Fault, atText(f.At.Seconds())}
	below := labelled("", f.Target, "", lateText(&f), "seen: ", f.Verified,
		"not injected: ", f.Error, "not healed: ", f.HealError, "skipped: ", f.Skipped)
	if f.Unknown > 0 {
		below = append(below, doubtText(&f))
	}
	if f.OutageCluster != nil && f.OutageClient != nil {
		until := "took writes"
		if f.OutageNamed {
			until = "took writes and was named as the primary"
		}
		below = append(below, fmt.Sprintf("outage: the cluster's %s until %s %s, then the clients' %s", spanText(*f.OutageCluster), f.OutageLeader, until, spanText(*f.OutageClient)))
	}
	if f.Error != "" && f.Outage == nil || f.Skipped != "" {
		return Row{Cells: append(lead, slices.Repeat([]string{none}, 11)...), Below: below}
	}
	missing := NotKnown
	if live {
		missing = none
	}
	healed, back := missing, missing
	switch {
	case f.Healed != nil:
		healed = atText(f.Healed.Seconds())
	case f.HealError != "":
		healed = "no"
	}
	if f.Outage != nil {
		back = backText(&f)
	}
	if f.Uncompared != "" {
		below = append(below, "back is not known: "+f.Uncompared)
	}
	during := none // a closed loop leaves out of it the time without a commit, so it needs that time beside it
	if f.SilentDuring != nil {
		during = textOr(none, f.P99During, LatencyText)
	}
	return Row{Below: below, Cells: append(lead, healed, textOr(missing, f.Outage, outageText), back,
		textOr(none, f.TPSBefore, RateText), textOr(none, f.TPSDuring, RateText), textOr(none, f.TPSAfter, RateText),
		textOr(none, f.P99Before, LatencyText), during, textOr(none, f.SilentDuring, silentShare), textOr(none, f.P99After, LatencyText), Group(f.Unknown))}
}

func silentShare(share float64) string {
	if share > 0 && share < 0.0005 {
		return "< 0.1 %"
	}
	return percent(share)
}

// doubtText returns the results of look-ups of transactions in doubt during the run.
func doubtText(f *fault.Record) string {
	found := min(f.Unknown, f.FoundCommitted+f.FoundAborted)
	if found == 0 {
		return fmt.Sprintf("in doubt %s: none could be resolved during the run", Group(f.Unknown))
	}
	text := fmt.Sprintf("in doubt %s: look-ups during the run found %s applied and %s not", Group(f.Unknown), Group(f.FoundCommitted), Group(f.FoundAborted))
	if open := f.Unknown - found; open > 0 {
		text += fmt.Sprintf(", %s stayed unknown", Group(open))
	}
	return text
}

func outageText(s fault.Seconds) string {
	if s == 0 {
		return "none"
	}
	return spanText(s)
}

// backText returns how long it took until the throughput was back.
func backText(f *fault.Record) string {
	switch {
	case f.Recovered == nil && f.Uncompared != "":
		return none
	case f.Recovered == nil:
		return "never"
	case *f.Recovered == 0:
		return "no fall"
	}
	return spanText(*f.Recovered)
}

// lateText returns how much later than scheduled a fault was injected, or nothing if it was nearly on time.
func lateText(f *fault.Record) string {
	late := f.At - f.Scheduled
	if f.Scheduled <= 0 || late < lateFrom || f.Skipped != "" { // without a time it was not injected, or the schedule is not known
		return ""
	}
	text := fmt.Sprintf("late: it was due at %s and came %s after that", spanText(f.Scheduled), spanText(late))
	if f.Late != "" {
		text += "; " + f.Late
	}
	return text
}

func spanText(s fault.Seconds) string { return seconds(s.Seconds()) }

func atText(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) + " s" }

// ClientSeconds returns the client's processor time for a transaction. It is not known for a run with a
// warm-up, whose transactions are not counted.
func (r *Result) ClientSeconds() (seconds float64, ok bool) {
	d, c := r.Drive, r.Client
	if d == nil || c == nil || c.CPUSeconds == nil || d.ended() == 0 || d.WarmupSeconds > 0 {
		return 0, false
	}
	return *c.CPUSeconds / float64(d.ended()), true
}

// costTables returns the cost of the load phase for the machines.
func costTables(r *Result) []DataTable {
	client := cmp.Or(r.Client, &Client{})
	t := NewTable("", "Processor time is user and system time during the load phase.", []int{0}, "", "processor time", "largest memory")
	if s, ok := r.ClientSeconds(); ok {
		t.Note += fmt.Sprintf(" The client took %.1f µs a transaction.", s*1e6)
	}
	if client.Threads != nil {
		t.Note += fmt.Sprintf(" It ran on %s.", Counted(uint64(math.Round(*client.Threads)), "thread"))
	}
	servers := r.Servers
	if len(servers) == 0 && !r.Embedded {
		servers = []Server{{Name: "servers"}}
	}
	further := slices.ContainsFunc(servers, func(s Server) bool { // such as of a pod
		return s.ReceivedBytes != nil || s.SentBytes != nil || s.MaxStoredBytes != nil
	})
	if further {
		t.Columns = append(t.Columns, "received", "sent", "most stored")
	}
	for _, s := range append([]Server{{Name: "client (stroppy)", CPUSeconds: client.CPUSeconds, MaxRSSBytes: client.MaxRSSBytes}}, servers...) {
		cells := []string{s.Name, Perhaps(s.CPUSeconds, func(s float64) string { return fmt.Sprintf("%.2f s", s) }), Perhaps(s.MaxRSSBytes, bytesText)}
		if further {
			cells = append(cells, Perhaps(s.ReceivedBytes, bytesText), Perhaps(s.SentBytes, bytesText), Perhaps(s.MaxStoredBytes, bytesText))
		}
		t.Add(cells...)
	}
	return append([]DataTable{t}, hostTables(r)...)
}

// mostEvents bounds the events that are shown; result.json has all.
const mostEvents = 40

// eventTables returns the actions of the cluster itself.
func eventTables(r *Result) []DataTable {
	if len(r.ClusterEvents) == 0 {
		return nil
	}
	t := NewTable("Cluster events", "", []int{1}, "second", "event")
	for i, e := range r.ClusterEvents {
		if i == mostEvents {
			t.Note = fmt.Sprintf("And %d more, in %s.", len(r.ClusterEvents)-i, FileName)
			break
		}
		t.Add(fmt.Sprintf("%.2f", e.AtSeconds), clean(e.Text))
	}
	return []DataTable{t}
}

// studyTables returns the tables of the study that the workload comes from: the workload's own, or the tables
// 1 to 3 of the Stroppy study.
func studyTables(r *Result) []DataTable {
	tables := []DataTable{}
	if !r.Study {
		return ownTables(r)
	}
	vendor, d, load := OrNotKnown(r.Database), cmp.Or(r.Drive, &Drive{}), cmp.Or(r.Load, &Load{})
	if len(r.Faults) > 0 {
		vendor += "+chaos"
	}
	clients, accounts, transfers, latency := NotKnown, NotKnown, NotKnown, d.Latency.cells("", d.committedText)
	if r.Load != nil {
		accounts = millions(load.Accounts)
	}
	if r.Drive != nil {
		clients, transfers = Group(uint64(max(d.Clients, 0))), Perhaps(d.Writes, millions)
	}
	if d.Latency == nil {
		latency[5], latency[7] = NotKnown, NotKnown
	}
	for _, study := range []struct {
		title, note string
		cells       [][2]string // headings and what is below them
	}{
		{"Table 1: a consolidated result", "Transfers are those committed after the warm-up. TPS are all committed transactions a second, inquiries too.",
			[][2]string{{"nodes", nodeCount(r)}, {"clients", clients}, {"accounts, millions", accounts}, {"transfers, millions", transfers}, {"TPS", Perhaps(d.throughput().Mean, RateText)}}},
		{"Table 2: latency", "All committed transactions that were due after the warm-up, inquiries too.",
			[][2]string{{"latency, ms (average)", latency[1]}, {"latency, ms (max)", latency[7]}, {"latency, ms 99 % percentile", latency[5]}}},
		{"Table 3: disk footprint", "Transfers are all that this run committed, in the warm-up too, and no inquiries. The bytes per transfer are the whole footprint, accounts included, divided by them.",
			[][2]string{
				{"accounts, millions", accounts}, {"transfers, millions", Perhaps(r.FootprintTransfers, millions)},
				{"disk footprint at test end, GB", Perhaps(r.FootprintBytes, func(n int64) string { return short4(float64(n) / 1e9) })},
				{"bytes per transfer", Perhaps(r.FootprintPerTransfer, RateText)},
			}},
	} {
		t := NewTable(study.title, study.note, []int{0}, "vendor")
		row := Row{Cells: []string{vendor}}
		for _, c := range study.cells {
			t.Columns, row.Cells = append(t.Columns, c[0]), append(row.Cells, c[1])
		}
		t.Rows = append(t.Rows, row)
		t.Markdown = t.AsMarkdown()
		tables = append(tables, t)
	}
	return tables
}

func ownTables(r *Result) []DataTable {
	tables := []DataTable{}
	for _, own := range r.Tables {
		t := NewTable(own.Title, strings.Join(own.Notes, " "), []int{0}, own.Columns...)
		for _, row := range own.Rows {
			t.Add(row...)
		}
		tables = append(tables, t)
	}
	return tables
}

// nodeCount returns the number of nodes of the cluster that was started for the run.
func nodeCount(r *Result) string {
	cluster, _, _ := strings.Cut(settingOf(r.Scenario, "cluster"), "?")
	_, number, _ := strings.Cut(cluster, ":")
	if n, err := strconv.Atoi(number); err == nil && n > 0 {
		return fmt.Sprint(n)
	}
	return NotKnown
}

func millions(n uint64) string { return short4(float64(n) / 1e6) }

// short4 writes four digits without an exponent.
func short4(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 1000:
		return RateText(x)
	case x < 1e-6:
		return "< 0.000001"
	}
	return strconv.FormatFloat(Rounded(x, 4), 'f', -1, 64)
}

// settingsTables returns a table of names and values.
func settingsTables(title, name, value string, list []Setting) []DataTable {
	t := NewTable(title, "", []int{0, 1}, name, value)
	for _, s := range list {
		t.Add(s.Name, s.Value)
	}
	return []DataTable{t}
}
