package report

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"stroppy/internal/check"
	checktext "stroppy/internal/check/text"
	"stroppy/internal/history"
)

// Anomaly is one way in which the order of transactions went wrong.
type Anomaly struct {
	Name      string   `json:"name"`
	Forbidden string   `json:"forbidden_from"` // the weakest level that forbids it
	Count     int      `json:"count"`
	Detail    string   `json:"detail"` // one instance in a sentence
	Witness   []string `json:"witness"`

	// Edges are the instance as a path. Each begins at the end of the edge before it. The last one leads
	// back to the first transaction, unless a single read shows the anomaly.
	Edges        []Edge `json:"edges,omitempty"`
	Transactions []Span `json:"transactions,omitempty"` // of the instance, by their beginnings
	Drawing      string `json:"drawing,omitempty"`      // the file in the run's directory that shows the instance
}

// Edge is one reason for which a transaction comes before another.
type Edge struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Kind        string `json:"kind"` // ww, wr, rw, process or real time
	Object      string `json:"object,omitempty"`
	FromVersion string `json:"from_version,omitempty"` // what From read or made of the object
	ToVersion   string `json:"to_version,omitempty"`
	Text        string `json:"text"` // the edge in words
}

// Span is a transaction as a drawing shows it. Times are nanoseconds since the start of its
// run.
type Span struct {
	ID      string   `json:"id"`
	Client  uint64   `json:"client"`
	Kind    string   `json:"kind"`
	Outcome string   `json:"outcome"`
	Begin   int64    `json:"begin_ns"`
	End     *int64   `json:"end_ns"` // null: nobody knows it
	Ops     []string `json:"operations"`
}

// DrawingsDir is the folder of the drawings in a run's directory.
const DrawingsDir = "violations"

// Checks converts the results of checks to their form in result.json.
func Checks(results []check.Result, say checktext.Speaker) []Check {
	list, taken := make([]Check, 0, len(results)), map[string]bool{}
	for _, r := range results {
		c := Check{
			Name: r.Name, Status: r.Status.String(), Detail: say.Detail(&r), Required: r.Required,
			Witness: names(r.Witness), Anomalies: []Anomaly{}, Where: append([]history.Ref{}, r.Where...),
		}
		for i := range r.Findings {
			c.add(&r.Findings[i], say, taken)
		}
		list = append(list, c)
	}
	return list
}

func anomalyOf(a checktext.Anomaly) Anomaly {
	one := Anomaly{Name: a.Name, Forbidden: a.Forbidden.String(), Count: a.Count, Detail: a.Detail, Witness: names(a.Witness)}
	for _, e := range a.Cycle {
		one.Edges = append(one.Edges, Edge{
			From: e.From.String(), To: e.To.String(), Kind: e.Kind.String(), Object: e.Object,
			FromVersion: e.FromVersion, ToVersion: e.ToVersion, Text: e.Text,
		})
	}
	for _, s := range a.Spans {
		span := Span{
			ID: s.ID.String(), Client: s.ID.Client(), Kind: s.Kind, Outcome: s.Outcome.String(),
			Begin: s.Begin, Ops: append([]string{}, s.Ops...),
		}
		if s.End != 0 {
			span.End = new(s.End)
		}
		one.Transactions = append(one.Transactions, span)
	}
	return one
}

// drawingName returns the file of an anomaly's drawing. It is the name without parentheses, after the name of
// the check if the file exists.
func drawingName(anomaly, check string, taken map[string]bool) string {
	short, _, _ := strings.Cut(anomaly, "(")
	name := fileName(short)
	if taken[name] {
		name = fileName(check + " " + anomaly)
	}
	taken[name] = true
	return path.Join(DrawingsDir, name+".svg")
}

// fileName returns a name of lower-case letters, digits and hyphens.
func fileName(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, "-")
}

func names(ids []history.ID) []string {
	list := make([]string, 0, len(ids))
	for _, id := range ids {
		list = append(list, id.String())
	}
	return list
}

// BrokenValue is a value that a transaction read and that nobody wrote like this.
type BrokenValue struct {
	Transaction string  `json:"transaction"`
	Object      string  `json:"object"`
	Bytes       int     `json:"bytes"` // its length
	Pieces      []Piece `json:"pieces"`
}

// Piece is a range of bytes of a value, both ends counted from 0 and included. Writer is the transaction that
// wrote them there, "load" for the load, and null for nobody.
type Piece struct {
	From   int     `json:"from"`
	To     int     `json:"to"`
	Writer *string `json:"writer"`
}

// MostPieces bounds the pieces that are kept of one value.
const MostPieces = 64

// loadWriter is the writer of data from before the first transaction.
const loadWriter = "load"

// Pieces converts the first pieces of a value to their form in result.json.
func Pieces(pieces []check.Piece) []Piece {
	var list []Piece
	for _, p := range pieces[:min(len(pieces), MostPieces)] {
		one := Piece{From: p.From, To: p.To}
		switch {
		case p.Known && p.Writer == 0:
			one.Writer = new(loadWriter)
		case p.Known:
			one.Writer = new(p.Writer.String())
		}
		list = append(list, one)
	}
	return list
}

// mostStrips is how many pieces a drawing of a value shows.
const mostStrips = 12

// drawing shows a value as a strip of its pieces, and below it who wrote each.
func (v *BrokenValue) drawing() string {
	const height, swatch = 16, 8
	classes := map[string]string{} // of the writers
	d := &sketch{y: 4}
	at := func(b int) float64 {
		return float64(nodesAt) + float64(textEnd-nodesAt)*float64(b)/float64(max(v.Bytes, 1))
	}
	class := func(p Piece) string {
		if p.Writer == nil {
			return "piece nobodys"
		}
		if classes[*p.Writer] == "" {
			classes[*p.Writer] = fmt.Sprintf("piece writer-%d", len(classes)%5)
		}
		return classes[*p.Writer]
	}
	for _, p := range v.Pieces {
		d.add(`<rect class="%s" fill="#7d8792" x="%.1f" y="%d" width="%.1f" height="%d"/>`, class(p), at(p.From), d.y, max(at(p.To+1)-at(p.From), 1), height)
	}
	d.y += height
	for _, p := range v.Pieces[:min(len(v.Pieces), mostStrips)] {
		d.add(`<rect class="%s" fill="#7d8792" x="%d" y="%d" width="%d" height="%d"/>`, class(p), nodesAt, d.y+drawnLine-swatch, swatch, swatch)
		who := "nobody"
		if p.Writer != nil {
			who = *p.Writer
		}
		d.text("did", fmt.Sprintf("bytes %d to %d: %s", p.From, p.To, who))
	}
	if more := len(v.Pieces) - mostStrips; more > 0 {
		d.text("soft", fmt.Sprintf("and %d more", more))
	}
	d.y += 6
	title := fmt.Sprintf("Bytes that %s read in %s", v.Transaction, v.Object)
	return svgOf(d, title, title, "")
}
