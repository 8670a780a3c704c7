package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"stroppy/internal/check"
	"stroppy/internal/check/fact"
	"stroppy/internal/history"
)

// instance is an anomaly of n transactions that follow each other, with edges of the kinds.
func instance(name string, kinds ...string) *Anomaly {
	a := &Anomaly{Name: name, Forbidden: "serializable", Count: 2, Detail: "Two transfers both read version 0 of an account."}
	for i, kind := range kinds {
		id := func(n int) string { return fmt.Sprintf("1-%d-%d", n%3, 100+n) }
		e := Edge{From: id(i), To: id((i + 1) % len(kinds)), Kind: kind, Text: fmt.Sprintf("transfer %s comes before another", id(i))}
		if kind != "real time" {
			e.Object, e.FromVersion, e.ToVersion = fmt.Sprintf("account BBGFXX2Z/3106652407%d (account 733%d)", i, i), "version 3", "version 4"
		}
		a.Edges = append(a.Edges, e)
		a.Transactions = append(a.Transactions, Span{
			ID: id(i), Client: uint64(i % 3), Kind: "transfer", Outcome: "committed",
			Begin: int64(i) * 7_000_000, End: new(int64(i)*7_000_000 + 9_500_000),
			Ops: []string{fmt.Sprintf("read version %d, 1638.60; made version %d, 1835.31", i, i+1)},
		})
	}
	return a
}

// instances returns the tested drawings by the names of their files.
func instances() map[string]*Anomaly {
	stale := instance("stale read", "rw", "real time")
	stale.Transactions[0].Begin, stale.Transactions[0].End = 3_000_000_000, nil
	stale.Transactions[0].Outcome = "unknown"
	dirty := instance("dirty read (G1a)", "wr")
	dirty.Edges[0].To = "1-1-7"
	dirty.Transactions = append(dirty.Transactions, Span{ID: "1-1-7", Client: 1, Kind: "inquiry", Outcome: "committed", End: new(int64(0)), Ops: []string{}})
	hostile := instance("<script>", "ww", "wr")
	hostile.Edges[0].Object = `</text><script>alert("&")</script>` + strings.Repeat("Q", 90)
	hostile.Detail = "]]> & \x01"
	hostile.Transactions[1].Ops = []string{"a", "b \x00", strings.Repeat("long ", 40), "d", "e", "f"}
	hostile.Transactions[1].Kind = strings.Repeat("two-account-transfer-", 4)
	hostile.Transactions[1].End = new(int64(-5))
	kinds := []string{"rw"}
	for range 14 {
		kinds = append(kinds, "wr", "ww")
	}
	return map[string]*Anomaly{
		"lost-update": instance("lost update (P4)", "rw", "rw"), "long-fork": instance("long fork", "rw", "wr", "rw", "wr"),
		"stale-read": stale, "dirty-read": dirty, "hostile": hostile, "long": instance("read skew (G-single)", kinds...),
	}
}

// TestDrawingsEqualGoldenFiles compares the drawings with their golden files, and holds that each is XML
// whose text is inside.
func TestDrawingsEqualGoldenFiles(t *testing.T) {
	for name, a := range instances() {
		got := DrawingFile(a)
		if got != DrawingFile(a) {
			t.Errorf("%s is drawn in two ways", name)
		}
		file := filepath.Join("testdata", name+".drawing.svg")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not as %s: run go test with -update here and look at the difference", name, file)
		}
		elements := elementsOf(t, name, got)
		if elements["script"] > 0 || elements["rect"] == 0 || elements["rect"] > mostDrawn {
			t.Errorf("%s has the elements %v", name, elements)
		}
		if strings.Contains(drawing(a, ""), "<style") {
			t.Errorf("%s has a style in a page, which its policy forbids", name)
		}
	}
}

func elementsOf(t *testing.T, name, text string) map[string]int {
	t.Helper()
	elements, decoder := map[string]int{}, xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return elements
		}
		if err != nil {
			t.Fatalf("%s is no XML: %v", name, err)
		}
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
}

// TestDrawingOfWhatIsNotKnown checks that nothing is drawn without transactions, and that a
// path ends before one that is missing.
func TestDrawingOfWhatIsNotKnown(t *testing.T) {
	if got := drawing(&Anomaly{Name: "x"}, ""); got != "" {
		t.Errorf("without edges there is a drawing: %s", got)
	}
	a := instance("read skew", "rw", "wr", "wr")
	a.Transactions = a.Transactions[:2]
	if got := elementsOf(t, "cut", drawing(a, "")); got["rect"] != 2 {
		t.Errorf("of three transactions two are known, and the elements are %v", got)
	}
	a.Transactions = nil
	if got := drawing(a, ""); got != "" {
		t.Errorf("without transactions there is a drawing: %s", got)
	}
}

// overlapping are the texts of a drawing that touch another or reach beyond its edge, and
// the letters' height in pixels.
const overlapping = `(() => {
	const svg = document.documentElement.localName === "svg" ? document.documentElement : document.querySelector("svg.drawing");
	const wide = svg.viewBox.baseVal.width, high = svg.viewBox.baseVal.height, boxes = [], wrong = [];
	for (const text of svg.querySelectorAll("text")) boxes.push({ text: text.textContent, b: text.getBBox() });
	for (const bar of svg.querySelectorAll("rect")) boxes.push({ text: "a box", b: bar.getBBox() });
	for (const { text, b } of boxes) if (b.x < 0 || b.y < 0 || b.x + b.width > wide || b.y + b.height > high) wrong.push(text + " reaches beyond the edge");
	for (let i = 0; i < boxes.length; i++) for (let j = 0; j < i; j++) {
		const a = boxes[i].b, b = boxes[j].b, slack = 1;
		if (a.x < b.x + b.width && b.x < a.x + a.width && a.y + slack < b.y + b.height - slack && b.y + slack < a.y + a.height - slack) wrong.push(boxes[i].text + " touches " + boxes[j].text);
	}
	return { wrong, letters: 10 * svg.getBoundingClientRect().width / wide, ink: getComputedStyle(svg.querySelector("text")).fill };
})()`

// TestDrawingsInABrowser opens the files as they are, in light and dark and at the width of
// a phone, and holds that no text touches another.
func TestDrawingsInABrowser(t *testing.T) {
	b := OpenBrowser(t)
	for name, a := range instances() {
		path := filepath.Join(t.TempDir(), name+".svg")
		if err := os.WriteFile(path, []byte(DrawingFile(a)), 0o644); err != nil {
			t.Fatal(err)
		}
		inks := map[string]string{}
		for _, scheme := range []string{"light", "dark"} {
			b.Do(t, chromedp.EmulateViewport(360, 640), Scheme(scheme), chromedp.Navigate("file://"+path), Settle())
			seen := Ask(t, b, chromedp.Evaluate[struct {
				Wrong   []string `json:"wrong"`
				Letters float64  `json:"letters"`
				Ink     string   `json:"ink"`
			}](overlapping))
			if len(seen.Wrong) > 0 || seen.Letters < 9 {
				t.Errorf("%s, %s: %.1f pixels high, %v", name, scheme, seen.Letters, seen.Wrong)
			}
			inks[scheme] = seen.Ink
			b.Picture(t, "drawing-"+name+"-"+scheme)
		}
		b.Quiet(t, name)
		if inks["light"] == inks["dark"] {
			t.Errorf("%s: the text is %s in light and dark", name, inks["dark"])
		}
	}
}

// TestDrawingMarksValuesThatNobodyWrote checks that a value that nobody wrote is drawn where the sentence about it
// stands.
func TestDrawingMarksValuesThatNobodyWrote(t *testing.T) {
	one, other := history.NewID(1, 4, 43), history.NewID(1, 15, 109)
	read := history.NewID(1, 8, 158)
	all := []check.Piece{
		{From: 0, To: 62, Known: true, Writer: one}, {From: 63, To: 767, Known: true, Writer: other},
		{From: 768, To: 1021, Known: true}, {From: 1022, To: 1023},
	}
	list := Checks([]check.Result{{
		Name: "values", Status: check.Invalid, Required: true,
		Findings: []check.Finding{{
			Check: "values", Count: 1, Transactions: []history.ID{read},
			Instances: []fact.Fact{fact.RegisterDamagedValue{Reader: fact.Member{ID: read}, Object: "kv/a<b", Bytes: 1024, Pieces: all}},
			Broken:    []check.BrokenValue{{Transaction: read, Object: "kv/a<b", Bytes: 1024, Pieces: all}},
		}},
	}}, speaker)
	pieces := list[0].Broken[0].Pieces
	if *pieces[1].Writer != "1-15-109" || *pieces[2].Writer != "load" || pieces[3].Writer != nil {
		t.Errorf("%+v", pieces)
	}
	findings := pageCheck(list[0]).Findings
	for _, want := range []string{"bytes 0 to 62: 1-4-43", "bytes 768 to 1021: load", "bytes 1022 to 1023: nobody", "kv/a&lt;b"} {
		if len(findings) != 1 || !strings.Contains(findings[0].Drawing, want) {
			t.Errorf("%q is not drawn: %+v", want, findings)
		}
	}
}
