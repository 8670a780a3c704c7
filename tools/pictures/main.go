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
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"stroppy/tools/try"
)

const images = "docs/images"

// picture is one run, and how its picture comes from the run's directory.
type picture struct {
	run  []string
	code int // the run's exit code
	draw func(dir, picture string)
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

func main() { try.Main("pictures", 1, func() { makeAll(os.Args[1:]) }) }

// makeAll makes the pictures of these names, or all.
func makeAll(names []string) {
	dir := try.Must(os.MkdirTemp("", "stroppy-pictures-"))
	defer os.RemoveAll(dir)
	stroppy := filepath.Join(dir, "stroppy")
	run(exec.Command("go", "build", "-o", stroppy, "./cmd/stroppy"), 0)
	for _, p := range pictures {
		if len(names) == 0 || slices.Contains(names, p.file) {
			p.make(stroppy, filepath.Join(dir, p.file))
		}
	}
}

func (p *picture) make(stroppy, dir string) {
	quiet(run(exec.Command(stroppy, append([]string{"run", "bank", "--out", dir}, p.run...)...), p.code))
	p.draw(dir, filepath.Join(images, p.file))
}

// run runs a command, which must end with the exit code, and returns what it prints.
func run(cmd *exec.Cmd, code int) []byte {
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		try.Fail("%s did not end with exit code %d: %w: %s", cmd, code, err, out)
	}
	return out
}

// warning is a line of the report that measurements must not be read without.
var warning = regexp.MustCompile(`(?m)^ *warning +(.*)$`)

// quiet fails if a report warns.
func quiet(report []byte) {
	if found := warning.FindSubmatch(report); found != nil {
		try.Fail("the report warns: %s: try on a quieter machine", found[1])
	}
}

// drawing takes the drawing of a violation.
func drawing(dir, picture string) {
	try.Write(picture, try.Must(os.ReadFile(filepath.Join(dir, "violations", filepath.Base(picture)))))
}

// screenshot takes the top of the page.
func screenshot(dir, picture string) {
	page, shot := try.Must(filepath.Abs(filepath.Join(dir, "report.html"))), try.Must(filepath.Abs(picture))
	run(exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
		"--window-size=1000,1100", "--virtual-time-budget=3000", "--screenshot="+shot, "file://"+page), 0)
}
