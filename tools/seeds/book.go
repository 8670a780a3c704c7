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
	"strconv"
	"strings"

	"stroppy/tools/try"
)

// drawn is the plan of a seed.
type drawn interface {
	arguments(mysql string) []string // of the program
	entry() attempt                  // the fields of the record that the seed decides
	wants() string                   // the verdict that is right
	needsMySQL() bool
}

// book is a kind of plan, with the record of its runs and the page that is made of it. The record also
// has the runs of other days and machines.
type book struct {
	runs         string // the folder of the runs by default
	count        int    // the seeds by default
	record, page string
	draw         func(seed int) drawn
	pageOf       func([]attempt) string
	short        bool // one line of the record per run, and of a right run only result.json stays
}

// command returns the command line of a plan, quoted for a shell.
func command(d drawn, mysql string) string {
	words := []string{"stroppy"}
	for _, word := range d.arguments(mysql) {
		if strings.ContainsAny(word, " ?&*|%/()") {
			word = "'" + word + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// outcome is the result of a run.
type outcome struct {
	Verdict  string // valid, measured, invalid, unknown, or none: the run could not be carried out
	Reason   string
	Exit     int     `json:"-"`
	Busy     float64 `json:"-"` // the highest load of the machine meanwhile
	Database string
	Version  string `json:"database_version"`
	Drive    struct {
		Committed uint64
	}
}

// readOutcome reads a run. It reports false if the run has not ended.
func readOutcome(dir string) (o outcome, ended bool) {
	note, err := os.ReadFile(filepath.Join(dir, "ended.txt"))
	if errors.Is(err, os.ErrNotExist) {
		return o, false
	}
	try.Check(err)
	if o = try.JSON[outcome](filepath.Join(dir, "run", "result.json")); o.Verdict == "" {
		output, _ := os.ReadFile(filepath.Join(dir, "output.txt"))
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		o.Verdict, o.Reason = "none", lines[len(lines)-1]
	}
	try.Must(fmt.Sscan(string(note), &o.Exit, &o.Busy))
	if o.Verdict == "unknown" && o.Exit == 0 { // result.json has no verdict of its own for a measurement
		o.Verdict = "measured"
	}
	return o, true
}

// trim removes the recording of a run, except result.json.
func trim(dir string) {
	run := filepath.Join(dir, "run")
	for _, entry := range try.Must(os.ReadDir(run)) {
		if entry.Name() != "result.json" {
			try.Check(os.RemoveAll(filepath.Join(run, entry.Name())))
		}
	}
}

// earlier are the seeds' folders that were put aside, as in 17.overload.
var earlier = regexp.MustCompile(`^(\d+)(?:\.([a-z-]+))?$`)

// attempt is one run of a seed, with what the seed drew then.
type attempt struct {
	Seed      int      `json:"seed"`
	Aside     string   `json:"aside,omitempty"` // why it does not count: the name that its folder got
	Cluster   string   `json:"cluster"`
	Workload  string   `json:"workload"`
	Faults    []string `json:"faults,omitempty"`
	Settings  string   `json:"settings,omitempty"` // of a run of scripts
	Server    string   `json:"server,omitempty"`
	Verdict   string   `json:"verdict"`
	Committed uint64   `json:"committed"`
	Load      float64  `json:"load"` // the highest of the machine meanwhile
}

func attemptOf(d drawn, o outcome, aside string) attempt {
	a := d.entry()
	a.Aside, a.Verdict, a.Committed, a.Load = aside, o.Verdict, o.Drive.Committed, o.Busy
	if o.Version != "" {
		version, _, _ := strings.Cut(strings.Fields(o.Version)[0], "-")
		a.Server = o.Database + " " + version
	}
	return a
}

// verdictOf returns the verdict for a page.
func verdictOf(a attempt) string {
	if a.Aside == "" {
		return a.Verdict
	}
	return a.Verdict + " (does not count: " + strings.ReplaceAll(a.Aside, "-", " ") + ")"
}

// attemptsIn returns the runs in a folder that have ended.
func (b *book) attemptsIn(runs string) (list []attempt) {
	for _, entry := range try.Must(os.ReadDir(runs)) {
		name := earlier.FindStringSubmatch(entry.Name())
		if name == nil {
			continue
		}
		if o, ended := readOutcome(filepath.Join(runs, entry.Name())); ended {
			list = append(list, attemptOf(b.draw(try.Must(strconv.Atoi(name[1]))), o, name[2]))
		}
	}
	return list
}

// merged adds later runs to the record, where they replace runs of the same seed.
func merged(record, later []attempt) []attempt {
	list := slices.DeleteFunc(slices.Clone(record), func(old attempt) bool {
		return slices.ContainsFunc(later, func(a attempt) bool { return a.Seed == old.Seed && a.Aside == old.Aside })
	})
	list = append(list, later...)
	slices.SortStableFunc(list, func(a, b attempt) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), strings.Compare(b.Aside, a.Aside)) // an earlier attempt first
	})
	return list
}

// write adds all runs in the folder to the record, and writes the page of it.
func (b *book) write(runs string) {
	list := merged(try.JSON[[]attempt](b.record), b.attemptsIn(runs))
	if b.short {
		try.Write(b.record, lines(list))
	} else {
		try.WriteJSON(b.record, list)
	}
	try.Write(b.page, []byte(b.pageOf(list)))
}

// lines returns a record in JSON with a line for each run.
func lines(list []attempt) []byte {
	var each [][]byte
	for _, a := range list {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		try.Check(encoder.Encode(a))
		each = append(each, bytes.TrimSpace(text.Bytes()))
	}
	return fmt.Appendf(nil, "[\n%s\n]\n", bytes.Join(each, []byte(",\n")))
}
