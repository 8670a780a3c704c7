package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"text/template"
)

// Sheet is one HTML file that needs nothing else: what all pages share, the
// style, the charts and the shapes of their parts, around data that a script of
// the page's own shows.
type Sheet struct {
	Title   string
	Data    any      // becomes JSON, which the script reads
	Scripts []string // the page's own, of the folder assets
	Live    bool     // the script may ask where the page came from for newer data
}

//go:embed assets
var assets embed.FS

// The styles of every page, and the scripts that come before its own, in order.
// Those of uPlot are as its authors published them; scripts/uplot.sh fetches them.
var (
	styles = []string{"uPlot.min.css", "palette.css", "page.css", "drawing.css"}
	shared = []string{"uPlot.iife.min.js", "charts.js", "parts.js"}
)

// sheet is the file. Its policy lets nothing run but its own scripts and style, above all
// no network; a live page may ask where it came from.
var sheet = template.Must(template.New("sheet.html").Funcs(template.FuncMap{"source": source}).ParseFS(assets, "assets/sheet.html"))

// Write writes the file, with the same as text for a browser without scripts. Nothing
// in the data can end the script that it stands in.
func (s *Sheet) Write(w io.Writer, text func(io.Writer) error) error {
	var plain, style strings.Builder
	if err := text(&plain); err != nil {
		return err
	}
	encoded, err := json.Marshal(s.Data) // it escapes <, > and &
	if err != nil {
		return err
	}
	for _, name := range styles {
		style.WriteString(asset(name))
	}
	var scripts []string
	for _, name := range slices.Concat(shared, s.Scripts) {
		script := asset(name)
		if strings.HasPrefix(name, "uPlot") { // its licence asks to be in every copy
			script = "/*\n" + asset("uPlot.LICENSE") + "*/\n" + script
		}
		scripts = append(scripts, script)
	}
	return sheet.Execute(w, struct {
		Title, Style, Icons, Plain, Data string
		Scripts                          []string
		Live                             bool
	}{s.Title, style.String(), asset("icons.svg"), plain.String(), string(encoded), scripts, s.Live})
}

// asset is an embedded file; a page whose own files are not in the program is a mistake
// of the program.
func asset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// source names an inline script or style for a content security policy
// (https://www.w3.org/TR/CSP3/#grammardef-hash-source).
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
