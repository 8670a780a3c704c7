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
	Plain   string   // the same as text, for a browser without scripts
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

// Write writes the file. Nothing in the data can end the script that it stands
// in, and the file's own policy lets nothing run but its scripts.
func (s *Sheet) Write(w io.Writer) error {
	encoded, err := json.Marshal(s.Data) // it escapes <, > and &
	if err != nil {
		return err
	}
	style, err := inline(styles)
	if err != nil {
		return err
	}
	tags, allowed, err := scriptTags(slices.Concat(shared, s.Scripts))
	if err != nil {
		return err
	}
	icons, err := assets.ReadFile("assets/icons.svg")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for _, part := range []string{
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy(source(style), allowed, s.Live) + "\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
		"<meta name=\"color-scheme\" content=\"light dark\">\n",
		"<meta name=\"referrer\" content=\"no-referrer\">\n",
		"<title>" + html.EscapeString(s.Title) + "</title>\n",
		"<style>" + style + "</style>\n</head>\n<body>\n",
		string(icons),
		"<main id=\"page\"></main>\n",
		"<noscript><main><pre class=\"plain\">" + html.EscapeString(s.Plain) + "</pre></main></noscript>\n",
		"<script type=\"application/json\" id=\"data\">", string(encoded), "</script>\n",
		tags,
		"</body>\n</html>\n",
	} {
		_, _ = out.WriteString(part)
	}
	return out.Flush() // it returns every earlier error
}

// scriptTags returns the scripts as elements, and what names each of them in a
// policy.
func scriptTags(names []string) (tags string, allowed []string, err error) {
	licence, err := inline([]string{"uPlot.LICENSE"}) // which asks to be in every copy
	if err != nil {
		return "", nil, err
	}
	var all strings.Builder
	for _, name := range names {
		script, err := inline([]string{name})
		if err != nil {
			return "", nil, err
		}
		if strings.HasPrefix(name, "uPlot") {
			script = "/*\n" + licence + "*/\n" + script
		}
		allowed = append(allowed, source(script))
		all.WriteString("<script>" + script + "</script>\n")
	}
	return all.String(), allowed, nil
}

// inline joins embedded files.
func inline(names []string) (string, error) {
	var all strings.Builder
	for _, name := range names {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return "", err
		}
		all.Write(data)
	}
	return all.String(), nil
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
