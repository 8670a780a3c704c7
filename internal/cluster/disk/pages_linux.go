package disk

import (
	"bytes"
	"fmt"
	"os"
	"sync"
)

// pageSize is the unit in which the content of a file before an unsynced write
// is kept.
const pageSize = 4096

// slot is a place in a pageStore.
type slot int64

// blank is the slot of a page of zeros, which takes no place.
const blank slot = -1

// pageStore keeps pages in a file without a name, so that what was not synced
// need not fit into memory. Its methods may be called from several goroutines.
type pageStore struct {
	file *os.File

	mu   sync.Mutex
	free []slot // the last one freed is taken first: it is still in memory
	next slot
}

func newPageStore(folder string) (*pageStore, error) {
	file, err := os.CreateTemp(folder, "pages-")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("make a file for what is overwritten: %w", err)
	}
	return &pageStore{file: file}, nil
}

var zeros [pageSize]byte

// put keeps a page, of pageSize bytes.
func (s *pageStore) put(page []byte) (slot, error) {
	if bytes.Equal(page, zeros[:]) {
		return blank, nil
	}
	s.mu.Lock()
	at := s.next
	if last := len(s.free) - 1; last >= 0 {
		at, s.free = s.free[last], s.free[:last]
	} else {
		s.next++
	}
	s.mu.Unlock()
	if _, err := s.file.WriteAt(page, int64(at)*pageSize); err != nil {
		s.drop(at)
		return 0, err
	}
	return at, nil
}

// get reads a page into a buffer of pageSize bytes.
func (s *pageStore) get(at slot, page []byte) error {
	if at == blank {
		clear(page)
		return nil
	}
	_, err := s.file.ReadAt(page, int64(at)*pageSize)
	return err
}

// drop frees a slot.
func (s *pageStore) drop(at slot) {
	if at == blank {
		return
	}
	s.mu.Lock()
	s.free = append(s.free, at)
	s.mu.Unlock()
}

// image is the safe content of a file that has been changed since: its size, and
// those of its pages that were overwritten or cut off.
type image struct {
	size  int64
	pages map[int64]slot // by the page's number in the file
}

func newImage(size int64) *image { return &image{size: size, pages: map[int64]slot{}} }

// cut makes a truncation safe.
func (i *image) cut(size int64, pages *pageStore) {
	if size >= i.size {
		return
	}
	i.size = size
	for number, at := range i.pages {
		if number*pageSize >= size {
			pages.drop(at)
			delete(i.pages, number)
		}
	}
}

func (i *image) drop(pages *pageStore) {
	for _, at := range i.pages {
		pages.drop(at)
	}
}
