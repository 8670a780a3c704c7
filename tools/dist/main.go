// Dist builds a release: static binaries in archives, packages for Debian and RPM systems, a container image, bills
// of materials and checksums. The same commit and the same Go give the same bytes. `make dist` runs it;
// docs/releases.md lists the files.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"stroppy/tools/try"
)

func main() {
	root := flag.String("root", "../..", "the folder of the project")
	out := flag.String("out", "", "the folder to write, which is emptied before (default dist in the project)")
	names := flag.String("targets", strings.Join(allTargets, ","), "the systems and processors to build for")
	flag.Parse()
	try.Main("dist", 1, func() {
		if flag.NArg() > 0 {
			try.Fail("dist takes flags alone: -root, -out and -targets")
		}
		run(*root, *out, *names, os.Stdout)
	})
}

// run builds a release of the project at root into the folder out.
func run(root, out, names string, log io.Writer) {
	root = try.Must(filepath.Abs(root))
	targets := parseTargets(names)
	if out == "" {
		out = filepath.Join(root, "dist")
	}
	emptied(out)
	scratch := try.Must(os.MkdirTemp("", "stroppy-dist-"))
	defer os.RemoveAll(scratch)
	b := builder{root: root, scratch: scratch, profile: profileOf(root)}
	binaries := b.buildAll(targets, log)
	b.release(binaries).write(out, binaries, log)
}

// emptied makes the folder, without what an earlier release has left. It refuses a folder that
// has something else.
func emptied(out string) {
	try.Check(os.MkdirAll(out, 0o755))
	entries := try.Must(os.ReadDir(out))
	for _, entry := range entries {
		if name := entry.Name(); name != sumsName && !strings.HasPrefix(name, "stroppy-") {
			try.Fail("the folder %s has %s, which no release has made: name an empty folder with -out", out, name)
		}
	}
	for _, entry := range entries {
		try.Check(os.RemoveAll(filepath.Join(out, entry.Name())))
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
	entries := try.Must(os.ReadDir(out))
	var text strings.Builder
	for _, entry := range entries {
		if entry.Name() == sumsName {
			continue
		}
		fmt.Fprintf(&text, "%x  %s\n", sumOf(filepath.Join(out, entry.Name())), entry.Name())
	}
	try.Write(filepath.Join(out, sumsName), []byte(text.String()))
}

func sumOf(path string) []byte {
	file := try.Must(os.Open(path))
	defer file.Close()
	hash := sha256.New()
	try.Must(io.Copy(hash, file))
	return hash.Sum(nil)
}

// doing calls do and puts what it does before its error.
func doing(what string, do func()) {
	if err := try.Attempt(do); err != nil {
		try.Fail("%s: %w", what, err)
	}
}
