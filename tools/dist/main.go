// Dist builds a release: static binaries in archives, packages for Debian and RPM systems, a container image, bills
// of materials and checksums. The same commit and the same Go give the same bytes. `make dist` runs it;
// docs/releases.md lists the files.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("root", "../..", "the folder of the project")
	out := flag.String("out", "", "the folder to write, which is emptied before (default dist in the project)")
	names := flag.String("targets", strings.Join(allTargets, ","), "the systems and processors to build for")
	flag.Parse()
	err := attempt(func() {
		if flag.NArg() > 0 {
			fail("dist takes flags alone: -root, -out and -targets")
		}
		run(*root, *out, *names, os.Stdout)
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

// run builds a release of the project at root into the folder out.
func run(root, out, names string, log io.Writer) {
	root = must(filepath.Abs(root))
	targets := parseTargets(names)
	if out == "" {
		out = filepath.Join(root, "dist")
	}
	emptied(out)
	scratch := must(os.MkdirTemp("", "stroppy-dist-"))
	defer os.RemoveAll(scratch)
	b := builder{root: root, scratch: scratch, profile: profileOf(root)}
	binaries := b.buildAll(targets, log)
	b.release(binaries).write(out, binaries, log)
}

// emptied makes the folder, without what an earlier release has left. It refuses a folder that
// has something else.
func emptied(out string) {
	check(os.MkdirAll(out, 0o755))
	entries := must(os.ReadDir(out))
	for _, entry := range entries {
		if name := entry.Name(); name != sumsName && !strings.HasPrefix(name, "stroppy-") {
			fail("the folder %s has %s, which no release has made: name an empty folder with -out", out, name)
		}
	}
	for _, entry := range entries {
		check(os.RemoveAll(filepath.Join(out, entry.Name())))
	}
}

// write makes all files of a release from its binaries.
func (r *release) write(out string, binaries []binary, log io.Writer) {
	make := []func(string, binary) string{r.archive, r.bill}
	var linux []binary
	for _, b := range binaries {
		steps := make
		if b.target.os == "linux" {
			linux = append(linux, b)
			steps = append(steps[:len(steps):len(steps)], r.deb, r.rpm)
		}
		for _, step := range steps {
			doing("pack stroppy for "+b.target.String(), func() { report(log, out, step(out, b)) })
		}
	}
	if len(linux) > 0 {
		doing("make the container image", func() { report(log, out, r.image(out, linux)) })
	}
	doing("pack the Helm chart", func() { r.chart(out) })
	report(log, out, chartName)
	doing("write the checksums", func() { writeSums(out) })
	report(log, out, sumsName)
}

func report(log io.Writer, out, name string) {
	if info, err := os.Stat(filepath.Join(out, name)); err == nil {
		fmt.Fprintf(log, "%s  %.1f MB\n", name, float64(info.Size())/1e6)
	}
}

// sumsName is the file of checksums, in the form that `sha256sum -c` reads.
const sumsName = "SHA256SUMS"

// writeSums writes the checksum of every file in the folder, by name.
func writeSums(out string) {
	entries := must(os.ReadDir(out))
	var text strings.Builder
	for _, entry := range entries {
		if entry.Name() == sumsName {
			continue
		}
		fmt.Fprintf(&text, "%x  %s\n", sumOf(filepath.Join(out, entry.Name())), entry.Name())
	}
	check(os.WriteFile(filepath.Join(out, sumsName), []byte(text.String()), 0o644))
}

func sumOf(path string) []byte {
	file := must(os.Open(path))
	defer file.Close()
	hash := sha256.New()
	must(io.Copy(hash, file))
	return hash.Sum(nil)
}

// output runs a program and returns what it prints. The error has what it says of itself.
func output(command *exec.Cmd) []byte {
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		fail("%s: %w: %s", strings.Join(command.Args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		fail("%s: %w", strings.Join(command.Args, " "), err)
	}
	return out
}

// failure is the panic of a step that failed. The program ends with its error.
type failure struct{ error }

// check ends the program with err, unless that is nil.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func fail(format string, args ...any) { check(fmt.Errorf(format, args...)) }

// must returns the value of a call that may have failed.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// attempt calls do and returns the error that ended it, or nil.
func attempt(do func()) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		default:
			panic(f)
		}
	}()
	do()
	return nil
}

// doing calls do and puts what it does before its error.
func doing(what string, do func()) {
	if err := attempt(do); err != nil {
		fail("%s: %w", what, err)
	}
}
