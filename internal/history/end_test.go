package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"stroppy/internal/tier"
)

func all[Row any](rows iter.Seq2[Row, error]) (got []Row, err error) {
	for row, err := range rows {
		if err != nil {
			return got, err
		}
		got = append(got, row)
	}
	return got, nil
}

// keep writes an end state of n accounts and 2n legs.
func keep(t testing.TB, dir string, n int, unexpected ...string) (as []Object, ls []Row) {
	t.Helper()
	w, err := CreateEnd(dir)
	must(t, err)
	r := newRandom(uint64(n))
	for range n {
		a := Object{N: uint64(randomInt(r)), Value: randomInt(r), Version: uint64(randomInt(r)), Writer: ID(randomInt(r))}
		must(t, w.Object(a))
		as = append(as, a)
		for i := range 2 {
			l := Row{Transaction: ID(randomInt(r)), Number: uint32(i), Mark: Mark(r.IntN(12) / 9), State: State(r.IntN(5)), Object: a.N, Amount: randomInt(r), Version: uint64(randomInt(r))}
			must(t, w.Row(l))
			ls = append(ls, l)
		}
	}
	for _, text := range unexpected {
		must(t, w.Unexpected(text))
	}
	must(t, w.Close())
	return as, ls
}

func TestEndStateRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 20_000} {
		dir := filepath.Join(t.TempDir(), "history")
		as, ls := keep(t, dir, n, "an account nobody made", "")
		for range 2 {
			e, err := OpenEnd(dir)
			must(t, err)
			gotA, err := all(e.Objects())
			must(t, err)
			gotL, err := all(e.Rows())
			must(t, err)
			if !slices.Equal(gotA, as) || !slices.Equal(gotL, ls) {
				t.Errorf("%d accounts: the rows are not those that were kept", n)
			}
			if got := e.Unexpected(); !slices.Equal(got, []string{"an account nobody made", ""}) {
				t.Errorf("unexpected: %q", got)
			}
			must(t, e.Close())
		}
	}
}

func TestExcessUnexpectedRowsAreOnlyCounted(t *testing.T) {
	dir := t.TempDir()
	var texts []string
	for i := range maxUnexpected + 5 {
		texts = append(texts, fmt.Sprint(i, strings.Repeat("ä", i)))
	}
	keep(t, dir, 10, texts...)
	e, err := OpenEnd(dir)
	must(t, err)
	defer e.Close()
	got := e.Unexpected()
	if len(got) != maxUnexpected+1 || got[maxUnexpected] != "… and 5 more" || got[7] != texts[7] {
		t.Fatalf("%d unexpected, the last %q", len(got), got[len(got)-1])
	}
	if long := got[999]; len(long) > maxUnexpectedText+len("…") || !strings.HasPrefix(texts[999], strings.TrimSuffix(long, "…")) {
		t.Errorf("a long unexpected row: %q", long)
	}
}

func TestEndStateExistsOnlyAfterClose(t *testing.T) {
	dir := t.TempDir()
	w, err := CreateEnd(dir)
	must(t, err)
	must(t, w.Object(Object{N: 1}))
	if _, err := OpenEnd(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half-written: %v", err)
	}
	must(t, w.Abandon())
	if _, err := OpenEnd(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("abandoned: %v", err)
	}
	if err := w.Close(); err == nil {
		t.Error("closed after it was abandoned")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	keep(t, dir, 5)
	w, err = CreateEnd(dir) // a second download
	must(t, err)
	must(t, w.Object(Object{N: 1}))
	must(t, w.Abandon())
	e, err := OpenEnd(dir)
	must(t, err)
	if got, err := all(e.Objects()); err != nil || len(got) != 5 {
		t.Errorf("the first download: %d accounts, %v", len(got), err)
	}
	must(t, e.Close())
	keep(t, dir, 7)
	e, err = OpenEnd(dir)
	must(t, err)
	if got, err := all(e.Rows()); err != nil || len(got) != 14 {
		t.Errorf("the second download: %d legs, %v", len(got), err)
	}
	must(t, e.Close())
	must(t, os.Remove(filepath.Join(dir, ledgerFile)))
	if _, err := OpenEnd(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its ledger: %v", err)
	}
}

func TestFullDiskLeavesNoEndState(t *testing.T) {
	dir := t.TempDir()
	w, err := CreateEnd(dir)
	must(t, err)
	w.objects.out.f = &fullDisk{file: w.objects.out.f, left: 100_000, noRoom: syscall.ENOSPC}
	for i := 0; err == nil && i < 1_000_000; i++ {
		err = w.Object(Object{N: uint64(i * i), Value: int64(i), Writer: ID(i)})
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "keep the end state in "+filepath.Join(dir, objectsFile)) {
		t.Fatalf("got %v", err)
	}
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// endOf writes a and l as the files of an end state and reads it.
func endOf(t testing.TB, dir string, a, l []byte) (accounts []Object, legs []Row, err error) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, objectsFile), a, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, ledgerFile), l, 0o644))
	e, err := OpenEnd(dir)
	if err != nil {
		return nil, nil, err
	}
	defer e.Close()
	if accounts, err = all(e.Objects()); err == nil {
		legs, err = all(e.Rows())
	}
	return accounts, legs, err
}

func endFiles(t testing.TB) (accounts, legs []byte) {
	dir := t.TempDir()
	keep(t, dir, 6, "an unexpected row")
	accounts, err := os.ReadFile(filepath.Join(dir, objectsFile))
	must(t, err)
	legs, err = os.ReadFile(filepath.Join(dir, ledgerFile))
	must(t, err)
	return accounts, legs
}

func TestAlteredEndStateIsAnError(t *testing.T) {
	tier.SkipUnderRace(t)
	a, l := endFiles(t)
	dir := t.TempDir()
	for i := range a {
		if _, _, err := endOf(t, dir, a[:i], l); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("accounts cut at %d: %v", i, err)
		}
		bad := bytes.Clone(a)
		bad[i] ^= 1 << (i % 8)
		if _, _, err := endOf(t, dir, bad, l); err == nil {
			t.Fatalf("accounts altered at %d: no error", i)
		}
	}
	for i := range l {
		if _, _, err := endOf(t, dir, a, l[:i]); err == nil {
			t.Fatalf("ledger cut at %d: no error", i)
		}
		bad := bytes.Clone(l)
		bad[i] ^= 1 << (i % 8)
		if _, _, err := endOf(t, dir, a, bad); err == nil {
			t.Fatalf("ledger altered at %d: no error", i)
		}
	}
	if _, _, err := endOf(t, dir, l, a); err == nil {
		t.Error("the files were swapped: no error")
	}
}

func FuzzReadEndState(f *testing.F) {
	a, l := endFiles(f)
	f.Add(a, l)
	f.Fuzz(func(t *testing.T, a, l []byte) {
		accounts, legs, _ := endOf(t, t.TempDir(), a, l)
		if len(accounts)*4 > len(a) || len(legs)*5 > len(l) {
			t.Errorf("%d accounts and %d legs from %d and %d bytes", len(accounts), len(legs), len(a), len(l))
		}
	})
}

// FuzzReadEndStatePayload checks that arbitrary rows with correct checksums are read or rejected.
func FuzzReadEndStatePayload(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0}, uint32(1), rowBlock)
	f.Add([]byte{1, 'x'}, uint32(1), unexpectedBlock)
	f.Fuzz(func(t *testing.T, payload []byte, records, kind uint32) {
		var files [2][]byte
		for i, c := range []contents{objects, ledger} {
			file, sum := preamble(c, []byte("{}"))
			sums := startSums(sum)
			block := append(make([]byte, blockHeadSize), payload...)
			sealBlock(block, kind, records)
			sums.add(binary.LittleEndian.Uint32(block[20:]), records)
			files[i] = append(append(file, block...), sums.footer()...)
		}
		_, _, _ = endOf(t, t.TempDir(), files[0], files[1])
	})
}

// TestEndStateOfAnotherRunIsRejected checks that files of two runs are not combined.
func TestEndStateOfAnotherRunIsRejected(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		h := testHeader
		h.Run = uint64(i + 1)
		w, err := Create(dir, h, 1)
		must(t, err)
		must(t, w.Close())
		end, err := CreateEnd(dir)
		must(t, err)
		must(t, end.Object(Object{N: 1}))
		must(t, end.Close())
		whole, err := OpenEnd(dir)
		must(t, err)
		must(t, whole.Close())
	}
	for _, name := range []string{ledgerFile, objectsFile} {
		file, err := os.ReadFile(filepath.Join(dirs[0], name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dirs[1], name), file, 0o644))
		if _, err := OpenEnd(dirs[1]); err == nil || !strings.Contains(err.Error(), "it belongs to run ") {
			t.Errorf("%s of another run: %v", name, err)
		}
	}
}
