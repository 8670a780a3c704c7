package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file of a release: its path below where it is put, with slashes, and its text.
type file struct {
	name string
	text []byte
}

// entry is an entry of an archive: a folder if its name ends with a slash, else a file with a text or with the
// content of path.
type entry struct {
	name  string
	mode  fs.FileMode
	owner int // user and group
	text  []byte
	path  string
}

func (e *entry) open() (io.ReadCloser, int64, error) {
	if e.path == "" {
		return io.NopCloser(bytes.NewReader(e.text)), int64(len(e.text)), nil
	}
	opened, err := os.Open(e.path)
	if err != nil {
		return nil, 0, err
	}
	info, err := opened.Stat()
	if err != nil {
		opened.Close()
		return nil, 0, err
	}
	return opened, info.Size(), nil
}

// archive packs the binary with what stands beside it, in one folder: as zip for Windows,
// which opens it without a program, else as tar with gzip.
func (r *release) archive(out string, b binary) (name string, err error) {
	entries := []entry{{name: b.target.program(), mode: 0o755, path: b.path}}
	for _, f := range r.shared {
		if strings.HasSuffix(f.name, ".ps1") == (b.target.os == "windows") || !strings.HasPrefix(f.name, "completions/") {
			entries = append(entries, entry{name: f.name, mode: 0o644, text: f.text})
		}
	}
	for i := range entries {
		entries[i].name = path.Join(b.target.base(), entries[i].name)
	}
	entries = withFolders(entries)
	write := writeTarGzip
	name = b.target.base() + ".tar.gz"
	if b.target.os == "windows" {
		write, name = writeZip, b.target.base()+".zip"
	}
	return name, written(filepath.Join(out, name), func(w io.Writer) error { return write(w, entries, r.time) })
}

// withFolders adds the folders that the entries are in, and sorts all by name.
func withFolders(entries []entry) []entry {
	have := map[string]bool{}
	for _, e := range entries {
		have[e.name] = true
	}
	for _, e := range entries {
		for dir := path.Dir(strings.TrimSuffix(e.name, "/")); dir != "."; dir = path.Dir(dir) {
			if !have[dir+"/"] {
				have[dir+"/"] = true
				entries = append(entries, entry{name: dir + "/", mode: 0o755})
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries
}

// written creates a file by a function, and removes it again where that fails.
func written(path string, write func(io.Writer) error) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(out, 1<<20)
	if err = write(buffer); err == nil {
		err = buffer.Flush()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}

func writeTarGzip(w io.Writer, entries []entry, when time.Time) error {
	packed, err := gzip.NewWriterLevel(w, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	if err := writeTar(packed, entries, when); err != nil {
		return err
	}
	return packed.Close()
}

// writeTar writes entries as they stand, all of the same time.
func writeTar(w io.Writer, entries []entry, when time.Time) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: int64(e.mode), Uid: e.owner, Gid: e.owner, ModTime: when, Format: tar.FormatPAX}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
			if err := archive.WriteHeader(header); err != nil {
				return err
			}
			continue
		}
		content, size, err := e.open()
		if err != nil {
			return err
		}
		header.Typeflag, header.Size = tar.TypeReg, size
		if err = archive.WriteHeader(header); err == nil {
			_, err = io.Copy(archive, content)
		}
		content.Close()
		if err != nil {
			return fmt.Errorf("archive %s: %w", e.name, err)
		}
	}
	return archive.Close()
}

func writeZip(w io.Writer, entries []entry, when time.Time) error {
	archive := zip.NewWriter(w)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.DefaultCompression)
	})
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
		if strings.HasSuffix(e.name, "/") {
			header.Method = zip.Store
			header.SetMode(fs.ModeDir | e.mode)
			if _, err := archive.CreateHeader(header); err != nil {
				return err
			}
			continue
		}
		header.SetMode(e.mode)
		part, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		content, _, err := e.open()
		if err != nil {
			return err
		}
		_, err = io.Copy(part, content)
		content.Close()
		if err != nil {
			return fmt.Errorf("archive %s: %w", e.name, err)
		}
	}
	return archive.Close()
}

// compressed packs a text with gzip, without a name or a time, as small as possible. Debian requires that for man
// pages.
func compressed(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
