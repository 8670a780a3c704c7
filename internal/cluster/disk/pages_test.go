//go:build linux

package disk

import (
	"bytes"
	"testing"
)

// TestPages holds that pages are kept as they were put, and that what is dropped
// or cut off is room for others.
func TestPages(t *testing.T) {
	store, err := newPageStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.file.Close()
	page := func(n int64) []byte { return bytes.Repeat([]byte{byte(n)}, pageSize) }
	content := newImage(10*pageSize - 5)
	fill := func() {
		for n := range int64(10) {
			if content.pages[n], err = store.put(page(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	if content.pages[0] != blank || store.next != 9 {
		t.Errorf("a page of zeros is in slot %d, and %d slots are in use, want 9", content.pages[0], store.next)
	}
	got := make([]byte, pageSize)
	for n, at := range content.pages {
		if err := store.get(at, got); err != nil || !bytes.Equal(got, page(n)) {
			t.Errorf("page %d is %d, %v", n, got[0], err)
		}
	}
	content.cut(20*pageSize, store)
	content.cut(4*pageSize+1, store)
	if content.size != 4*pageSize+1 || len(content.pages) != 5 || len(store.free) != 5 {
		t.Errorf("after a cut: %d bytes, %d pages, %d slots free", content.size, len(content.pages), len(store.free))
	}
	content.drop(store)
	if len(store.free) != 9 {
		t.Errorf("%d slots are free, want 9", len(store.free))
	}
	fill()
	if store.next != 9 || len(store.free) != 0 {
		t.Errorf("%d slots, %d free: those that were dropped are not used again", store.next, len(store.free))
	}
}
