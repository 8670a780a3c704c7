// Command pictures makes the pictures of the documents anew, from runs of today's code on
// a PostgreSQL that it starts itself:
//
//	go run ./tools/pictures
//
// docs/images/lost-update.svg is the drawing of a violation as the run leaves it.
// docs/images/report.png is the top of report.html of a run with a fail-over, as Chromium
// shows it. A run whose report warns of the client is not drawn: try on a quieter machine.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

const images = "docs/images"

// picture is one run, and how its picture comes from the run's directory.
type picture struct {
	run  []string
	code int // the run's exit code
	draw func(dir, picture string) error
	file string
}

var pictures = []picture{
	{
		run:  []string{"--scenario", "lost-update", "--cluster", "postgres:1", "--clients", "4", "--duration", "5s", "--seed", "7"},
		code: 1, draw: drawing, file: "lost-update.svg",
	},
	{
		run: []string{
			"--cluster", "postgres:2", "--clients", "8", "--rate", "2000", "--seed", "7", "--warmup", "3s", "--duration", "40s",
			"--nemesis", "kill primary at 15s for 8s",
		},
		draw: screenshot, file: "report.png",
	},
}

func main() {
	if err := makeAll(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// makeAll makes the pictures of these names, or all.
func makeAll(names []string) error {
	dir, err := os.MkdirTemp("", "stroppy-pictures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	stroppy := filepath.Join(dir, "stroppy")
	if out, err := exec.Command("go", "build", "-o", stroppy, "./cmd/stroppy").CombinedOutput(); err != nil {
		return fmt.Errorf("build stroppy: %w: %s", err, out)
	}
	for _, p := range pictures {
		if len(names) > 0 && !slices.Contains(names, p.file) {
			continue
		}
		if err := p.make(stroppy, filepath.Join(dir, p.file)); err != nil {
			return fmt.Errorf("make %s: %w", p.file, err)
		}
	}
	return nil
}

func (p *picture) make(stroppy, dir string) error {
	out, err := exec.Command(stroppy, append([]string{"run", "bank", "--out", dir}, p.run...)...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || exitCode(err) != p.code {
		return fmt.Errorf("the run ended with exit code %d, not %d: %s", exitCode(err), p.code, out)
	}
	if err := quiet(out); err != nil {
		return err
	}
	return p.draw(dir, filepath.Join(images, p.file))
}

// exitCode returns the exit code of a command, whose Run returned err.
func exitCode(err error) int {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// warning is a line of the report that measurements must not be read without.
var warning = regexp.MustCompile(`(?m)^ *warning +(.*)$`)

// quiet refuses a report that warns.
func quiet(report []byte) error {
	if found := warning.FindSubmatch(report); found != nil {
		return fmt.Errorf("the report warns: %s: try on a quieter machine", found[1])
	}
	return nil
}

// drawing takes the drawing of a violation.
func drawing(dir, picture string) error {
	data, err := os.ReadFile(filepath.Join(dir, "violations", filepath.Base(picture)))
	if err != nil {
		return err
	}
	return os.WriteFile(picture, data, 0o644)
}

// screenshot takes the top of the page.
func screenshot(dir, picture string) error {
	page, err := filepath.Abs(filepath.Join(dir, "report.html"))
	if err != nil {
		return err
	}
	shot, err := filepath.Abs(picture)
	if err != nil {
		return err
	}
	out, err := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
		"--window-size=1000,1100", "--virtual-time-budget=3000", "--screenshot="+shot, "file://"+page).CombinedOutput()
	if err != nil {
		return fmt.Errorf("show the page in chromium: %w: %s", err, out)
	}
	return nil
}
