package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"stroppy/internal/db"
	"stroppy/internal/exit"
	"stroppy/internal/live"
	"stroppy/internal/registry"
	"stroppy/internal/report"
	"stroppy/internal/scenario"
	"stroppy/internal/survey"
)

// probeCommand describes what a run would meet in a database.
func (a *app) probeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "probe --db URL", Short: "Show what a run would meet in a database, in ten seconds",
		Long: "This command asks a database for its version, its isolation, settings of durability, replication,\n" +
			"limits and rights, and measures the round trip and the clock. Problems come first, each with what\n" +
			"to change. It changes nothing. The exit code is 3 if the server cannot be reached.",
		Args: noArguments,
	}
	read := a.settings(c, keys("db", "json", "local-address"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := read(nil)
		switch {
		case err != nil:
			return err
		case config.DB == "":
			return exit.Usagef("`%s` needs a database: name it with --db or STROPPY_DB", c.CommandPath())
		}
		s := a.Begin(live.NewFeed())
		defer s.Stop()
		limited, cancel := context.WithTimeout(s.Context, survey.Limit)
		defer cancel()
		ctx, err := config.ConnectFrom(limited)
		if err != nil {
			return err
		}
		database, err := registry.Look(ctx, config.DB)
		if err != nil {
			return s.Cause(err, "nothing was changed")
		}
		defer database.Close()
		page, err := survey.Take(ctx, database)
		if err != nil {
			return s.Cause(err, "nothing was changed")
		}
		s.Stop()
		if config.JSON {
			return a.printJSON(pageJSON(page, scenario.Redact(config.DB)))
		}
		return writePage(a.Stdout, page, scenario.Redact(config.DB), a.Scrub, a.textOptions("").Width)
	}
	return c
}

// pageJSON returns the form of a page for programs. Times are in milliseconds.
func pageJSON(p *survey.Page, url string) map[string]any {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	form := map[string]any{"schema": 1, "url": url, "database": p.Database, "version": p.Version, "facts": p.Facts}
	if r := p.RoundTrip; r != nil {
		form["round_trip"] = map[string]any{"count": r.Count, "median_ms": ms(r.Median), "p99_ms": ms(r.P99)}
	}
	if c := p.Clock; c != nil {
		form["clock"] = map[string]any{"offset_ms": ms(c.Offset), "uncertainty_ms": ms(c.Uncertainty)}
	}
	return form
}

// writePage prints a page, the problems first.
func writePage(w io.Writer, p *survey.Page, url string, scrub func(string) string, width int) error {
	text := fmt.Sprintf("%s %s at %s\n\n", p.Database, p.Version, url)
	line := func(lead, about string) {
		if about = scrub(about); width > 0 {
			text += report.Hang(lead, about, width)
			return
		}
		text += lead + about + "\n"
	}
	problems, longest := 0, 0
	for _, severity := range []db.Severity{db.Warning, db.Note} {
		for _, f := range p.Facts {
			if f.Level == severity {
				problems++
				line(fmt.Sprintf("%-9s", severity), sentence(&f))
			}
		}
	}
	if problems == 0 {
		text += "No problem was found.\n"
	}
	text += "\n"
	for _, f := range p.Facts {
		if f.Value != "" || f.Advice == "" {
			longest = max(longest, len(f.Name))
		}
	}
	for _, f := range p.Facts {
		switch {
		case f.Value != "":
			line(fmt.Sprintf("%-*s  ", longest, f.Name), f.Value)
		case f.Advice == "":
			line(fmt.Sprintf("%-*s  ", longest, f.Name), "(empty)")
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// sentence returns the text of a problem.
func sentence(f *db.Fact) string {
	switch {
	case f.Name == survey.Problem:
		return f.Advice
	case f.Value == "":
		return f.Name + ": " + f.Advice
	}
	return fmt.Sprintf("%s is %s: %s", f.Name, f.Value, f.Advice)
}
