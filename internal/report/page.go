package report

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
)

// OrNotKnown returns the text, or NotKnown if it is empty.
func OrNotKnown(s string) string { return cmp.Or(s, NotKnown) }

// Perhaps writes a number, or NotKnown if there is none.
func Perhaps[N any](x *N, write func(N) string) string { return textOr(NotKnown, x, write) }

// textOr writes a number, or the text missing if there is none.
func textOr[N any](missing string, x *N, write func(N) string) string {
	if x == nil {
		return missing
	}
	return write(*x)
}

// Capital returns a text with a capital first letter.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// Sentence returns a detail with a capital first letter and a period.
func Sentence(detail string) string { return Capital(withPeriod(detail)) }

func withPeriod(s string) string { return strings.TrimSuffix(s, ".") + "." }

// StartText writes a time in RFC 3339 for people.
func StartText(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return OrNotKnown(text)
	}
	return at.UTC().Format("2 January 2006, 15:04:05 UTC")
}

// CombinedVerdict is the worst verdict of several runs, which noun names; judge returns the name and
// the verdict of each. A verdict that is none counts as unknown.
func CombinedVerdict[R any](noun string, runs []R, judge func(R) (name, verdict string)) (verdict, reason string) {
	by := map[string][]string{}
	for _, r := range runs {
		name, verdict := judge(r)
		mark := VerdictMark(verdict)
		by[mark] = append(by[mark], name)
	}
	all := Counted(uint64(len(runs)), noun)
	where := func(names []string) string {
		if len(runs) == 1 {
			return fmt.Sprintf("the %s (%s)", noun, names[0])
		}
		return fmt.Sprintf("%d of %s: %s", len(names), all, some(names, 10))
	}
	if bad := by["invalid"]; len(bad) > 0 {
		return "invalid", fmt.Sprintf("A check found a violation in %s.", where(bad))
	}
	if open := by["unknown"]; len(open) > 0 {
		return "unknown", fmt.Sprintf("A check could not be decided, or none was made, in %s.", where(open))
	}
	if len(runs) == 1 {
		return "valid", "No check found a violation in the " + noun + "."
	}
	return "valid", fmt.Sprintf("No check found a violation in any of %s.", all)
}

// VerdictMark returns the icon of a verdict; a valid one has none.
func VerdictMark(verdict string) string {
	switch verdict {
	case "valid":
		return ""
	case "invalid":
		return "invalid"
	}
	return "unknown"
}

// PageFrom returns the address of a run's page, relative to a page in dir. It is empty if no
// relative path leads there.
func PageFrom(dir, run string) string {
	rel, err := filepath.Rel(dir, run)
	if err != nil {
		return ""
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "./" + strings.Join(parts, "/") + "/" + PageName
}

// PageBeside returns the address of the page of a run in a folder beside a page. It is empty if
// the name does not belong to a folder there.
func PageBeside(folder string) string {
	if folder == "" || folder == "." || !filepath.IsLocal(folder) || filepath.Base(folder) != folder {
		return ""
	}
	return PageFrom("", folder)
}

// SeedText writes a seed; no run has the seed 0.
func SeedText(seed uint64) string {
	if seed == 0 {
		return NotKnown
	}
	return fmt.Sprint(seed)
}

//go:embed assets
var assets embed.FS

// The styles of every page, and the scripts that come before its charts, in order. The files of uPlot are
// unchanged; scripts/uplot.sh fetches them.
var (
	styles = []string{"uPlot.min.css", "palette.css", "page.css", "drawing.css"}
	shared = []string{"uPlot.iife.min.js", "charts.js", "parts.js"}
)

// sheet is the file of a page. Its policy allows its own scripts and style alone, and no network.
// A live page may ask the server that it came from.
var sheet = template.Must(template.New("sheet.html").Funcs(template.FuncMap{"source": source}).ParseFS(assets, "assets/sheet.html"))

// WritePage writes the document as one HTML file that needs nothing else. The file also has the
// document as text, for a browser without scripts. Nothing in the data can end the script that
// holds it.
func (d *Document) WritePage(w io.Writer) error {
	var plain, style strings.Builder
	encoded, err := json.Marshal(d) // it escapes <, > and &
	if err = errors.Join(err, d.WriteText(&plain, Options{Detail: Full})); err != nil {
		return fmt.Errorf("write the page %q: %w", d.Title, err)
	}
	for _, name := range styles {
		style.WriteString(asset(name))
	}
	var scripts []string
	for _, name := range slices.Concat(shared, d.scripts()) {
		script := asset(name)
		if strings.HasPrefix(name, "uPlot") { // every copy must have the license
			script = "/*\n" + asset("uPlot.LICENSE") + "*/\n" + script
		}
		scripts = append(scripts, script)
	}
	err = sheet.Execute(w, struct {
		Title, Style, Icons, Plain, Data string
		Scripts                          []string
		Live                             bool
	}{d.Title, style.String(), asset("icons.svg"), plain.String(), string(encoded), scripts, d.Live})
	if err != nil {
		return fmt.Errorf("write the page %q: %w", d.Title, err)
	}
	return nil
}

// asset returns an embedded file. It panics if the program lacks one that a page needs.
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
