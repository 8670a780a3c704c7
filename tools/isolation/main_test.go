package main

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"stroppy/internal/matrix"
	"stroppy/internal/schedule"
)

// TestPage holds that the page is what the record says, and the record what was read.
func TestPage(t *testing.T) {
	list, err := readRecord("../../" + recordFile)
	if err != nil || len(list) == 0 {
		t.Fatalf("%d in the record: %v", len(list), err)
	}
	for file, want := range map[string]func() ([]byte, error){
		recordFile: func() ([]byte, error) { return encode(list) },
		pageFile:   func() ([]byte, error) { return page(list), nil },
	} {
		got, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if wanted, err := want(); err != nil || !bytes.Equal(got, wanted) {
			t.Errorf("%s is not as the record says (%v): go run ./tools/isolation", file, err)
		}
	}
}

// TestRecord holds what the page says of all: no undecided cell, no claim that was not
// kept, and what Hermitage publishes.
func TestRecord(t *testing.T) {
	list, err := readRecord("../../" + recordFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		for i := range m.Levels {
			l := &m.Levels[i]
			for _, a := range schedule.Anomalies() {
				if l.Anomalies[a.String()].Mark() == "?" {
					t.Errorf("%s %s at %s: %s is not decided", m.Database, m.Version, l.Name, a)
				}
			}
			for _, p := range hermitage() {
				if p.database == m.Database && p.level == l.Name && ordinary(m) {
					if apart := p.differences(l); len(apart) > 0 {
						t.Errorf("%s %s at %s: %q", m.Database, m.Version, l.Name, apart)
					}
				}
			}
		}
	}
}

// TestAdd: a matrix takes the place of the one of the same command, whatever its seed.
func TestAdd(t *testing.T) {
	m := func(database, command string) *matrix.Matrix {
		return &matrix.Matrix{Database: database, Version: "1", Command: command}
	}
	list := add(add(add(nil, m("B", "run --seed 1")), m("A", "run --seed 2")), m("B", "run --seed 3"))
	list = add(list, m("B", "run --db b --seed 3"))
	var got []string
	for _, m := range list {
		got = append(got, m.Database+" "+m.Command)
	}
	if want := []string{"A run --seed 2", "B run --seed 3", "B run --db b --seed 3"}; !slices.Equal(got, want) {
		t.Errorf("the record holds %q", got)
	}
}
