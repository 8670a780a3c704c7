package main

import (
	"crypto/x509"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImageHasOneEntryPerProcessor reads the image back: an index of one image for each processor, which is sound.
func TestImageHasOneEntryPerProcessor(t *testing.T) {
	folder := t.TempDir()
	for name, f := range untar(t, read(t, fakeFolder(t), imageName), false) {
		path := filepath.Join(folder, name)
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := layout.FromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	top, err := files.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	names, err := top.IndexManifest()
	if err != nil || len(names.Manifests) != 1 || names.Manifests[0].Annotations["io.containerd.image.name"] != "localhost/stroppy:1.2.0-rc.1_dirty" {
		t.Fatalf("%+v, %v", names, err)
	}
	index, err := top.ImageIndex(names.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		if p := list.Manifests[i].Platform; p == nil || p.OS != "linux" || p.Architecture != arch {
			t.Errorf("image %d is for %v", i, p)
		}
		image, err := index.Image(list.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, arch)
	}
}

func checkImage(t *testing.T, image v1.Image, arch string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; config.Architecture != arch || config.OS != "linux" || c.User != "65532:65532" || c.WorkingDir != "/runs" || len(c.Entrypoint) != 1 || c.Entrypoint[0] != "/usr/bin/stroppy" {
		t.Errorf("%+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("%v, %v", layers, err)
	}
	all := map[string]packed{}
	for _, layer := range layers {
		in, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range untar(t, text, false) {
			all[name] = f
		}
	}
	if got := all["usr/bin/stroppy"]; got != (packed{0o755, "a fake binary for linux/" + arch + "\n"}) {
		t.Errorf("the binary is %+v", got)
	}
	if all["tmp/"].mode != 0o1777 || all["runs/"].mode != 0o755 {
		t.Errorf("the folders are %+v and %+v", all["tmp/"], all["runs/"])
	}
	certificates := all["etc/ssl/certs/ca-certificates.crt"].text
	if n := strings.Count(certificates, "BEGIN CERTIFICATE"); n < 50 || !x509.NewCertPool().AppendCertsFromPEM([]byte(certificates)) {
		t.Errorf("%d certificates", n)
	}
}
