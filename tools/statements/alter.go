package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stroppy/tools/try"
)

// alter alters a copy of a recording and checks the copy. A healthy recording must be undecided then or
// refused; one that was invalid may still be, by what is intact.
func (c *campaign) alter(rng *rand.Rand, r *recording) {
	copied := r.dir + "-altered"
	defer os.RemoveAll(copied)
	if err := os.CopyFS(copied, os.DirFS(r.dir)); err != nil {
		c.problem("", "copy %s: %v", r.dir, err)
		return
	}
	how := ""
	if err := try.Attempt(func() {
		for how == "" { // a change that would leave everything as it is makes way for another one
			how = changes[rng.IntN(len(changes))](c, rng, r, copied)
		}
	}); err != nil {
		c.problem("", "%s: alter a copy: %v", r.command, err)
		return
	}
	code, out := c.call([]string{"check", copied, "-q"})
	c.count(&c.copies, code)
	switch {
	case code == 4 || code == 3 || code == 1 && r.code == 1:
	default:
		c.problem(copied, "%s, then %s: exit code %d: %s", r.command, how, code, out)
	}
}

// A change alters the copy of a recording in a directory. It returns what it did; empty: nothing.
type change func(c *campaign, rng *rand.Rand, r *recording, dir string) (how string)

// changes are the ways in which a recording is altered.
var changes = []change{
	ofOneFile(flipBit),
	ofOneFile(func(rng *rand.Rand, data []byte) (string, []byte) {
		n := rng.IntN(len(data))
		return fmt.Sprintf("the first %d of %d bytes", n, len(data)), slices.Clone(data[:n])
	}),
	ofOneFile(func(rng *rand.Rand, data []byte) (string, []byte) {
		return "bytes behind the footer", append(slices.Clone(data), make([]byte, 1+rng.IntN(100))...)
	}),
	ofOneFile(func(*rand.Rand, []byte) (string, []byte) { return "the removal", nil }),
	ofOneBlock("a block twice", func(data []byte, from, to int) []byte { return slices.Concat(data[:to], data[from:to], data[to:]) }),
	ofOneBlock("a block less", func(data []byte, from, to int) []byte { return slices.Concat(data[:from], data[to:]) }),
	ofFile(evidence, flipBit), swapWithOther, swapEnds, editResult, editFaults,
}

// alteration returns how it changed the contents of a file, and the new contents; nil removes the file.
type alteration func(rng *rand.Rand, data []byte) (how string, changed []byte)

// ofFile is the change of one of some files, whose names are relative to the directory of a recording.
func ofFile(files func(dir string) []string, alter alteration) change {
	return func(_ *campaign, rng *rand.Rand, _ *recording, dir string) string {
		list := files(dir)
		file := filepath.Join(dir, list[rng.IntN(len(list))])
		how, changed := alter(rng, try.Must(os.ReadFile(file)))
		if changed == nil {
			try.Check(os.Remove(file))
		} else {
			try.Write(file, changed)
		}
		return how + " of " + filepath.Base(file)
	}
}

// ofOneFile is the change of one file of the history.
func ofOneFile(alter alteration) change {
	return ofFile(func(dir string) []string {
		return slices.DeleteFunc(evidence(dir), func(name string) bool { return filepath.Ext(name) != ".bin" })
	}, alter)
}

func flipBit(rng *rand.Rand, data []byte) (string, []byte) {
	changed, at := slices.Clone(data), rng.IntN(len(data))
	changed[at] ^= 1 << rng.IntN(8)
	return fmt.Sprintf("a flipped bit at byte %d", at), changed
}

// ofOneBlock is the change of one block of a file, which is from one offset to the other.
func ofOneBlock(how string, alter func(data []byte, from, to int) []byte) change {
	return ofOneFile(func(rng *rand.Rand, data []byte) (string, []byte) {
		blocks := blocksOf(data)
		if len(blocks) == 0 {
			return "all bytes 0", make([]byte, len(data))
		}
		b := blocks[rng.IntN(len(blocks))]
		return how, alter(data, b[0], b[1])
	})
}

// evidence returns the files that a check reads, relative to the directory: all but the log and the report,
// which are made for people.
func evidence(dir string) (files []string) {
	try.Check(fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == "log.txt" || path == "report.html" {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() == 0 {
			return err
		}
		files = append(files, path)
		return nil
	}))
	return files
}

// swapWithOther replaces a file by the one of a run with the same settings and another seed.
func swapWithOther(c *campaign, rng *rand.Rand, r *recording, dir string) string {
	other := c.other(r)
	files := evidence(other)
	file := files[rng.IntN(len(files))]
	theirs := try.Must(os.ReadFile(filepath.Join(other, file)))
	ours, err := os.ReadFile(filepath.Join(dir, file))
	if err == nil && bytes.Equal(ours, theirs) || os.IsNotExist(err) {
		return ""
	}
	try.Check(err)
	try.Write(filepath.Join(dir, file), theirs)
	return "the " + file + " of another run"
}

// swapEnds exchanges the two files of the end state.
func swapEnds(_ *campaign, _ *rand.Rand, _ *recording, dir string) string {
	objects, ledger := filepath.Join(dir, "history", "end-objects.bin"), filepath.Join(dir, "history", "end-ledger.bin")
	for _, move := range [][2]string{{objects, objects + "-moved"}, {ledger, objects}, {objects + "-moved", ledger}} {
		try.Check(os.Rename(move[0], move[1]))
	}
	return "the files of the end state exchanged"
}

// editResult edits result.json as a text editor would, and leaves its checksum.
func editResult(_ *campaign, rng *rand.Rand, r *recording, dir string) string {
	file := filepath.Join(dir, "result.json")
	data := try.Must(os.ReadFile(file))
	verdict, another := `"verdict": "valid"`, `"verdict": "invalid"`
	if r.code == 1 {
		verdict, another = another, verdict
	}
	if changed := strings.Replace(string(data), verdict, another, 1); changed != string(data) && rng.IntN(3) == 0 {
		try.Write(file, []byte(changed))
		return "the verdict of result.json edited"
	}
	try.Write(file, otherDigit(rng, data))
	return "a digit of result.json edited"
}

// editFaults adds a line to faults.jsonl, removes one, or edits a digit.
func editFaults(_ *campaign, rng *rand.Rand, _ *recording, dir string) string {
	file := filepath.Join(dir, "faults.jsonl")
	data := try.Must(os.ReadFile(file))
	lines := bytes.SplitAfter(data, []byte("\n"))
	switch n := rng.IntN(3); {
	case n == 0 || len(lines) < 2:
		line := `{"fault":"kill leader","target":"n1","at_s":0.01,"healed_s":0.02}` + "\n"
		try.Write(file, append(data, line...))
		return "a line added to faults.jsonl"
	case n == 1:
		at := rng.IntN(len(lines) - 1)
		try.Write(file, bytes.Join(slices.Delete(lines, at, at+1), nil))
		return "a line of faults.jsonl less"
	}
	try.Write(file, otherDigit(rng, data))
	return "a digit of faults.jsonl edited"
}

// otherDigit returns a text with another digit in the place of one.
func otherDigit(rng *rand.Rand, text []byte) []byte {
	var digits []int
	for i, b := range text {
		if b >= '0' && b <= '9' {
			digits = append(digits, i)
		}
	}
	changed, at := slices.Clone(text), digits[rng.IntN(len(digits))]
	changed[at] = '0' + (changed[at]-'0'+1+byte(rng.IntN(9)))%10
	return changed
}

// blocksOf returns where the blocks of a file begin and end, by docs/reference/history-format.md.
func blocksOf(data []byte) (blocks [][2]int) {
	const preamble, head = 24, 24
	if len(data) < preamble {
		return nil
	}
	at := preamble + int(binary.LittleEndian.Uint32(data[16:]))
	for at+head <= len(data) && string(data[at:at+4]) == "blck" {
		end := at + head + int(binary.LittleEndian.Uint32(data[at+8:]))
		if end > len(data) {
			break
		}
		blocks = append(blocks, [2]int{at, end})
		at = end
	}
	return blocks
}
