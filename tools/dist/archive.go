package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing/fstest"
	"time"

	"stroppy/tools/try"
)

// file is a file of a release: its path below where it is put, with slashes, and its text.
type file struct {
	name string
	text []byte
}

// tree holds the files and folders of an archive. All have the same time.
type tree struct {
	fstest.MapFS
	time time.Time
}

func (r *release) tree() tree { return tree{fstest.MapFS{}, r.time} }

// add adds a file, or a folder if mode has fs.ModeDir, and the folders above it.
func (t tree) add(name string, mode fs.FileMode, text []byte) {
	t.MapFS[name] = &fstest.MapFile{Data: text, Mode: mode, ModTime: t.time}
	for dir := path.Dir(name); dir != "." && t.MapFS[dir] == nil; dir = path.Dir(dir) {
		t.MapFS[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: t.time}
	}
}

// addAll adds plain files below a folder.
func (t tree) addAll(folder string, list []file) {
	for _, f := range list {
		t.add(path.Join(folder, f.name), 0o644, f.text)
	}
}

// filesIn returns the files in a folder and below it.
func filesIn(folder string) (list []file) {
	root := os.DirFS(folder)
	try.Check(fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		list = append(list, file{name, text})
		return err
	}))
	return list
}

// archive packs the binary and the files beside it in one folder: as zip for Windows, which opens it without
// another program, and otherwise as tar with gzip.
func (r *release) archive(out string, b binary) (name string) {
	t, base := r.tree(), b.target.base()
	t.add(path.Join(base, b.target.program()), 0o755, try.Must(os.ReadFile(b.path)))
	for _, f := range r.shared {
		if strings.HasSuffix(f.name, ".ps1") == (b.target.os == "windows") || !strings.HasPrefix(f.name, "completions/") {
			t.add(path.Join(base, f.name), 0o644, f.text)
		}
	}
	write, name := t.writeTarGzip, base+".tar.gz"
	if b.target.os == "windows" {
		write, name = t.writeZip, base+".zip"
	}
	written(filepath.Join(out, name), write)
	return name
}

// written creates a file by a function, and removes the file again if the function fails.
func written(path string, write func(io.Writer)) {
	out := try.Must(os.Create(path))
	err := try.Attempt(func() {
		buffer := bufio.NewWriterSize(out, 1<<20)
		write(buffer)
		try.Check(buffer.Flush())
	})
	if err = errors.Join(err, out.Close()); err != nil {
		os.Remove(path)
	}
	try.Check(err)
}

func (t tree) writeTarGzip(w io.Writer) {
	packed := gzip.NewWriter(w)
	t.writeTar(packed)
	try.Check(packed.Close())
}

func (t tree) writeTar(w io.Writer) {
	archive := tar.NewWriter(w)
	try.Check(archive.AddFS(t))
	try.Check(archive.Close())
}

func (t tree) writeZip(w io.Writer) {
	archive := zip.NewWriter(w)
	try.Check(archive.AddFS(t))
	try.Check(archive.Close())
}

// compressed packs a text with gzip, without a name or a time, as small as possible. Debian requires that for man
// pages.
func compressed(text []byte) []byte {
	var packed bytes.Buffer
	w := try.Must(gzip.NewWriterLevel(&packed, gzip.BestCompression))
	try.Must(w.Write(text))
	try.Check(w.Close())
	return packed.Bytes()
}
