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
	add("committed", d.Committed, countedBy(d.Kinds))
	add("rejected", d.Rejected.total(), countedBy(d.Rejected))
	add("aborted", d.Aborted, aborted)
	add("unknown", d.Unknown, unknown)
	if open(d) {
		t.Add("not sent", Group(d.Backlog+d.Shed), none,
			fmt.Sprintf("waiting at the end %s · shed %s · most waiting %s", Group(d.Backlog), Group(d.Shed), Group(max(d.MaxBacklog, d.Backlog))))
	}
	t.Note = d.countsText()
	e := NewTable("Errors that the database reported", "", []int{0, 1, 2, 4}, "class", "code", "doing", "times", "example")
	for _, x := range d.Errors {
		e.Add(x.Class, cmp.Or(x.Code, none), cmp.Or(x.Op, none), Group(x.Count), x.Example)
	}
	return []DataTable{t, e}
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

// countedBy lists the counts above zero by their names.
func countedBy(by map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if n := by[name]; n > 0 && name != Unsplit {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+" "+Group(n))
		}
	}
	return joined(parts...)
}

// faultTable returns the effect of each fault, which is measured after the load phase.
func faultTable(r *Result, live bool) DataTable {
	t := NewTable("", "Throughput is per second, 99 % is latency in milliseconds; – is where there was nothing to measure. Outage is the longest time without a commit from the injection on, if it is longer than what the database does without a fault. Back is from the injection to the first second after the fall with 90 % of the mean throughput before. Three of the five seconds from it on have as much; single slow seconds are no fall. No commit is the share of the time from the injection to the heal in which nothing committed. The 99 % during leaves most of it out.",
		[]int{1}, "№", "fault", "at", "healed", "outage", "back", "tps before", "during", "after", "99 % before", "during", "no commit", "after", "in doubt")
	for _, f := range r.Faults {
		t.Rows = append(t.Rows, faultRow(f, live))
	}
	return t
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
	return []DataTable{t, hostTable(r)}
}

// mostEvents bounds the events that are shown; result.json has all.
const mostEvents = 40

// eventTable returns the actions of the cluster itself.
func eventTable(r *Result) DataTable {
	t := NewTable("Cluster events", "", []int{1}, "second", "event")
	for i, e := range r.ClusterEvents {
		if i == mostEvents {
			t.Note = fmt.Sprintf("And %d more, in %s.", len(r.ClusterEvents)-i, FileName)
			break
		}
		t.Add(fmt.Sprintf("%.2f", e.AtSeconds), clean(e.Text))
	}
	return t
}

// studyTables returns the tables of the study that the workload comes from: the workload's own, or the tables
// 1 to 3 of the Stroppy study.
func studyTables(r *Result) []DataTable {
	if !r.Study {
		return ownTables(r)
	}
	var tables []DataTable
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

func ownTables(r *Result) (tables []DataTable) {
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

// settingsTable returns a table of names and values.
func settingsTable(title, name, value string, list []Setting) DataTable {
	t := NewTable(title, "", []int{0, 1}, name, value)
	for _, s := range list {
		t.Add(s.Name, s.Value)
	}
	return t
}

// faultLines returns faultTable for a text: fewer columns, and the rest below each row.
func faultLines(r *Result, live bool) DataTable {
	t := NewTable("", "", []int{1}, "at", "fault", "outage", "back in", "tps before", "during", "after", "in doubt")
	for _, f := range r.Faults {
		row := faultRow(f, live)
		c := row.Cells
		if c[9] != none || c[10] != none {
			during := c[10] + " during"
			if c[11] != none {
				during += fmt.Sprintf(" (no commit in %s of that time)", c[11])
			}
			row.Below = append(row.Below, fmt.Sprintf("p99 in ms %s before, %s, %s after", c[9], during, c[12]))
		}
		row.Cells = []string{c[2], f.Fault, c[4], c[5], c[6], c[7], c[8], c[13]}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// allDue is the key in Drive.Outcomes of all that was due.
const allDue = "all"

// lacking marks a measurement of the committed transactions that would change if all due transactions had
// been answered.
const lacking = "*"

// measurements returns the measurements, with the share of the transactions that each describes: all of them
// for max. The mean is taken like p99, because few transactions move it little.
func (l *Latency) measurements() []measurement {
	return []measurement{
		{"mean", 0.99, l.Mean}, {"p50", 0.50, l.P50}, {"p90", 0.90, l.P90}, {"p95", 0.95, l.P95},
		{"p99", 0.99, l.P99}, {"p999", 0.999, l.P999}, {"max", 1, l.Max},
	}
}

type measurement struct {
	key   string // in result.json
	share float64
	value float64 // in milliseconds
}

func (m measurement) text() string { return LatencyText(m.value) }

// cells returns a name and the measurements as write formats them.
func (l *Latency) cells(name string, write func(measurement) string) []string {
	if l == nil {
		return []string{name, NotKnown, none, none, none, none, none, none}
	}
	cells := []string{name}
	for _, m := range l.measurements() {
		cells = append(cells, write(m))
	}
	return cells
}

// lost counts the due transactions that neither committed nor were rejected by a rule of the
// workload, and all due transactions.
func (d *Drive) lost() (lost, due uint64) {
	lost = d.Aborted + d.Unknown + d.Backlog + d.Shed
	return lost, lost + d.Committed + d.Rejected.total()
}

// committedText writes a measurement of the committed transactions, and marks one whose
// share leaves no room for what was lost.
func (d *Drive) committedText(m measurement) string {
	if lost, due := d.lost(); d.Outcomes[allDue] != nil && float64(lost) > (1-m.share)*float64(due) {
		return m.text() + lacking
	}
	return m.text()
}

// outcomeCells returns the measurements of one outcome, with a mark at lower bounds.
func (d *Drive) outcomeCells(name string) []string {
	if name != allDue {
		return d.Outcomes[name].cells(name, measurement.text)
	}
	return d.Outcomes[name].cells("all due", func(m measurement) string {
		if slices.Contains(d.DueAtLeast, m.key) {
			return "≥" + m.text()
		}
		return m.text()
	})
}

// lackingText describes the due transactions that the measurements leave out.
func (d *Drive) lackingText() string {
	lost, due := d.lost()
	if lost == 0 || d.Outcomes[allDue] == nil {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		n    uint64
		what string
	}{{d.Aborted, "aborted"}, {d.Unknown, "in doubt"}, {d.Backlog, "not sent before the end"}, {d.Shed, "shed"}} {
		if p.n > 0 {
			parts = append(parts, Group(p.n)+" "+p.what)
		}
	}
	text := fmt.Sprintf("%s of the transactions that were due were not done (%s). The measurements of committed ones leave them out. All due counts them with the time that they had taken or waited",
		strings.Replace(share(lost, due), "< ", "less than ", 1), strings.Join(parts, ", "))
	if len(d.DueAtLeast) > 0 {
		text += ", which for some is a lower bound (≥)"
	}
	return text + "."
}

// kindsTable returns a row for each kind of transaction, the most frequent kind first.
func (d *Drive) kindsTable(columns []string) DataTable {
	t := NewTable("By kind of transaction", "Committed transactions, since due, in milliseconds. The share is of all that committed.",
		[]int{0}, append([]string{"kind", "committed", "share", "per second"}, columns[1:]...)...)
	names := slices.SortedFunc(maps.Keys(d.ByKind), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.Kinds[b], d.Kinds[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		rate := none
		if d.Seconds > 0 {
			rate = RateText(float64(d.Kinds[name]) / d.Seconds)
		}
		t.Add(append([]string{name, Group(d.Kinds[name]), share(d.Kinds[name], d.Committed), rate}, d.ByKind[name].cells("", measurement.text)[1:]...)...)
	}
	return t
}

// Acknowledgements record which server acknowledged writes when, by the server of the client's session. A
// write that a look-up found was acknowledged by none.
type Acknowledgements struct {
	OnePrimary bool           `json:"one_primary"` // only one server may take writes, so an overlap is an error
	Intervals  []Acknowledged `json:"intervals"`   // in order; an interval ends after a second without an acknowledged write
	Overlaps   []Overlap      `json:"overlaps"`    // if only one server may take writes: the times in which two did
}

// Acknowledged is a time in which one server acknowledged writes.
type Acknowledged struct {
	Server          string   `json:"server"` // a node's name, or HOST:PORT
	FromSeconds     float64  `json:"from_s"` // the first acknowledgement; the last is at to_s
	ToSeconds       float64  `json:"to_s"`
	Acknowledged    uint64   `json:"acknowledged"` // writes
	Lost            *uint64  `json:"lost"`         // writes that are not in the end state; null if this is not known
	LostFromSeconds *float64 `json:"lost_from_s"`  // the first acknowledgement of a lost write; null if there is none
}

// Overlap is a time in which two servers took writes, or were ready to. Each acknowledged writes that were
// sent after the other had acknowledged one, or one was the leader while the other acknowledged some. The
// counts cover the whole time.
type Overlap struct {
	FromSeconds float64        `json:"from_s"`
	ToSeconds   float64        `json:"to_s"`
	Servers     []Acknowledged `json:"servers"`
}

// text returns a sentence about an overlap.
func (o *Overlap) text() string {
	var each []string
	took := "took"
	for _, s := range o.Servers {
		if s.Acknowledged == 0 {
			took = "were ready to take"
			each = append(each, s.Server+" had become the leader, and no client wrote to it")
			continue
		}
		each = append(each, s.Server+" acknowledged "+s.countText())
	}
	return fmt.Sprintf("Two nodes %s writes for %s, from %s to %s: %s.",
		took, seconds(o.ToSeconds-o.FromSeconds), atText(o.FromSeconds), atText(o.ToSeconds), strings.Join(each, "; "))
}

// countText counts the acknowledged writes of an overlap, and the lost ones among them.
func (a *Acknowledged) countText() string {
	text := Group(a.Acknowledged) + " then"
	switch {
	case a.Lost == nil:
	case *a.Lost == 0:
		text += ", of which none is lost"
	case *a.Lost == 1:
		text += ", of which 1 is lost"
	default:
		text += fmt.Sprintf(", of which %s are lost", Group(*a.Lost))
	}
	return text
}

// shown reports whether more than one server acknowledged writes, or one while another led.
func (a *Acknowledgements) shown() bool {
	if a == nil || len(a.Intervals) == 0 {
		return false
	}
	other := func(i Acknowledged) bool { return i.Server != a.Intervals[0].Server }
	return len(a.Overlaps) > 0 || slices.ContainsFunc(a.Intervals, other)
}

// mostAcknowledged bounds the rows of the table; result.json has all.
const mostAcknowledged = 40

// acknowledgedTable lists which server acknowledged writes, and when.
func acknowledgedTable(r *Result) DataTable {
	a := r.Acknowledgements
	if !a.shown() {
		return DataTable{}
	}
	t := NewTable("Writes acknowledged by node", "An interval ends where the node acknowledged no write for a second. Lost are those that are not in the end state.",
		[]int{0}, "node", "from", "to", "acknowledged", "lost", "lost from")
	for i, x := range a.Intervals {
		if i == mostAcknowledged {
			t.Note += fmt.Sprintf(" And %d more, in %s.", len(a.Intervals)-i, FileName)
			break
		}
		t.Add(x.Server, atText(x.FromSeconds), atText(x.ToSeconds), Group(x.Acknowledged), Perhaps(x.Lost, Group), textOr(none, x.LostFromSeconds, atText))
	}
	if a.OnePrimary && len(a.Overlaps) == 0 {
		t.Note += " No two nodes took writes at the same time."
	}
	return t
}
