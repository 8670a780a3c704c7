package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	stdcontext "context"
)

// Verified is a verified recording of a run. It provides a file only if every byte was verified:
//   - all checksums, counts and footers are correct, and nothing follows a footer;
//   - all files belong to one run and to the manifest;
//   - no block occurs twice, and no client's transactions have a gap.
//
// A history without a footer is verified up to its end, because its run was cut off.
type Verified struct {
	Header  Header
	History *Reader   // nil: the file failed
	End     *End      // nil: there is none, or a file of it failed
	Failed  []*Damage // the first damage of each file that failed

	open []interface{ Close() error }
}

// Verify opens and verifies the recording in dir, the run's history folder, with the given number of workers.
// It returns an error if the files cannot be assigned to a run or if ctx ended. Other damage is in Failed.
func Verify(ctx stdcontext.Context, dir string, workers int) (*Verified, error) {
	v := new(Verified)
	if err := v.verify(ctx, dir, workers); err != nil {
		_ = v.Close()
		return nil, err
	}
	return v, nil
}

func (v *Verified) verify(ctx stdcontext.Context, dir string, workers int) error {
	r, err := openWithoutClocks(dir)
	if err != nil {
		return err
	}
	v.open = append(v.open, r)
	v.Header = r.header
	run := Identity{r.header.Workload, r.header.LoadID, r.header.Run, r.source.preamble}
	listed, err := readManifest(dir, run)
	if err != nil {
		return err
	}
	if listed == nil {
		listed = &manifest{Identity: run}
		if r.listed && r.end == atFooter {
			return fmt.Errorf("%s in %s: %s is missing: restore it from a copy", r.source.doing, dir, ManifestFile)
		}
	}
	v.History = r
	if err := v.failed(cmp.Or(listed.clocks(dir), r.readClocks(dir))); err != nil {
		return err
	}
	v.Header = r.header
	if err := v.failed(listed.verify(ctx, r.source, workers)); err != nil {
		return err
	}
	end, err := openEnd(dir, run)
	if end != nil {
		v.open = append(v.open, end)
		v.End = end
		for _, s := range []*blockSource{end.objects, end.legs} {
			if err := v.failed(listed.verify(ctx, s, workers)); err != nil {
				return err
			}
		}
		return nil
	}
	if _, kept := listed.Files[objectsFile]; kept && errors.Is(err, fs.ErrNotExist) {
		err = absent(filepath.Join(dir, objectsFile), EndObjects)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return v.failed(err)
}

// failed drops the file of a Damage, and returns any other error.
func (v *Verified) failed(err error) error {
	var d *Damage
	if !errors.As(err, &d) {
		return err
	}
	if v.Failed = append(v.Failed, d); d.Input == Recorded {
		v.History = nil
	} else {
		v.End = nil
	}
	return nil
}

// Late drops the files in which damage was found after the verification: invalid records with correct checksums. The
// caller must ignore what it read of these files.
func (v *Verified) Late() {
	var sources []*blockSource
	if v.History != nil {
		sources = append(sources, v.History.source)
	}
	if v.End != nil {
		sources = append(sources, v.End.objects, v.End.legs)
	}
	for _, s := range sources {
		if d := s.failed(); d != nil {
			_ = v.failed(d)
		}
	}
}

// Close closes all files.
func (v *Verified) Close() error {
	var errs []error
	for _, f := range v.open {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// verify returns the first damage of a file of blocks.
func (m *manifest) verify(ctx stdcontext.Context, s *blockSource, workers int) error {
	if err := m.compare(s); err != nil {
		return err
	}
	seen, err := s.verify(ctx, workers)
	if err != nil {
		return err
	}
	if s.contents == transactions {
		s.gapless = true
		return s.continuous(m.Identity.Run, seen)
	}
	if _, listed := m.Files[filepath.Base(s.path)]; listed {
		return nil // the blocks are those that the run wrote
	}
	return s.repeated(seen)
}

// compare returns the damage of a file of blocks that differs from its entry. A file without an entry passes.
func (m *manifest) compare(s *blockSource) error {
	want, listed := m.Files[filepath.Base(s.path)]
	switch {
	case !listed || s.added != nil || s.complete && s.footer.entry() == want:
		return nil
	case !s.complete:
		return s.fail(&Damage{Problem: CutShort, Offset: -1, err: errDamaged,
			what: "its last part is missing, although " + ManifestFile + " lists it as complete: restore it from a copy"})
	}
	return s.fail(&Damage{Problem: Replaced, Offset: -1, err: errDamaged,
		what: fmt.Sprintf("it holds %d records in %d blocks, and is not the file of %d records in %d blocks that %s names: "+
			"restore it from a copy", s.footer.Records, s.footer.Blocks, want.Records, want.Blocks, ManifestFile)})
}

// clocks returns the damage of the clock file in dir if it is missing or differs from its entry.
func (m *manifest) clocks(dir string) error {
	want, listed := m.Files[ClocksFile]
	if !listed {
		return nil
	}
	path := filepath.Join(dir, ClocksFile)
	switch text, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		return clocksDamage(path, Missing, "restore it from a copy")
	case err != nil:
		return clocksDamage(path, BadRecord, err.Error())
	case checksum(text) != want.Checksum:
		return clocksDamage(path, Replaced, fmt.Sprintf("it is not the file that %s names: restore it from a copy", ManifestFile))
	}
	return nil
}

// seenBlock is a verified block.
type seenBlock struct {
	Block
	first ID // the first transaction; 0 for an end state
}

// verify reads the whole file and returns its blocks in order, or the first damage.
func (s *blockSource) verify(ctx stdcontext.Context, workers int) (seen []seenBlock, err error) {
	var lock sync.Mutex
	buffers := make([][]byte, workers)
	err = deal(s.blocks, workers, func(worker int, b Block) (err error) {
		if ctx.Err() != nil {
			return stdcontext.Cause(ctx)
		}
		if buffers[worker], err = s.payload(b, buffers[worker]); err != nil {
			return err
		}
		one := seenBlock{Block: b}
		if s.contents == transactions && b.Records > 0 {
			if one.first, err = s.firstOf(b, buffers[worker]); err != nil {
				return err
			}
		}
		lock.Lock()
		seen = append(seen, one)
		lock.Unlock()
		return nil
	})
	if err == nil && ctx.Err() != nil {
		err = stdcontext.Cause(ctx)
	}
	slices.SortFunc(seen, func(a, b seenBlock) int { return cmp.Compare(a.Offset, b.Offset) })
	return seen, err
}

// firstOf returns the first transaction of a block.
func (s *blockSource) firstOf(b Block, payload []byte) (ID, error) {
	d := decoder{b: payload}
	var tx Transaction
	d.kind(&tx)
	id := d.unsigned()
	if d.bad {
		return 0, s.senseless(b.Offset, 0, b.Records)
	}
	first := ID(unzigzag(id)) + 1
	return first, s.misplaced(b.Offset, b.Client, 0, first)
}

// continuous returns a Gap if the blocks of a client are not consecutive from its first transaction on. A
// block of another run is damage too. Gaps within a block are found when the block is read.
func (s *blockSource) continuous(run uint64, seen []seenBlock) error {
	next := map[ID]ID{} // by the client's first ID
	for _, b := range seen {
		if b.first.Run() != run {
			what := fmt.Sprintf("the history is of run %d and holds transaction %v", run, b.first)
			return s.damaged(b.Offset, BadRecord, what)
		}
		client := b.first &^ (1<<SequenceBits - 1)
		want, known := next[client]
		if !known {
			want = client + ID(min(1, b.first.Sequence()))
		}
		if b.first != want {
			return s.gap(b.Offset, want, b.first)
		}
		next[client] = b.first + ID(b.Records)
	}
	return nil
}

// repeated returns the damage of a block of rows that occurs twice. A row that a database returned twice is
// in two different blocks, or twice in one.
func (s *blockSource) repeated(seen []seenBlock) error {
	type content struct{ length, records, sum uint32 }
	at := map[content]seenBlock{}
	for _, b := range seen {
		c := content{b.Length, b.Records, b.sum}
		other, again := at[c]
		if again && b.Client == rowBlock {
			first, second := make([]byte, b.Length), make([]byte, b.Length)
			err := errors.Join(s.read(first, other.Offset+blockHeadSize), s.read(second, b.Offset+blockHeadSize))
			if err != nil {
				return err
			}
			if bytes.Equal(first, second) {
				what := fmt.Sprintf("the block is that at offset %d once more", other.Offset)
				return s.damaged(b.Offset, Repeated, what)
			}
		}
		at[c] = b
	}
	return nil
}
