// Command isolation writes docs/tables/isolation.md from data/isolation.json, which holds one matrix
// for each database and set-up. It adds the matrices that `stroppy isolation` has left in folders:
//
//	go run ./tools/isolation DIR…
//
// A matrix replaces the one of the same database, version and command. The seed and the duration
// of a command do not count. Without arguments the command writes the page alone.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"stroppy/internal/matrix"
	"stroppy/tools/try"
)

const (
	recordFile = "data/isolation.json"
	pageFile   = "docs/tables/isolation.md"
)

func main() { try.Main("isolation", 1, func() { write(os.Args[1:]) }) }

func write(dirs []string) {
	list := readRecord(recordFile)
	for _, dir := range dirs {
		list = add(list, try.Must(matrix.Parse(try.Must(os.ReadFile(filepath.Join(dir, "isolation.json"))))))
	}
	try.Write(recordFile, encode(list))
	try.Write(pageFile, page(list))
}

func readRecord(file string) (list []*matrix.Matrix) {
	for _, one := range try.JSON[[]json.RawMessage](file) {
		list = append(list, try.Must(matrix.Parse(one)))
	}
	return list
}

// ofOneRun matches what differs between two runs of one command.
var ofOneRun = regexp.MustCompile(` --(seed|duration) \S+`)

// ownFolder matches the folder of programs in the URL of a cluster, whose last part but one is the
// name that scripts/versions.sh gives.
var ownFolder = regexp.MustCompile(`bin=[^ '&]*/([^ '&/]+/bin)`)

// inFolder names that folder as the page does.
func inFolder(command string) string { return ownFolder.ReplaceAllString(command, "bin=FOLDER/$1") }

// add adds a matrix to the record without the facts of one run: folders, and steps, which the command
// shows again.
func add(list []*matrix.Matrix, m *matrix.Matrix) []*matrix.Matrix {
	m.Command = inFolder(m.Command)
	for i := range m.Levels {
		for _, c := range m.Levels[i].Anomalies {
			for v := range c.Variants {
				c.Variants[v].Steps = nil
			}
		}
		for n := range m.Levels[i].Loads {
			load := &m.Levels[i].Loads[n]
			load.Dir, load.Command = "", inFolder(load.Command)
		}
	}
	list = slices.DeleteFunc(list, func(o *matrix.Matrix) bool { return key(o) == key(m) })
	list = append(list, m)
	slices.SortFunc(list, func(a, b *matrix.Matrix) int { return cmp.Compare(key(a), key(b)) })
	return list
}

// key is equal for matrices of which the later one replaces the earlier.
func key(m *matrix.Matrix) string {
	command := withoutPrograms(strings.ReplaceAll(m.Command, "'", ""))
	return m.Database + "\n" + m.Version + "\n" + ofOneRun.ReplaceAllString(command, "")
}

func encode(list []*matrix.Matrix) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	try.Check(encoder.Encode(list))
	return out.Bytes()
}
