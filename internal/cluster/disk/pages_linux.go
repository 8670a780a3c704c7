package disk

import (
	"fmt"
	"os"
)

// pageSize is the unit in which the content of a file before an unsynced write
// is kept.
const pageSize = 4096

// image is the safe content of a file that has been changed since: its size, and
// those of its pages that were overwritten or cut off.
type image struct {
	size  int64
	pages map[int64]bool // those that are kept, by their numbers
	file  *os.File       // has them; it has no name, and is nil before the first
}

func newImage(size int64) *image { return &image{size: size, pages: map[int64]bool{}} }

// keep keeps a page, of pageSize bytes. What was not synced need not fit into memory,
// so it is in a file in a folder.
func (i *image) keep(folder string, number int64, page []byte) (err error) {
	if i.file == nil {
		if i.file, err = os.CreateTemp(folder, "pages-"); err == nil {
			err = os.Remove(i.file.Name())
		}
		if err != nil {
			return fmt.Errorf("make a file for what is overwritten: %w", err)
		}
	}
	if _, err = i.file.WriteAt(page, number*pageSize); err == nil {
		i.pages[number] = true
	}
	return err
}

// cut makes a truncation safe.
func (i *image) cut(size int64) {
	if size >= i.size {
		return
	}
	i.size = size
	for number := range i.pages {
		if number*pageSize >= size {
			delete(i.pages, number)
		}
	}
}

func (i *image) drop() {
	if i.file != nil {
		i.file.Close()
	}
}
