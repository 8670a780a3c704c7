package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"stroppy/tools/try"
)

const imageName = "stroppy-image.oci.tar"

// user of the image: the number that images without a root user agree on.
const user = 65532

// image makes one archive of the image for all the binaries' processors.
func (r *release) image(out string, binaries []binary) string {
	base := r.layer(r.baseTree())
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: r.imageOf(b, base),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.target.os, Architecture: b.target.arch}}})
	}
	index = mutate.Annotations(index, r.annotations()).(v1.ImageIndex)
	folder := filepath.Join(r.scratch, "image")
	files := try.Must(layout.Write(folder, empty.Index))
	tag := strings.ReplaceAll(r.version, "+", "_") // which no tag may have
	names := map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "localhost/stroppy:" + tag}
	try.Check(files.AppendIndex(index, layout.WithAnnotations(names)))
	t := r.tree()
	t.addAll("", filesIn(folder))
	written(filepath.Join(out, imageName), t.writeTar)
	return imageName
}

// imageOf makes the image for one processor.
func (r *release) imageOf(b binary, base v1.Layer) v1.Image {
	program := r.tree()
	program.add("usr/bin/stroppy", 0o755, try.Must(os.ReadFile(b.path)))
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.time}
	image = try.Must(mutate.Append(image,
		mutate.Addendum{Layer: base, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "certificates, users and folders"}},
		mutate.Addendum{Layer: r.layer(program), MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "stroppy " + r.version}}))
	config := try.Must(image.ConfigFile()).DeepCopy()
	config.Created, config.OS, config.Architecture = created, b.target.os, b.target.arch
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/stroppy"}, User: "65532:65532", WorkingDir: "/runs",
		Env:    []string{"PATH=/usr/bin", "HOME=/runs"},
		Labels: r.annotations(),
	}
	return mutate.Annotations(try.Must(mutate.ConfigFile(image, config)), r.annotations()).(v1.Image)
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
func (r *release) layer(t tree) v1.Layer {
	var packed bytes.Buffer
	t.writeTarGzip(&packed)
	return try.Must(tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer)))
}

// baseTree returns the files that the binary needs: certificate authorities, the user's name, and the folders
// where it writes. With a read-only root these folders are volumes.
func (r *release) baseTree() tree {
	const number = "65532"
	t := r.tree()
	t.add("etc/group", 0o644, []byte("root:x:0:\nstroppy:x:"+number+":\n"))
	users := "root:x:0:0:root:/:/sbin/nologin\nstroppy:x:" + number + ":" + number + ":stroppy:/runs:/sbin/nologin\n"
	t.add("etc/passwd", 0o644, []byte(users))
	t.add("etc/ssl/certs/ca-certificates.crt", 0o644, certificates())
	t.add("runs", fs.ModeDir|0o755, nil)
	t.MapFS["runs"].Sys = &tar.Header{Uid: user, Gid: user}
	t.add("tmp", fs.ModeDir|fs.ModeSticky|0o777, nil)
	return t
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
