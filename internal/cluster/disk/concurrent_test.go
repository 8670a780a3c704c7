//go:build linux

package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestConcurrentWritersKeepSyncedData checks that concurrent writers find their synced data after a loss of
// unsynced data. Each has its own blocks in a shared file, and a file whose name changes.
func TestConcurrentWritersKeepSyncedData(t *testing.T) {
	const writers, blocks = 6, 8
	n := newNode(t, fast(t))
	shared, err := os.Create(filepath.Join(n.Dir(), "shared"))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	safe := make([][blocks]uint64, writers) // the synced version of each block
	began := time.Now()
	for w := range writers {
		rng := rand.New(rand.NewPCG(uint64(w), 1))
		group.Go(func() {
			var written [blocks]uint64
			for version := uint64(1); time.Since(began) < 500*time.Millisecond; version++ {
				b := rng.IntN(blocks)
				page := make([]byte, 3000) // not a multiple of the page size, so that pages are shared too
				binary.LittleEndian.PutUint64(page, version)
				_, err := shared.WriteAt(page, int64((b*writers+w)*len(page)))
				written[b] = version
				if err == nil && rng.IntN(5) == 0 {
					if err = shared.Sync(); err == nil {
						safe[w] = written
					}
				}
				if err == nil && rng.IntN(5) == 0 {
					err = replaceFile(filepath.Join(n.Dir(), fmt.Sprintf("own%d", w)), version)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Go(func() {
		for time.Since(began) < 500*time.Millisecond {
			if err := n.Sync(); err != nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	group.Wait()
	if err := shared.Close(); err != nil {
		t.Fatal(err)
	}
	powerCut(t, n)
	content, err := os.ReadFile(filepath.Join(n.Dir(), "shared"))
	if err != nil {
		t.Fatal(err)
	}
	for w := range safe {
		for b, version := range safe[w] {
			if at := (b*writers + w) * 3000; version > 0 && (at+8 > len(content) || binary.LittleEndian.Uint64(content[at:]) < version) {
				t.Errorf("block %d of writer %d: version %d was synced, and an older one is there", b, w, version)
			}
		}
		text, err := os.ReadFile(filepath.Join(n.Dir(), fmt.Sprintf("own%d", w)))
		if err != nil || len(text) == 0 {
			t.Errorf("the file of writer %d: %q, %v", w, text, err)
		}
	}
}

// replaceFile replaces a file by another, as programs do that must not lose it, but without a sync of the folder.
func replaceFile(path string, version uint64) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, version)
	return errors.Join(err, f.Sync(), f.Close(), os.Rename(path+".new", path))
}
