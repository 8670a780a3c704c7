package sweep

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

	"stroppy/internal/report"
)

// PageName is the page's name in the directory of the sweep.
const PageName = "sweep.html"

// Page writes the sweep in the directory dir as one HTML file that needs nothing
// else. again is the command that repeats it, or goes on with one that is not
// finished.
func Page(w io.Writer, b *Book, dir, again string) error {
	data, err := NewPageData(b, again)
	if err != nil {
		return err
	}
	var plain bytes.Buffer
	if err := Text(&plain, b, dir); err != nil {
		return err
	}
	sheet := report.Sheet{Title: data.Title, Data: data, Plain: plain.String(), Scripts: []string{"sweepcharts.js", "sweep.js"}}
	return sheet.Write(w)
}

// SavePage makes the page in the sweep's directory, and puts it in place at once.
// It returns the page's path.
func SavePage(b *Book, dir, again string) (string, error) {
	if err := put(dir, PageName, func(w io.Writer) error { return Page(w, b, dir, again) }); err != nil {
		return "", fmt.Errorf("make the page of the sweep in %s: %w", dir, err)
	}
	return filepath.Join(dir, PageName), nil
}
