package report

import (
	"bytes"
	"fmt"
	"io"

	"stroppy/internal/stats"
)

// PageName is the page's name in the run's directory.
const PageName = "report.html"

// Input is what a page is made from.
type Input struct {
	Result    *Result
	Seconds   []stats.Second
	Resources []Resource
	Live      bool // the run is still going on: the page asks for LiveData each second
}

// LiveData is the address, beside that of a live page, at which it asks for its
// data: PageData as JSON.
const LiveData = "data.json"

// Page writes a run as one HTML file that needs nothing else: it opens without a
// network. It is a function of the input alone.
func Page(w io.Writer, in Input) error {
	data := NewPageData(in)
	var plain bytes.Buffer
	if err := Text(&plain, in.Result, Options{}); err != nil {
		return fmt.Errorf("write the page of the run: %w", err)
	}
	sheet := Sheet{Title: data.Title, Data: data, Plain: plain.String(), Scripts: []string{"page.js"}, Live: data.Live}
	if err := sheet.Write(w); err != nil {
		return fmt.Errorf("write the page of the run: %w", err)
	}
	return nil
}
