package host

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

// MissingError reports that this machine lacks a program that a server needs.
type MissingError struct {
	Program string // the file that was looked for, such as initdb; empty: this build has no such cluster
	Package string // the Debian package, such as postgresql; empty: no package has it
	Hint    string // what to do if neither a package nor PATH helps
}

func (e MissingError) Error() string {
	if e.Program == "" {
		return e.Hint
	}
	return fmt.Sprintf("the program %s is not on this machine: %s", e.Program, e.Advice())
}

// Advice returns how to install the program.
func (e MissingError) Advice() string {
	switch {
	case e.Hint != "":
		return e.Hint
	case e.Package == "":
		return "put " + e.Program + " on PATH; no Debian package has it"
	}
	return "install the Debian package " + e.Package
}

// Find returns the path of a program. It looks on PATH first. Then it takes the newest folder that matches the
// patterns, because distributions keep several versions there. The error is a MissingError that names debianPackage.
func Find(program, debianPackage string, patterns ...string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		if path, err = FindFile(program, debianPackage, patterns...); err == nil {
			path, err = exec.LookPath(path)
		}
	}
	if err != nil {
		return "", MissingError{Program: program, Package: debianPackage}
	}
	return filepath.Abs(path)
}

// FindFile is like Find for a file that is not a program and not on PATH.
func FindFile(name, debianPackage string, patterns ...string) (string, error) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(pattern, name))
		if err != nil {
			return "", fmt.Errorf("look for %s in %s: %w", name, pattern, err)
		}
		if len(found) > 0 {
			return slices.MaxFunc(found, compareVersions), nil
		}
	}
	return "", MissingError{Program: name, Package: debianPackage}
}

// compareVersions orders paths that differ in a number: 9 before 15.
func compareVersions(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return slices.Compare([]byte(a), []byte(b))
}
