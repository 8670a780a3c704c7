package report

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"slices"
	"strings"
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
	styles = []string{"uPlot.min.css", "page.css"}
	shared = []string{"uPlot.iife.min.js", "charts.js", "parts.js"}
)

// Write writes the file, with the same as text for a browser without scripts. Nothing
// in the data can end the script that it stands in, and the file's own policy lets
// nothing run but its scripts.
func (s *Sheet) Write(w io.Writer, text func(io.Writer) error) error {
	var plain strings.Builder
	if err := text(&plain); err != nil {
		return err
	}
	encoded, err := json.Marshal(s.Data) // it escapes <, > and &
	if err != nil {
		return err
	}
	var style, tags strings.Builder
	for _, name := range styles {
		style.WriteString(asset(name))
	}
	var allowed []string
	for _, name := range slices.Concat(shared, s.Scripts) {
		script := asset(name)
		if strings.HasPrefix(name, "uPlot") { // its licence asks to be in every copy
			script = "/*\n" + asset("uPlot.LICENSE") + "*/\n" + script
		}
		allowed = append(allowed, source(script))
		tags.WriteString("<script>" + script + "</script>\n")
	}
	out := bufio.NewWriter(w)
	for _, part := range []string{
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy(source(style.String()), allowed, s.Live) + "\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
		"<meta name=\"color-scheme\" content=\"light dark\">\n",
		"<meta name=\"referrer\" content=\"no-referrer\">\n",
		"<title>" + html.EscapeString(s.Title) + "</title>\n",
		"<style>" + style.String() + "</style>\n</head>\n<body>\n",
		asset("icons.svg"),
		"<main id=\"page\"></main>\n",
		"<noscript><main><pre class=\"plain\">" + html.EscapeString(plain.String()) + "</pre></main></noscript>\n",
		"<script type=\"application/json\" id=\"data\">", string(encoded), "</script>\n",
		tags.String(),
		"</body>\n</html>\n",
	} {
		_, _ = out.WriteString(part)
	}
	return out.Flush() // it returns every earlier error
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

// policy allows the page's own scripts and style and nothing else, above all no
// network; a live page may ask where it came from.
func policy(style string, scripts []string, live bool) string {
	s := "default-src 'none'; script-src " + strings.Join(scripts, " ") + "; style-src " + style +
		"; base-uri 'none'; form-action 'none'"
	if live {
		s += "; connect-src 'self'"
	}
	return s
}
