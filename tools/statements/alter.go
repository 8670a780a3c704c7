package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// alter alters one file of a copy of a run and checks the copy. A healthy run must be undecided then or
// refused; one that was invalid may still be, by what is intact.
func (c *campaign) alter(rng *rand.Rand, dir string, before int, command string) {
	copied := dir + "-altered"
	defer os.RemoveAll(copied)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		c.problem("copy %s: %v", dir, err)
		return
	}
	files, err := filepath.Glob(filepath.Join(copied, "history", "*.bin"))
	if err != nil || len(files) == 0 {
		c.problem("%s: no files in its history", command)
		return
	}
	file := files[rng.IntN(len(files))]
	data, err := os.ReadFile(file)
	if err != nil {
		c.problem("read %s: %v", file, err)
		return
	}
	how, changed := changes[rng.IntN(len(changes))].make(rng, data)
	if changed == nil {
		err = os.Remove(file)
	} else {
		err = os.WriteFile(file, changed, 0o666)
	}
	if err != nil {
		c.problem("alter %s: %v", file, err)
		return
	}
	code, out := c.call([]string{"check", copied, "-q"})
	c.count(&c.copies, code)
	switch {
	case code == 4 || code == 3 || code == 1 && before == 1:
	default:
		c.problem("%s, then %s of %s: exit code %d: %s", command, how, filepath.Base(file), code, out)
	}
}

// changes are the ways in which a file is altered. Each returns how, and the new contents; nil removes the file.
var changes = []struct {
	make func(rng *rand.Rand, data []byte) (how string, changed []byte)
}{
	{func(rng *rand.Rand, data []byte) (string, []byte) {
		changed, at := slices.Clone(data), rng.IntN(len(data))
		changed[at] ^= 1 << rng.IntN(8)
		return fmt.Sprintf("a flipped bit at byte %d", at), changed
	}},
	{func(rng *rand.Rand, data []byte) (string, []byte) {
		n := rng.IntN(len(data))
		return fmt.Sprintf("the first %d of %d bytes", n, len(data)), slices.Clone(data[:n])
	}},
	{func(rng *rand.Rand, data []byte) (string, []byte) {
		return "bytes behind the footer", append(slices.Clone(data), make([]byte, 1+rng.IntN(100))...)
	}},
	{func(*rand.Rand, []byte) (string, []byte) { return "the removal", nil }},
	{func(rng *rand.Rand, data []byte) (string, []byte) {
		blocks := blocksOf(data)
		if len(blocks) == 0 {
			return "all bytes 0", make([]byte, len(data))
		}
		b := blocks[rng.IntN(len(blocks))]
		return "a block twice", slices.Concat(data[:b[1]], data[b[0]:b[1]], data[b[1]:])
	}},
	{func(rng *rand.Rand, data []byte) (string, []byte) {
		blocks := blocksOf(data)
		if len(blocks) == 0 {
			return "all bytes 0", make([]byte, len(data))
		}
		b := blocks[rng.IntN(len(blocks))]
		return "a block less", slices.Concat(data[:b[0]], data[b[1]:])
	}},
}

// blocksOf returns where the blocks of a file begin and end, by docs/history-format.md.
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
