// Package scenarios has the files of this folder and of study, so that they are in the binary.
package scenarios

import (
	"embed"
	"io/fs"
	"iter"
	"path"
	"strings"
)

//go:embed *.yaml study/*.yaml
var files embed.FS

// Scenario is a run worth repeating.
type Scenario struct {
	Name     string // of the file, with its folder and without .yaml, such as study/fdb-3
	Verdict  string // that it is to have: valid or invalid
	Database string // that it is written for
	About    string // what it shows, a sentence
	Data     []byte // the file
}

//go:embed study/published/*.yaml
var published embed.FS

// Published returns the files of what the studies published of their runs, by name.
func Published() map[string][]byte {
	all := map[string][]byte{}
	err := fs.WalkDir(published, ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		all[file], err = published.ReadFile(file)
		return err
	})
	if err != nil {
		panic(err) // the folder is part of the program
	}
	return all
}

// All returns the scenarios by name.
func All() (list []Scenario) {
	err := fs.WalkDir(files, ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := files.ReadFile(file)
		list = append(list, parse(strings.TrimSuffix(file, path.Ext(file)), data))
		return err
	})
	if err != nil {
		panic(err) // the folder is part of the program
	}
	return list
}

// parse reads the comment that each file begins with: verdict and database, an empty line, and text. If the scenario is
// for a cluster, the database is the cluster's kind. The resources of each node, which the scenarios of studies have
// there, are left out.
func parse(name string, data []byte) Scenario {
	s := Scenario{Name: name, Data: data}
	var text []string
	for line, begun := range body(data) {
		switch key, value, _ := strings.Cut(line, ": "); {
		case begun:
			text = append(text, line)
		case key == "# verdict":
			s.Verdict = value
		case key == "# database" && value != "cluster", key == "cluster":
			s.Database = strings.Trim(value, "'\"")
			if strings.HasPrefix(name, "study/") {
				s.Database, _, _ = strings.Cut(s.Database, "?")
			}
		}
	}
	s.About, _, _ = strings.Cut(strings.Join(text, " "), ". ")
	s.About = strings.TrimSuffix(s.About, ".")
	return s
}

// body yields the lines of a file. Lines of the text have true, and are without their mark.
func body(data []byte) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		begun := false
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if line == "#" {
				begun = true
				continue
			}
			text, comment := strings.CutPrefix(line, "# ")
			if begun = begun && comment; !begun {
				text = line
			}
			if !yield(text, begun) {
				return
			}
		}
	}
}
