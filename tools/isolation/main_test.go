package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/matrix"
	"stroppy/internal/schedule"
)

// TestIsolationPageFollowsTheRecord checks that the page is made from the record, and that the record is unchanged by
// reading.
func TestIsolationPageFollowsTheRecord(t *testing.T) {
	list := readRecord("../../" + recordFile)
	if len(list) == 0 {
		t.Fatal("the record is empty")
	}
	for file, want := range map[string][]byte{recordFile: encode(list), pageFile: page(list)} {
		if got, err := os.ReadFile("../../" + file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not as the record says (%v): go run ./tools/isolation", file, err)
		}
	}
}

// TestRecordAgreesWithHermitage checks that no cell of the page is undecided, and that it agrees with Hermitage
// except for explained differences.
func TestRecordAgreesWithHermitage(t *testing.T) {
	for _, m := range readRecord("../../" + recordFile) {
		for i := range m.Levels {
			l := &m.Levels[i]
			for _, a := range schedule.Anomalies() {
				if l.Anomalies[a.String()].Mark() == "?" {
					t.Errorf("%s %s at %s: %s is not decided", m.Database, m.Version, l.Name, a)
				}
			}
			for _, p := range hermitage() {
				if p.database != m.Database || p.level != l.Name || !comparable(m, l) {
					continue
				}
				for _, d := range p.differences(l) {
					if !p.explained(d) {
						t.Errorf("%s %s at %s: %s", m.Database, m.Version, l.Name, d)
					}
				}
			}
		}
	}
}

// TestMatrixReplacesSameCommand checks that a matrix replaces the matrix of the same command, whatever its seed.
func TestMatrixReplacesSameCommand(t *testing.T) {
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

// TestPageNamesTheFolderOfVersions checks that the page names the folder of fetched programs as their script does. A
// longer run's matrix replaces the matrix of a shorter run.
func TestPageNamesTheFolderOfVersions(t *testing.T) {
	m := func(command string) *matrix.Matrix {
		return &matrix.Matrix{Database: "MySQL", Version: "9", Command: command}
	}
	list := add(nil, m("stroppy isolation --cluster 'mysql:1?memory=on&bin=/var/v/mysql-9.7/bin' --duration 3s --seed 7"))
	list = add(list, m("stroppy isolation --cluster 'mysql:1?memory=on' --duration 3s --seed 7"))
	list = add(list, m("stroppy isolation --cluster 'mysql:1?memory=on&bin=/home/me/v/mysql-9.7/bin' --duration 1m --seed 8"))
	if want := "stroppy isolation --cluster 'mysql:1?memory=on&bin=FOLDER/mysql-9.7/bin' --duration 1m --seed 8"; len(list) != 1 || list[0].Command != want {
		t.Errorf("%d matrices, the first of %s", len(list), list[0].Command)
	}
	for command, want := range map[string]string{
		list[0].Command: " (mysql:1?memory=on)",
		"stroppy isolation --cluster 'mysql:1?bin=FOLDER/mysql-9.7/bin'":                  " (mysql:1)",
		"stroppy isolation --cluster postgres:3 --schedules-only --followers":             " (postgres:3, reads on followers)",
		"stroppy isolation --db 'etcd://127.0.0.1:2379?reads=serializable' --duration 3s": " (reads=serializable)",
		"stroppy isolation --duration 3s":                                                 "",
	} {
		if got := setUp(&matrix.Matrix{Command: command}); got != want {
			t.Errorf("%s: set up as %q; want %q", command, got, want)
		}
	}
}

// explained reports whether a difference has its reason on the page: Hermitage has no reader that
// writes between its reads.
func (p published) explained(d difference) bool {
	return strings.HasPrefix(p.product, "MySQL") && p.level == "repeatable read" && d == difference{schedule.OTV, "✓", "some"}
}
