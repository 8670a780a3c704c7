package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"stroppy/internal/check"
)

// clean replaces characters that could move a terminal's cursor.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}

// wrap breaks text into lines of at most so many columns, and at every newline.
// A word that is longer stands alone. Spaces at a line's beginning stay.
func wrap(text string, columns int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		paragraph = clean(paragraph)
		body := strings.TrimLeft(paragraph, " ")
		indent := paragraph[:min(len(paragraph)-len(body), columns/2)]
		line := indent
		for word := range strings.FieldsSeq(body) {
			switch {
			case line == indent:
				line += word
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= columns:
				line += " " + word
			default:
				lines = append(lines, line)
				line = indent + word
			}
		}
		if line != indent || paragraph == "" && text != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// Group writes a number with a comma between thousands.
func Group(n uint64) string { return check.Group(n) }

// DecimalText writes a decimal number, such as 1234.50, with a comma between thousands.
func DecimalText(decimal string) string {
	whole, rest, point := strings.Cut(decimal, ".")
	n, err := strconv.ParseUint(whole, 10, 64)
	switch {
	case err != nil:
		return decimal
	case point:
		rest = "." + rest
	}
	return Group(n) + rest
}

// Counted writes a number of things.
func Counted(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Group(n) + " " + noun + "s"
}

// RateText writes a number a second: whole from 100 on.
func RateText(x float64) string { return check.RateText(x) }

// LatencyText writes milliseconds with what digits they have.
func LatencyText(x float64) string { return check.LatencyText(x) }

// Rounded keeps so many digits of a number.
func Rounded(x float64, digits int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}

func bytesText(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	x, units := float64(n)/1000, []string{"kB", "MB", "GB", "TB"}
	for ; x >= 1000 && len(units) > 1; units = units[1:] {
		x /= 1000
	}
	return fmt.Sprintf("%.3g %s", x, units[0])
}

// some lists the first names and the number of the others.
func some(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// labelled puts each label before the text that follows it, if the text is not empty.
func labelled(pairs ...string) (list []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, pairs[i]+pairs[i+1])
		}
	}
	return list
}

// Texts writes each element of a list.
func Texts[T any](list []T, write func(T) string) []string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = write(x)
	}
	return texts
}

// joined joins the texts that are not empty.
func joined(parts ...string) string { return strings.Join(filled(parts), " · ") }

// listed joins them with commas.
func listed(parts ...string) string { return strings.Join(filled(parts), ", ") }

func filled(parts []string) []string {
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}

// short cuts a text to so many columns.
func short(s string, columns int) string {
	if runes := []rune(s); len(runes) > columns-1 {
		return string(runes[:columns-2]) + "…"
	}
	return s
}

// seconds writes a time in its usual units.
func seconds(s float64) string {
	switch {
	case s > 0 && s < 0.001:
		return "<1 ms"
	case s > 0 && s < 0.9995:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 120 || s >= 1e9:
		return fmt.Sprintf("%.3g s", s)
	}
	whole := int64(math.Round(s))
	h, m, rest := whole/3600, whole/60%60, whole%60
	text := fmt.Sprintf("%d h %d min", h, m)
	if h == 0 {
		text = fmt.Sprintf("%d min %d s", m, rest)
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, " 0 s"), " 0 min")
}
