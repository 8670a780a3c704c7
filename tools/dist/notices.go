package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"stroppy/tools/try"
)

// noticeName is how modules name the files of their licences.
var noticeName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents|uplot\.licen[cs]e)([.-].*)?$`)

// notices are the licences of all that is in a binary of any target, which ask to be passed on
// with it.
func (b *builder) notices() []byte {
	goroot := output(exec.Command("go", "env", "GOROOT"))
	folders := map[string]string{
		"Go " + strings.TrimPrefix(runtime.Version(), "go"): strings.TrimSpace(string(goroot)),
		"uPlot": filepath.Join(b.root, "internal", "report", "assets"),
	}
	for _, name := range allTargets {
		system, arch, _ := strings.Cut(name, "/")
		b.modules(target{system, arch}, folders)
	}
	var text bytes.Buffer
	text.WriteString("Stroppy is under the Apache License 2.0. Its binaries contain what follows, under these licences.\n")
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		writeNotices(&text, name, folders[name])
	}
	return text.Bytes()
}

// modules adds the modules of a binary, each with its folder. Nothing is compiled for it.
func (b *builder) modules(t target, folders map[string]string) {
	command := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/stroppy")
	command.Dir, command.Env = b.root, environment(os.Environ(), t)
	for line := range strings.Lines(string(output(command))) {
		if name, dir, found := strings.Cut(strings.TrimSpace(line), "\t"); found {
			folders[name] = dir
		}
	}
}

// writeNotices writes what the licence files of a folder say. A module without one is an error,
// because then nobody has allowed to pass it on.
func writeNotices(text *bytes.Buffer, name, folder string) {
	found := false
	for _, entry := range try.Must(os.ReadDir(folder)) {
		if entry.IsDir() || !noticeName.MatchString(entry.Name()) {
			continue
		}
		notice := try.Must(os.ReadFile(filepath.Join(folder, entry.Name())))
		found = true
		fmt.Fprintf(text, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 72), name, entry.Name(), bytes.TrimSpace(notice))
	}
	if !found {
		try.Fail("%s has no licence in %s: find out under which it may be passed on before releasing it", name, folder)
	}
}
