package foreign

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGzipIsUnpacked checks that a gzip file is decompressed, and that truncated files and other compressed
// formats are refused.
func TestGzipIsUnpacked(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := []byte(strings.Repeat("w(1,1,0,0)\n", 1000))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"plain": text, "packed": packed.Bytes(), "empty": {}} {
		got, err := ReadFile(write(name, data))
		if err != nil || name != "empty" && !bytes.Equal(got, text) {
			t.Errorf("%s is read as %d bytes: %v", name, len(got), err)
		}
	}
	for want, data := range map[string][]byte{
		"packed by gzip and cannot be unpacked": packed.Bytes()[:packed.Len()/2], "packed by zstd": []byte("\x28\xb5\x2f\xfd123456"), "packed by zip": []byte("PK\x03\x04123456"),
	} {
		_, err := ReadFile(write("other", data))
		if !errors.As(err, new(*InputError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v", err)
		}
	}
	if _, err := ReadFile(dir); !errors.As(err, new(*InputError)) {
		t.Errorf("of a directory the error is %v", err)
	}
}
