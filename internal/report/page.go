package report

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

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

//go:embed assets
var assets embed.FS

// The scripts and styles of the page, in order. Those of uPlot are as its
// authors published them; scripts/uplot.sh fetches them.
var (
	styles  = []string{"uPlot.min.css", "page.css"}
	scripts = []string{"uPlot.iife.min.js", "charts.js", "page.js"}
)

// Page writes a run as one HTML file that needs nothing else: it opens without a
// network. It is a function of the input alone.
func Page(w io.Writer, in Input) error {
	data := NewPageData(in)
	encoded, err := json.Marshal(data) // it escapes <, > and &, so nothing in it ends the script
	if err != nil {
		return fmt.Errorf("write the page of the run: %w", err)
	}
	p := &pageWriter{out: bufio.NewWriter(w)}
	if err := p.write(data, in.Result, encoded); err != nil {
		return fmt.Errorf("write the page of the run: %w", err)
	}
	return nil
}

type pageWriter struct{ out *bufio.Writer }

func (p *pageWriter) write(data *PageData, r *Result, encoded []byte) error {
	style, err := inline(styles)
	if err != nil {
		return err
	}
	var tags strings.Builder
	var allowed []string
	licence, err := inline([]string{"uPlot.LICENSE"}) // which asks to be in every copy
	if err != nil {
		return err
	}
	for _, name := range scripts {
		script, err := inline([]string{name})
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, "uPlot") {
			script = "/*\n" + licence + "*/\n" + script
		}
		allowed = append(allowed, source(script))
		tags.WriteString("<script>" + script + "</script>\n")
	}
	var plain bytes.Buffer
	if err := Text(&plain, r, Options{}); err != nil {
		return err
	}
	icons, err := assets.ReadFile("assets/icons.svg")
	if err != nil {
		return err
	}
	for _, part := range []string{
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy(source(style), allowed, data.Live) + "\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
		"<meta name=\"color-scheme\" content=\"light dark\">\n",
		"<meta name=\"referrer\" content=\"no-referrer\">\n",
		"<title>" + html.EscapeString(data.Title) + "</title>\n",
		"<style>" + style + "</style>\n</head>\n<body>\n",
		string(icons),
		"<main id=\"page\"></main>\n",
		"<noscript><main><pre class=\"plain\">" + html.EscapeString(plain.String()) + "</pre></main></noscript>\n",
		"<script type=\"application/json\" id=\"data\">", string(encoded), "</script>\n",
		tags.String(),
		"</body>\n</html>\n",
	} {
		_, _ = p.out.WriteString(part)
	}
	return p.out.Flush() // it tells every earlier error
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
