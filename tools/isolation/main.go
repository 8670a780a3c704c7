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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"stroppy/internal/matrix"
)

const (
	recordFile = "data/isolation.json"
	pageFile   = "docs/tables/isolation.md"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "isolation:", err)
		os.Exit(1)
	}
}

func write(dirs []string) error {
	list, err := readRecord(recordFile)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, "isolation.json"))
		if err != nil {
			return fmt.Errorf("read what %s holds: %w", dir, err)
		}
		m, err := matrix.Parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		list = add(list, m)
	}
	record, err := encode(list)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(recordFile, record, 0o644), os.WriteFile(pageFile, page(list), 0o644))
}

func readRecord(file string) ([]*matrix.Matrix, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	var list []*matrix.Matrix
	for _, one := range raw {
		m, err := matrix.Parse(one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, m)
	}
	return list, nil
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

func encode(list []*matrix.Matrix) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(list)
	return out.Bytes(), err
}
