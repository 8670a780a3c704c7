package foreign

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// gzipMagic begins every gzip file (RFC 1952).
var gzipMagic = []byte{0x1f, 0x8b}

// packed lists the first bytes of other compressed formats.
var packed = []struct{ magic, by string }{
	{"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"}, {"PK\x03\x04", "zip"}, {"\x04\x22\x4d\x18", "lz4"},
}

// File is a history file, decompressed if it was a gzip file.
type File struct {
	io.ReaderAt
	Size  int64
	close func() error
}

// Close closes the file.
func (f *File) Close() error { return f.close() }

// Open opens a regular file. A gzip file is decompressed into memory. An error in the content is an
// *InputError.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the history: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &InputError{What: "it is not a regular file"}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	head := make([]byte, 8)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		_ = file.Close()
		return nil, fmt.Errorf("read the history: %w", err)
	}
	for _, p := range packed {
		if bytes.HasPrefix(head[:n], []byte(p.magic)) {
			_ = file.Close()
			return nil, &InputError{What: fmt.Sprintf("it is packed by %s: unpack it first; only gzip is unpacked here", p.by)}
		}
	}
	if !bytes.HasPrefix(head[:n], gzipMagic) {
		return &File{file, info.Size(), file.Close}, nil
	}
	defer func() { _ = file.Close() }()
	data, err := unpack(file)
	if err != nil {
		return nil, &InputError{What: "it is packed by gzip and cannot be unpacked: " + err.Error()}
	}
	return &File{bytes.NewReader(data), int64(len(data)), func() error { return nil }}, nil
}

func unpack(from io.Reader) ([]byte, error) {
	r, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return data, r.Close()
}

// ReadFile returns the content of a file, decompressed if it was a gzip file. Errors are as for Open.
func ReadFile(path string) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data := make([]byte, file.Size)
	if n, err := file.ReadAt(data, 0); int64(n) < file.Size {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	return data, nil
}
