//go:build linux

package disk

import (
	"bytes"
	"os"
	"testing"
)

// TestPagesOfFileAreKeptUntilTruncation checks that pages keep their content until they are cut off, and that
// their file has no name.
func TestPagesOfFileAreKeptUntilTruncation(t *testing.T) {
	folder := t.TempDir()
	page := func(n int64) []byte { return bytes.Repeat([]byte{byte(n)}, pageSize) }
	content := newImage(10*pageSize - 5)
	defer content.drop()
	for n := int64(9); n >= 0; n-- {
		if err := content.keep(folder, n, page(n)); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	content.cut(20 * pageSize)
	if content.size != 10*pageSize-5 || len(content.pages) != 10 {
		t.Errorf("after a cut that cuts nothing off: %d bytes, %d pages", content.size, len(content.pages))
	}
	content.cut(4*pageSize + 1)
	if content.size != 4*pageSize+1 || len(content.pages) != 5 {
		t.Errorf("after a cut: %d bytes, %d pages", content.size, len(content.pages))
	}
	got := make([]byte, pageSize)
	for n := range content.pages {
		if _, err := content.file.ReadAt(got, n*pageSize); err != nil || !bytes.Equal(got, page(n)) {
			t.Errorf("page %d is %d, %v", n, got[0], err)
		}
	}
}
