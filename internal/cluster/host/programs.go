package host

import (
	"fmt"
	"os"
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

// Find is like FindAll for one program.
func Find(program, debianPackage string, patterns ...string) (string, error) {
	found, err := FindAll([]string{program}, debianPackage, patterns...)
	return found[program], err
}

// FindAll returns the paths of programs by their names. It takes the first folder on PATH that has all of them. If there
// is none, it takes the newest folder of each that matches the patterns, because distributions keep several versions
// there. The error is a MissingError that names debianPackage.
func FindAll(programs []string, debianPackage string, patterns ...string) (map[string]string, error) {
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		if found, lacks := ProgramsIn(folder, programs); filepath.IsAbs(folder) && len(lacks) == 0 {
			return found, nil
		}
	}
	found := map[string]string{}
	for _, name := range programs {
		path, err := FindFile(name, debianPackage, patterns...)
		if err == nil {
			path, err = exec.LookPath(path)
		}
		if err != nil {
			return nil, MissingError{Program: name, Package: debianPackage}
		}
		found[name] = path
	}
	return found, nil
}

// ProgramsIn returns the paths of the programs in a folder and the names of the missing ones.
func ProgramsIn(folder string, programs []string) (found map[string]string, lacks []string) {
	found = map[string]string{}
	for _, name := range programs {
		path, err := exec.LookPath(filepath.Join(folder, name))
		if err != nil {
			lacks = append(lacks, name)
			continue
		}
		found[name] = path
	}
	return found, lacks
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
