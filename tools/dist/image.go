package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const imageName = "stroppy-image.oci.tar"

// user of the image: the number that images without a root user agree on.
const user = 65532

// image makes one archive of the image for all the binaries' processors.
func (r *release) image(out string, binaries []binary) (string, error) {
	base, err := r.layer(withFolders(baseEntries()))
	if err != nil {
		return "", err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		one, err := r.imageOf(b, base)
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.target.os, Architecture: b.target.arch}}})
	}
	index = mutate.Annotations(index, r.annotations()).(v1.ImageIndex)
	folder := filepath.Join(r.scratch, "image")
	files, err := layout.Write(folder, empty.Index)
	if err != nil {
		return "", err
	}
	tag := strings.ReplaceAll(r.version, "+", "_") // which no tag may have
	names := map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "localhost/stroppy:" + tag}
	if err := files.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return "", err
	}
	entries, err := entriesOf(folder)
	if err != nil {
		return "", err
	}
	return imageName, written(filepath.Join(out, imageName), func(w io.Writer) error { return writeTar(w, entries, r.time) })
}

// imageOf makes the image for one processor.
func (r *release) imageOf(b binary, base v1.Layer) (v1.Image, error) {
	program, err := r.layer(withFolders([]entry{{name: "usr/bin/stroppy", mode: 0o755, path: b.path}}))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.time}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: base, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "certificates, users and folders"}},
		mutate.Addendum{Layer: program, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "stroppy " + r.version}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture = created, b.target.os, b.target.arch
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/stroppy"}, User: "65532:65532", WorkingDir: "/runs",
		Env:    []string{"PATH=/usr/bin", "HOME=/runs"},
		Labels: r.annotations(),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, r.annotations()).(v1.Image), nil
}

func (r *release) annotations() map[string]string {
	list := map[string]string{
		"org.opencontainers.image.title":       "stroppy",
		"org.opencontainers.image.description": summary,
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.created":     r.time.Format("2006-01-02T15:04:05Z07:00"),
	}
	if r.commit != "" {
		list["org.opencontainers.image.revision"] = r.commit
	}
	return list
}

// layer makes a layer, which is compressed once.
func (r *release) layer(entries []entry) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := writeTarGzip(&packed, entries, r.time); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// baseEntries returns the files that the binary needs: certificate authorities, the user's name, and the folders
// where it writes. With a read-only root these folders are volumes.
func baseEntries() []entry {
	const number = "65532"
	return []entry{
		{name: "etc/group", mode: 0o644, text: []byte("root:x:0:\nstroppy:x:" + number + ":\n")},
		{name: "etc/passwd", mode: 0o644, text: []byte("root:x:0:0:root:/:/sbin/nologin\nstroppy:x:" + number + ":" + number + ":stroppy:/runs:/sbin/nologin\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: certificates()},
		{name: "runs/", mode: 0o755, owner: user},
		{name: "tmp/", mode: 0o1777},
	}
}

// certificates are Mozilla's roots, as the Go project publishes them in a module, without
// those that Mozilla trusts under conditions that a file cannot express.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return text.Bytes()
}

// entriesOf are the files in a folder and below it.
func entriesOf(folder string) (list []entry, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		list = append(list, entry{name: filepath.ToSlash(name), mode: 0o644, path: path})
		return err
	})
	return withFolders(list), err
}
