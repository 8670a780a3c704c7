package disk

import (
	"fmt"
	"os"
)

// pageSize is the unit of saved content in bytes.
const pageSize = 4096

// image is the safe content of a file that has changed since: its size, and the pages that were overwritten or cut
// off.
type image struct {
	size  int64
	pages map[int64]bool // numbers of the saved pages
	file  *os.File       // holds the saved pages; it has no name, and is nil before the first page
}

func newImage(size int64) *image { return &image{size: size, pages: map[int64]bool{}} }

// keep saves a page of pageSize bytes. The pages are in a file in a folder, because they need not fit into memory.
func (i *image) keep(folder string, number int64, page []byte) (err error) {
	if i.file == nil {
		if i.file, err = os.CreateTemp(folder, "pages-"); err == nil {
			err = os.Remove(i.file.Name())
		}
		if err != nil {
			return fmt.Errorf("make a file for overwritten pages: %w", err)
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
