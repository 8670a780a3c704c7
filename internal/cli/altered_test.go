package cli_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/history"
	"stroppy/internal/report"
	"stroppy/internal/workload"
	"stroppy/internal/workload/appends"
	"stroppy/internal/workload/bank"
	"stroppy/internal/workload/events"
	"stroppy/internal/workload/kv"
	"stroppy/internal/workload/tpcb"
)

// blocksOf splits a file of blocks into its parts, which docs/reference/history-format.md describes.
type blocksOf struct {
	preamble []byte
	blocks   [][]byte
	footer   []byte // nil: there is none
}

func takeApart(t *testing.T, data []byte) (f blocksOf) {
	t.Helper()
	at := 24 + int(binary.LittleEndian.Uint32(data[16:]))
	f.preamble = data[:at:at]
	for string(data[at:at+4]) == "blck" {
		end := at + 24 + int(binary.LittleEndian.Uint32(data[at+8:]))
		f.blocks, at = append(f.blocks, data[at:end:end]), end
	}
	if f.footer = data[at:]; len(f.footer) != 28 {
		t.Fatalf("there are %d bytes behind the blocks", len(f.footer))
	}
	return f
}

func (f blocksOf) bytes() []byte {
	return slices.Concat(f.preamble, slices.Concat(f.blocks...), f.footer)
}

// sealed returns the file with new checksums and counts.
func (f blocksOf) sealed() []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	running := crc32.Update(0, table, f.preamble[20:24])
	records := uint64(0)
	for i, block := range f.blocks {
		block = bytes.Clone(block)
		binary.LittleEndian.PutUint32(block[16:], crc32.Checksum(block[24:], table))
		binary.LittleEndian.PutUint32(block[20:], crc32.Checksum(block[:20], table))
		running = crc32.Update(running, table, block[20:24])
		records += uint64(binary.LittleEndian.Uint32(block[12:]))
		f.blocks[i] = block
	}
	f.footer = binary.LittleEndian.AppendUint64([]byte("end!"), uint64(len(f.blocks)))
	f.footer = binary.LittleEndian.AppendUint64(f.footer, records)
	f.footer = binary.LittleEndian.AppendUint32(f.footer, running)
	f.footer = binary.LittleEndian.AppendUint32(f.footer, crc32.Checksum(f.footer, table))
	return f.bytes()
}

// alteration returns altered bytes of a file, or nil if the file must be deleted.
type alteration struct {
	name string
	of   func(t *testing.T, r *rand.Rand, data, other []byte) []byte
}

// anyFile returns alterations for every file. other is the same file of another run.
var anyFile = []alteration{
	{"flipped bit", func(_ *testing.T, r *rand.Rand, data, _ []byte) []byte {
		data = append(bytes.Clone(data), ' ')[:len(data)]
		if len(data) > 0 {
			data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		}
		return data
	}},
	{"truncated", func(_ *testing.T, r *rand.Rand, data, _ []byte) []byte { return data[:r.IntN(len(data)+1)] }},
	{"added to", func(_ *testing.T, r *rand.Rand, data, _ []byte) []byte {
		more := make([]byte, 1+r.IntN(40))
		for i := range more {
			more[i] = byte(r.Uint32())
		}
		return slices.Concat(data, more, make([]byte, r.IntN(2)*r.IntN(9000)))
	}},
	{"emptied", func(*testing.T, *rand.Rand, []byte, []byte) []byte { return []byte{} }},
	{"of another run", func(_ *testing.T, _ *rand.Rand, _, other []byte) []byte { return other }},
	{"removed", func(*testing.T, *rand.Rand, []byte, []byte) []byte { return nil }},
}

// ofBlocks returns an alteration of the blocks of a file, with the old footer or a valid one.
func ofBlocks(name string, seal bool, change func(r *rand.Rand, list [][]byte, i int) [][]byte) alteration {
	if seal {
		name += ", sealed"
	}
	return alteration{name, func(t *testing.T, r *rand.Rand, data, _ []byte) []byte {
		f := takeApart(t, data)
		if len(f.blocks) == 0 {
			return data
		}
		if f.blocks = change(r, slices.Clone(f.blocks), r.IntN(len(f.blocks))); seal {
			return f.sealed()
		}
		return f.bytes()
	}}
}

// blockFile returns alterations of the blocks of a file.
func blockFile() (list []alteration) {
	for _, seal := range []bool{false, true} {
		list = append(list,
			ofBlocks("block twice", seal, func(_ *rand.Rand, list [][]byte, i int) [][]byte { return slices.Insert(list, i, list[i]) }),
			ofBlocks("block removed", seal, func(_ *rand.Rand, list [][]byte, i int) [][]byte { return slices.Delete(list, i, i+1) }),
			ofBlocks("last blocks removed", seal, func(_ *rand.Rand, list [][]byte, i int) [][]byte { return list[:i] }),
			ofBlocks("blocks exchanged", seal, func(r *rand.Rand, list [][]byte, i int) [][]byte {
				j := r.IntN(len(list))
				list[i], list[j] = list[j], list[i]
				return list
			}),
			ofBlocks("payload altered", seal, func(r *rand.Rand, list [][]byte, i int) [][]byte {
				list[i] = bytes.Clone(list[i])
				if len(list[i]) > 24 {
					list[i][24+r.IntN(len(list[i])-24)] ^= 1 << r.IntN(8)
				}
				return list
			}))
	}
	return list
}

// subject is a recorded run to be altered.
type subject struct {
	dir, other string // other is of another run of the workload
	code       int
	byHistory  []string // the checks that the history alone shows to be violated
}

// verdictOf checks a directory and returns its exit code, the checks that are invalid and the
// last line on standard error.
func verdictOf(t *testing.T, dir string) (code int, invalid []string, last string) {
	t.Helper()
	code, stdout, stderr := call(t, "check", dir, "--json")
	if r, err := report.Parse([]byte(stdout)); err == nil {
		for _, c := range r.Checks {
			if c.Status == "invalid" {
				invalid = append(invalid, c.Name)
			}
		}
	}
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	return code, invalid, lines[len(lines)-1]
}

func newSubject(t *testing.T, args ...string) subject {
	t.Helper()
	s := subject{dir: filepath.Join(t.TempDir(), "run"), other: filepath.Join(t.TempDir(), "other")}
	common := []string{"--count", "600", "--clients", "6"}
	s.code, _, _ = call(t, slices.Concat([]string{"run"}, args, common, []string{"--seed", "5", "--out", s.dir})...)
	call(t, slices.Concat([]string{"run"}, args, common, []string{"--seed", "5", "--out", s.other})...)
	bare := filepath.Join(t.TempDir(), "bare")
	copyDir(t, s.dir, bare)
	for _, name := range []string{"end-objects.bin", "end-ledger.bin"} {
		if err := os.Remove(filepath.Join(bare, "history", name)); err != nil {
			t.Fatal(err)
		}
	}
	_, s.byHistory, _ = verdictOf(t, bare)
	return s
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestAlteredRecordingIsNeverBelieved checks that an altered, exchanged or removed file of a recording never makes a
// healthy database invalid, and never makes anything valid. The reason names the file. A violation is still reported
// if the intact files show it.
func TestAlteredRecordingIsNeverBelieved(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 2
	}
	healthy, often := "memory:?unknown=0.02&abort=0.02", "memory:?rate=0.05&mutant="
	for _, args := range [][]string{
		{"bank", "--accounts", "100", "--audits", "20", "--db", healthy},
		{"bank", "--accounts", "100", "--update", "rmw", "--db", often + "lost-update"},
		{"tpcb", "--scale", "1", "--ratio", "2:5:50", "--versions", "--db", healthy},
		{"tpcb", "--scale", "1", "--ratio", "2:5:50", "--db", often + "lost-ack"},
		{"kv", "--preset", "ycsb-a", "--records", "100", "--db", healthy},
		{"kv", "--preset", "ycsb-a", "--records", "100", "--db", often + "lost-ack"},
		{"events", "--batch", "3", "--db", healthy},
		{"events", "--db", often + "lost-ack"},
		{"append", "--db", healthy},
		{"append", "--db", often + "lost-update"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			s := newSubject(t, args...)
			if want := strings.Contains(args[len(args)-1], "mutant"); s.code != 0 && !want || s.code != 1 && want {
				t.Fatalf("the run ended with %d", s.code)
			}
			r := rand.New(rand.NewPCG(1, uint64(len(strings.Join(args, " ")))))
			for i, name := range []string{"transactions.bin", "end-objects.bin", "end-ledger.bin", "manifest.json"} {
				list := anyFile
				if i < 3 {
					list = slices.Concat(anyFile, blockFile())
				}
				for round := range rounds {
					how := list[(round+i*rounds)%len(list)]
					if testing.Short() {
						how = list[r.IntN(len(list))]
					}
					s.alter(t, r, "history/"+name, how)
				}
			}
		})
	}
}

// alter alters one file in a copy of the run and checks the verdict.
func (s *subject) alter(t *testing.T, r *rand.Rand, name string, how alteration) {
	t.Helper()
	data, other := read(t, filepath.Join(s.dir, name)), read(t, filepath.Join(s.other, name))
	altered := how.of(t, r, []byte(data), []byte(other))
	if altered != nil && string(altered) == data {
		return
	}
	dir := filepath.Join(t.TempDir(), "run")
	copyDir(t, s.dir, dir)
	err := os.Remove(filepath.Join(dir, name))
	if altered != nil {
		err = os.WriteFile(filepath.Join(dir, name), altered, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	code, invalid, last := verdictOf(t, dir)
	what := fmt.Sprintf("%s %s: exit code %d: %s", filepath.Base(name), how.name, code, last)
	switch code {
	case 3, 4:
		named := strings.Contains(last, filepath.Base(name))
		if how.name == "of another run" { // which of two is the other one's nobody knows
			named = strings.Contains(last, "put the files of one run together")
		}
		if !named {
			t.Errorf("%s does not name the file", what)
		}
	case 1:
		if s.code != 1 || !strings.Contains(name, "/end-") || slices.ContainsFunc(invalid, func(c string) bool { return !slices.Contains(s.byHistory, c) }) {
			t.Errorf("%s; invalid are %v, and by the history %v", what, invalid, s.byHistory)
		}
	default:
		t.Error(what)
	}
}

// TestAlteredFilesBesideARecordingChangeNoVerdict checks that an altered file beside the recording ends the check or
// leaves it open.
func TestAlteredFilesBesideARecordingChangeNoVerdict(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() {
		rounds = 1
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, mutant := range []string{"", "&mutant=lost-update&rate=0.05"} {
		s := newSubject(t, "bank", "--accounts", "100", "--update", "rmw", "--db", "memory:?unknown=0.01"+mutant)
		entries, err := fs.Glob(os.DirFS(s.dir), "*.*")
		if err != nil || len(entries) < 5 {
			t.Fatalf("%v, %v", entries, err)
		}
		for _, name := range entries {
			if name == "log.txt" || name == "report.html" { // which no command reads
				continue
			}
			for range rounds {
				s.alterBeside(t, r, name, anyFile[r.IntN(len(anyFile))])
			}
		}
	}
}

// alterBeside alters a file next to the recording in a copy of the run.
func (s *subject) alterBeside(t *testing.T, r *rand.Rand, name string, how alteration) {
	t.Helper()
	other, _ := os.ReadFile(filepath.Join(s.other, name)) // violations.jsonl may not be there
	data := read(t, filepath.Join(s.dir, name))
	altered := how.of(t, r, []byte(data), other)
	if altered != nil && string(altered) == data {
		return
	}
	dir := filepath.Join(t.TempDir(), "run")
	copyDir(t, s.dir, dir)
	err := os.Remove(filepath.Join(dir, name))
	if altered != nil {
		err = os.WriteFile(filepath.Join(dir, name), altered, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	code, _, last := verdictOf(t, dir)
	does := altered == nil && code == s.code                // without it
	if code == 1 && s.code == 1 && name == "faults.jsonl" { // the history shows the violation
		r, err := report.Read(dir)
		does = does || err == nil && slices.ContainsFunc(r.Checks, func(c report.Check) bool {
			return c.Name == "faults" && c.Status == "unknown" && strings.Contains(c.Detail, name)
		})
	}
	if !does && (code != 3 && code != 4 || !strings.Contains(last, name)) {
		t.Errorf("%s %s: exit code %d after %d: %s", name, how.name, code, s.code, last)
	}
}

// TestChecksWithoutAnEndStateAreUndecided checks that each check that needs the end state is listed as undecided if
// nobody has downloaded it.
func TestChecksWithoutAnEndStateAreUndecided(t *testing.T) {
	t.Parallel()
	for _, spec := range []workload.Spec{bank.Spec(), tpcb.Spec(), kv.Spec(), events.Spec(), appends.Spec()} {
		dir := filepath.Join(t.TempDir(), "run")
		if code, _, stderr := call(t, "run", spec.Name, "--db", "memory:", "--count", "300", "--clients", "3", "--no-check", "--out", dir); code != 0 {
			t.Fatal(stderr)
		}
		code, stdout, stderr := call(t, "check", dir, "--json")
		refused(t, code, 4, stderr, "the end state was not downloaded")
		r, err := report.Parse([]byte(stdout))
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range spec.Checks {
			i := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == declared.Name })
			switch {
			case i < 0 && declared.If == nil:
				t.Errorf("%s: the check %s is not listed", spec.Name, declared.Name)
			case i >= 0 && declared.Needs&history.EndState != 0 && (r.Checks[i].Status != "unknown" || !r.Checks[i].Required):
				t.Errorf("%s: %s is %s, required %t", spec.Name, declared.Name, r.Checks[i].Status, r.Checks[i].Required)
			}
		}
	}
}
