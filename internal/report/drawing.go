package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The measures of a drawing, in pixels at its own size, which fits a phone. All letters have the same width,
// at most 0.61 of their size of 10, so the end of a text is known.
const (
	drawnWidth = 352
	drawnLine  = 14 // from one line of text to the next
	railAt     = 8  // the place of the edge that closes a cycle
	nodesAt    = 24 // the place of the edges from transaction to transaction
	textAt     = 38
	textEnd    = drawnWidth - 4
	barHeight  = 10
	gapWidth   = 12 // of a time in which nothing of all this happened
	leastBar   = 4

	mostDrawn = 12 // transactions
	mostOps   = 4  // lines with the operations of a transaction
)

// DrawingFile returns the drawing of an anomaly's instance as a file with its own colors, light and dark.
func DrawingFile(a *Anomaly) string {
	return drawing(a, asset("palette.css")+asset("drawing.css")) + "\n"
}

// drawing returns an anomaly's instance as SVG, or nothing if its edges or transactions are not known. Each
// transaction of the path is a box on the line of its client, from its beginning to its end. The boxes are in
// the order of the path, from the top. Edges lead down from one to the next, and the last one back to the
// first. All share one axis of time without its idle parts. The style is empty on a page.
func drawing(a *Anomaly, style string) string {
	d := newSketch(a)
	if len(d.rows) == 0 {
		return ""
	}
	for i := range d.rows {
		d.row(i)
		if i > 0 {
			d.arrive(i)
		}
		if i < len(d.rows)-1 {
			d.y += 5
			d.label(i)
			d.y += 5
		}
	}
	d.close()
	return svgOf(d, Capital(a.Name), a.Detail, style)
}

// svgOf returns a finished sketch as SVG, with a title and a description for screen readers.
func svgOf(d *sketch, title, description, style string) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, &quot;Liberation Mono&quot;, &quot;DejaVu Sans Mono&quot;, monospace" font-size="10" fill="none">`,
		drawnWidth, d.y, drawnWidth, d.y)
	out.WriteString("\n<title>" + escaped(title) + "</title>\n<desc>" + escaped(description) + "</desc>\n")
	if style != "" {
		out.WriteString("<style>\n" + style + "</style>\n")
	}
	out.WriteString(d.out.String() + "</svg>")
	return out.String()
}

// sketch is an unfinished drawing.
type sketch struct {
	rows   []*Span
	edges  []Edge // edges[i] leads on from row i
	closed bool   // the last edge leads back to the first row
	more   int    // transactions that are left out
	axis   axis
	out    strings.Builder
	y      int
	bars   []int // the place of the box of each row
}

// newSketch takes the drawn part of an anomaly: the path of edges, as long as each edge begins at the end of
// the one before and its transactions are known.
func newSketch(a *Anomaly) *sketch {
	d := &sketch{y: 4}
	if len(a.Edges) == 0 {
		return d
	}
	spans := map[string]*Span{}
	for i := range a.Transactions {
		spans[a.Transactions[i].ID] = &a.Transactions[i]
	}
	at := a.Edges[0].From
	for _, e := range a.Edges {
		if e.From != at || spans[e.From] == nil || spans[e.To] == nil || d.closed {
			break
		}
		d.rows, d.edges, at = append(d.rows, spans[e.From]), append(d.edges, e), e.To
		d.closed = e.To == a.Edges[0].From
	}
	if len(d.rows) > 0 && !d.closed {
		d.rows = append(d.rows, spans[at])
	}
	if d.more = len(d.rows) - mostDrawn; d.more > 0 {
		d.rows, d.edges = d.rows[:mostDrawn], d.edges[:mostDrawn]
	}
	d.axis = newAxis(d.rows)
	return d
}

// row draws a transaction with its box and its operations.
func (d *sketch) row(i int) {
	s := d.rows[i]
	d.text("name", s.Kind+" "+s.ID+", "+s.Outcome)
	ended := ", end not known"
	if s.End != nil {
		ended = fmt.Sprintf(" to %s s", drawnTime(*s.End))
	}
	d.text("soft", fmt.Sprintf("client %d, %s s%s", s.Client, drawnTime(s.Begin), ended))
	middle := d.y + 2 + barHeight/2
	d.bars = append(d.bars, middle)
	from, to := d.axis.at(s.Begin), float64(textEnd)
	class := "bar open"
	if s.End != nil {
		to, class = max(d.axis.at(*s.End), from+leastBar), "bar"
	}
	if to > textEnd {
		from, to = textEnd-leastBar, textEnd
	}
	d.add(`<path class="line" stroke="#7d8792" d="M%d %dH%d"/>`, nodesAt, middle, textEnd)
	for _, gap := range d.axis.gaps {
		d.add(`<path class="gap" stroke="#7d8792" d="M%.1f %dl4 -8m3 0l-4 8"/>`, gap, middle+4)
	}
	d.add(`<rect class="%s" fill="#7d8792" x="%.1f" y="%d" width="%.1f" height="%d" rx="2"/>`, class, from, middle-barHeight/2, to-from, barHeight)
	d.add(`<circle class="node" fill="#7d8792" cx="%d" cy="%d" r="3.5"/>`, nodesAt, middle)
	d.y = middle + barHeight/2 + 2
	ops := s.Ops
	if len(ops) > mostOps {
		ops = append(slices.Clone(ops[:mostOps-1]), fmt.Sprintf("and %d more", len(ops)-mostOps+1))
	}
	for _, op := range ops {
		d.text("did", op)
	}
}

// arrive draws the edge that leads down to row i from the one before it.
func (d *sketch) arrive(i int) {
	class, end := edgeClass(d.edges[i-1].Kind), d.bars[i]-barHeight/2-1
	d.add(`<path class="edge %s" stroke="#7d8792" d="M%d %dV%d"/>`, class, nodesAt, d.bars[i-1]+5, end-4)
	d.add(`<path class="head %s" fill="#7d8792" d="M%d %dl-4 -7h8z"/>`, class, nodesAt, end)
}

// close draws the edge that leads back to the first transaction, or notes the transactions that are left out.
func (d *sketch) close() {
	if d.more > 0 {
		d.y += 5
		d.text("soft", fmt.Sprintf("and %d more transactions, the last of which leads back to the first", d.more))
	}
	if d.more > 0 || !d.closed {
		d.y += 4
		return
	}
	last := len(d.rows) - 1
	class, first := edgeClass(d.edges[last].Kind), d.bars[0]
	d.y += 5
	from := d.y
	d.label(last)
	turn := (from+d.y)/2 + 1
	d.add(`<path class="edge %s" stroke="#7d8792" d="M%d %dV%dq0 6 -6 6H%dq-6 0 -6 -6V%dq0 -6 6 -6H%d"/>`,
		class, nodesAt, d.bars[last]+5, turn-6, railAt+6, first+6, nodesAt-10)
	d.add(`<path class="head %s" fill="#7d8792" d="M%d %dl-7 -4v8z"/>`, class, nodesAt-4, first)
	d.y += 4
}

// label writes the number and the kind of an edge, its object and its versions.
func (d *sketch) label(i int) {
	e := d.edges[i]
	text := fmt.Sprintf("%d %s", i+1, e.Kind)
	if e.Object != "" {
		text += " " + e.Object
	}
	switch {
	case e.FromVersion != "" && e.ToVersion != "" && e.FromVersion != e.ToVersion:
		text += ": " + e.FromVersion + " → " + e.ToVersion
	case e.FromVersion+e.ToVersion != "":
		text += ": " + cmp.Or(e.FromVersion, e.ToVersion)
	case e.Object == "":
		text += ": " + e.Text
	}
	d.text("edge-label "+edgeClass(e.Kind), text)
}

// text writes lines of text that stay inside the drawing.
func (d *sketch) text(class, text string) {
	const letters = (textEnd-textAt)*10/61 - 1 // what goes on is a letter to the right
	for i, line := range wrap(clean(text), letters) {
		if utf8.RuneCountInString(line) > letters { // one long word
			line = string([]rune(line)[:letters-1]) + "…"
		}
		d.y += drawnLine
		attribute := ""
		if i > 0 {
			attribute = ` dx="6"`
		}
		d.add(`<text class="%s" fill="#7d8792" x="%d" y="%d"%s>%s</text>`, class, textAt, d.y-4, attribute, escaped(line))
	}
}

func (d *sketch) add(format string, args ...any) { fmt.Fprintf(&d.out, format+"\n", args...) }

// edgeClass returns the style of a kind of edges.
func edgeClass(kind string) string { return "kind-" + fileName(kind) }

func drawnTime(ns int64) string { return fmt.Sprintf("%.6f", float64(ns)/1e9) }

func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder takes everything
	return out.String()
}

// axis is the common time of all rows, without the times in which no transaction ran.
type axis struct {
	busy  []interval
	scale float64 // units a nanosecond
	gaps  []float64
	wide  float64 // of a gap
}

type interval struct {
	from, to int64
	x        float64 // its beginning
}

func newAxis(rows []*Span) axis {
	var a axis
	last := int64(0)
	for _, s := range rows {
		last = max(last, s.Begin, *cmp.Or(s.End, &s.Begin))
	}
	var spans []interval
	for _, s := range rows {
		spans = append(spans, interval{from: s.Begin, to: max(*cmp.Or(s.End, &last), s.Begin)})
	}
	slices.SortFunc(spans, func(x, y interval) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to)) })
	for _, b := range spans {
		if n := len(a.busy); n > 0 && b.from <= a.busy[n-1].to {
			a.busy[n-1].to = max(a.busy[n-1].to, b.to)
		} else {
			a.busy = append(a.busy, b)
		}
	}
	sum := int64(0)
	for _, b := range a.busy {
		sum += b.to - b.from
	}
	// Each busy time has some width, however short it is, so that its box is seen.
	const room = textEnd - textAt
	n := float64(len(a.busy))
	a.wide = min(gapWidth, room/(4*n))
	left := room - a.wide*(n-1) - leastBar*n
	if sum > 0 {
		a.scale = left / float64(sum)
	}
	x := float64(textAt)
	for i := range a.busy {
		b := &a.busy[i]
		b.x = x
		x += float64(b.to-b.from)*a.scale + leastBar
		if i < len(a.busy)-1 {
			a.gaps = append(a.gaps, x+a.wide/2-4)
			x += a.wide
		}
	}
	return a
}

// at returns the place of a time.
func (a *axis) at(ns int64) float64 {
	i := len(a.busy) - 1
	for i > 0 && a.busy[i].from > ns {
		i--
	}
	return a.busy[i].x + float64(ns-a.busy[i].from)*a.scale
}
