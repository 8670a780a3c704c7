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
	err := errors.New("dist takes flags alone: -root, -out and -targets")
	if flag.NArg() == 0 {
		err = run(*root, *out, *names, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

// run builds a release of the project at root into the folder out.
func run(root, out, names string, log io.Writer) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	targets, err := parseTargets(names)
	if err != nil {
		return err
	}
	if out == "" {
		out = filepath.Join(root, "dist")
	}
	if err := emptied(out); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "stroppy-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b := builder{root: root, scratch: scratch, profile: profileOf(root)}
	binaries, err := b.buildAll(targets, log)
	if err != nil {
		return err
	}
	r, err := b.release(binaries)
	if err != nil {
		return err
	}
	return r.write(out, binaries, log)
}

// emptied makes the folder, without what an earlier release has left. It refuses a folder that
// has something else.
func emptied(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != sumsName && !strings.HasPrefix(name, "stroppy-") {
			return fmt.Errorf("the folder %s has %s, which no release has made: name an empty folder with -out", out, name)
		}
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(out, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// write makes all files of a release from its binaries.
func (r *release) write(out string, binaries []binary, log io.Writer) error {
	make := []func(string, binary) (string, error){r.archive, r.bill}
	var linux []binary
	for _, b := range binaries {
		steps := make
		if b.target.os == "linux" {
			linux = append(linux, b)
			steps = append(steps[:len(steps):len(steps)], r.deb, r.rpm)
		}
		for _, step := range steps {
			name, err := step(out, b)
			if err != nil {
				return fmt.Errorf("pack stroppy for %s: %w", b.target, err)
			}
			report(log, out, name)
		}
	}
	if len(linux) > 0 {
		name, err := r.image(out, linux)
		if err != nil {
			return fmt.Errorf("make the container image: %w", err)
		}
		report(log, out, name)
	}
	if err := r.chart(out); err != nil {
		return fmt.Errorf("pack the Helm chart: %w", err)
	}
	report(log, out, chartName)
	if err := writeSums(out); err != nil {
		return fmt.Errorf("write the checksums: %w", err)
	}
	report(log, out, sumsName)
	return nil
}

func report(log io.Writer, out, name string) {
	if info, err := os.Stat(filepath.Join(out, name)); err == nil {
		fmt.Fprintf(log, "%s  %.1f MB\n", name, float64(info.Size())/1e6)
	}
}

// sumsName is the file of checksums, in the form that `sha256sum -c` reads.
const sumsName = "SHA256SUMS"

// writeSums writes the checksum of every file in the folder, by name.
func writeSums(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		if entry.Name() == sumsName {
			continue
		}
		sum, err := sumOf(filepath.Join(out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sum, entry.Name())
	}
	return os.WriteFile(filepath.Join(out, sumsName), []byte(text.String()), 0o644)
}

func sumOf(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}

// output runs a program and returns what it prints. The error has what it says of itself.
func output(command *exec.Cmd) ([]byte, error) {
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	return out, nil
}
