package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recordedDir returns a folder with a complete history of three clients, an end state and a manifest. An
// older version has no manifest.
func recordedDir(t *testing.T, older bool) string {
	t.Helper()
	dir := t.TempDir()
	w, err := Create(dir, testHeader, 3)
	if older {
		path := filepath.Join(dir, transactionsFile)
		must(t, errors.Join(err, w.Close(), os.Remove(path), os.Remove(filepath.Join(dir, ManifestFile))))
		var f file
		f, err = createFile(path, os.O_EXCL)
		must(t, err)
		w, err = create(f, path, testHeader, 3)
	}
	must(t, err)
	for i := range uint64(3) {
		for n := range uint64(30) {
			must(t, w.Client(int(i)).Append(&Transaction{ID: NewID(testHeader.Run, i, n+1), Attempts: 1, Ops: []Op{{Object: n}}}))
			if n%10 == 9 {
				must(t, w.Client(int(i)).Flush())
			}
		}
	}
	must(t, w.Close())
	end, err := CreateEnd(dir)
	must(t, err)
	for n := range uint64(10_000) {
		must(t, end.Object(Object{N: n * n * n, Value: int64(n * n)}))
		must(t, end.Row(Row{Transaction: NewID(3, 1, n*n), Object: n * n * n}))
	}
	must(t, end.Close())
	if older {
		must(t, os.Remove(filepath.Join(dir, ManifestFile)))
	}
	return dir
}

// verified opens a folder and returns the first problem of each file that failed.
func verified(t *testing.T, dir string) (problems []Problem, inputs Inputs, err error) {
	t.Helper()
	v, err := Verify(t.Context(), dir, 2)
	if err != nil {
		return nil, 0, err
	}
	defer v.Close()
	for _, d := range v.Failed {
		problems, inputs = append(problems, d.Problem), inputs|d.Input
		if !strings.Contains(d.Error(), filepath.Base(d.File)) {
			t.Errorf("%v does not name %s", d, d.File)
		}
	}
	if (v.History == nil) != (inputs&Recorded != 0) || inputs&EndState != 0 && v.End != nil {
		t.Errorf("failed is %v, and there is a history %t, an end state %t", v.Failed, v.History != nil, v.End != nil)
	}
	return problems, inputs, nil
}

// rebuilt returns a file with changed blocks and correct checksums.
func rebuilt(t *testing.T, data []byte, change func(list [][]byte) [][]byte) []byte {
	t.Helper()
	at := preambleSize + int(binary.LittleEndian.Uint32(data[16:]))
	file, sums := bytes.Clone(data[:at]), startSums(binary.LittleEndian.Uint32(data[20:]))
	var list [][]byte
	for len(data)-at > footerSize {
		size := blockHeadSize + int(binary.LittleEndian.Uint32(data[at+8:]))
		list, at = append(list, data[at:at+size]), at+size
	}
	for _, b := range change(list) {
		file = append(file, b...)
		sums.add(binary.LittleEndian.Uint32(b[20:]), binary.LittleEndian.Uint32(b[12:]))
	}
	return append(file, sums.footer()...)
}

// TestVerifyNamesProblemOfAlteredFile checks the problem that is reported for each kind of altered file, with and
// without a manifest.
func TestVerifyNamesProblemOfAlteredFile(t *testing.T) {
	drop := func(at int) func([][]byte) [][]byte {
		return func(list [][]byte) [][]byte { return slices.Delete(slices.Clone(list), at, at+1) }
	}
	twice := func(list [][]byte) [][]byte { return append(slices.Clone(list), list[1]) }
	exchange := func(list [][]byte) [][]byte {
		list = slices.Clone(list)
		list[0], list[3] = list[3], list[0]
		list[0], list[2] = list[2], list[0]
		return list
	}
	for _, test := range []struct {
		name, file    string
		blocks        func(list [][]byte) [][]byte
		bytes         func(data []byte) []byte
		listed, older Problem // 0: none is reported
	}{
		{name: "nothing", file: transactionsFile, bytes: bytes.Clone},
		{name: "a block less", file: transactionsFile, blocks: drop(0), listed: Replaced, older: Gap},
		{name: "the last block less", file: transactionsFile, blocks: drop(8), listed: Replaced},
		{name: "a block twice", file: transactionsFile, blocks: twice, listed: Replaced, older: Gap},
		{name: "another order of a client", file: transactionsFile, blocks: exchange, listed: Replaced, older: Gap},
		{name: "no footer", file: transactionsFile, bytes: func(d []byte) []byte { return d[:len(d)-footerSize] }, listed: CutShort},
		{name: "a bit", file: transactionsFile, bytes: func(d []byte) []byte { d[len(d)/2] ^= 4; return d }, listed: BadChecksum, older: BadChecksum},
		{name: "bytes behind", file: ledgerFile, bytes: func(d []byte) []byte { return append(d, 1, 2) }, listed: Appended, older: Appended},
		{name: "a block twice", file: ledgerFile, blocks: twice, listed: Replaced, older: Repeated},
		{name: "a block less", file: objectsFile, blocks: drop(0), listed: Replaced},
		{name: "no footer", file: objectsFile, bytes: func(d []byte) []byte { return d[:len(d)-1] }, listed: CutShort, older: CutShort},
		{name: "none", file: objectsFile, listed: Missing, older: Missing},
		{name: "none", file: ledgerFile, listed: Missing, older: Missing},
	} {
		for _, older := range []bool{false, true} {
			dir, want := recordedDir(t, older), test.listed
			path := filepath.Join(dir, test.file)
			data, err := os.ReadFile(path)
			must(t, err)
			must(t, os.Remove(path))
			switch {
			case test.blocks != nil:
				must(t, os.WriteFile(path, rebuilt(t, data, test.blocks), 0o600))
			case test.bytes != nil:
				must(t, os.WriteFile(path, test.bytes(data), 0o600))
			}
			if older {
				want = test.older
			}
			got, inputs, err := verified(t, dir)
			must(t, err)
			if want == 0 && len(got) > 0 || want != 0 && (len(got) != 1 || got[0] != want) {
				t.Errorf("%s of %s, older %t: %v of files %b, not %v", test.name, test.file, older, got, inputs, want)
			}
		}
	}
}

// TestVerifyRefusesUnidentifiedFiles checks that files of two runs and a damaged manifest are errors, not a
// Damage.
func TestVerifyRefusesUnidentifiedFiles(t *testing.T) {
	for name, change := range map[string]func(dir, other string) error{
		"no manifest": func(dir, _ string) error { return os.Remove(filepath.Join(dir, ManifestFile)) },
		"half a manifest": func(dir, _ string) error {
			return os.Truncate(filepath.Join(dir, ManifestFile), 60)
		},
		"another manifest": func(dir, other string) error {
			return os.Rename(filepath.Join(other, ManifestFile), filepath.Join(dir, ManifestFile))
		},
		"another ledger": func(dir, other string) error {
			return os.Rename(filepath.Join(other, ledgerFile), filepath.Join(dir, ledgerFile))
		},
		"another history": func(dir, other string) error {
			return os.Rename(filepath.Join(other, transactionsFile), filepath.Join(dir, transactionsFile))
		},
	} {
		other := t.TempDir()
		h := testHeader
		h.LoadID = "another load"
		w, err := Create(other, h, 1)
		must(t, err)
		must(t, w.Close())
		end, err := CreateEnd(other)
		must(t, err)
		must(t, end.Close())
		dir := recordedDir(t, false)
		must(t, change(dir, other))
		var d *Damage
		if _, err := Verify(t.Context(), dir, 1); err == nil || errors.As(err, &d) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
