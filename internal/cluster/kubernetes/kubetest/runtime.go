package kubetest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"stroppy/internal/cluster/host"
)

const pauseImage = "stroppy.test/pause:3.10"

// Image is a container image of files of this machine.
type Image struct {
	Name       string            // with its tag, such as stroppy.test/etcd:3.6.8
	Files      map[string]string // path in the image → file or folder here, with its contents
	Texts      map[string]string // path in the image → content of the file
	Entrypoint []string
	User       string   // a number, and :GROUP; empty: root
	Env        []string // NAME=VALUE
}

// startContainerd starts containerd with the runtime runc and a bridge that joins the pods.
func (n *Node) startContainerd(t testing.TB) {
	t.Helper()
	network := filepath.Join(n.Dir, "cni")
	must(t, os.MkdirAll(network, 0o700))
	must(t, os.WriteFile(filepath.Join(network, "10-pods.conflist"), []byte(`{"cniVersion": "0.4.0", "name": "pods", "plugins": [
	{"type": "bridge", "bridge": "pods0", "isGateway": true, "isDefaultGateway": true, "hairpinMode": true,
	 "ipam": {"type": "host-local", "dataDir": "`+n.Dir+`/addresses", "ranges": [[{"subnet": "`+podNetwork+`"}]]}}]}`), 0o600))
	config := filepath.Join(n.Dir, "containerd.toml")
	must(t, os.WriteFile(config, []byte(`version = 2
root = "`+n.Dir+`/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "`+pauseImage+`"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "`+network+`"
`), 0o600))
	p := n.runCommand(t, "containerd", exec.Command("containerd", "--config", config))
	n.await(t, "containerd", p, func(ctx context.Context) error { return ctr(ctx, "version") })
}

// ctr runs a command of containerd's client.
func ctr(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ctr", append([]string{"--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", args[0], err, host.LastLines(out))
	}
	return nil
}

// Load loads images into the node's runtime.
func (n *Node) Load(t testing.TB, images ...Image) {
	t.Helper()
	for _, image := range images {
		file := filepath.Join(n.Dir, "image.tar")
		image.write(t, file)
		must(t, ctr(t.Context(), "images", "import", file))
		must(t, os.Remove(file))
	}
}

// write writes the image in the format of docker save: one layer, the configuration, and the list.
func (i *Image) write(t testing.TB, file string) {
	t.Helper()
	layer := i.layer(t)
	env := i.Env
	if !slices.ContainsFunc(env, func(one string) bool { return strings.HasPrefix(one, "PATH=") }) {
		env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, env...)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": i.Entrypoint, "User": i.User, "Env": env, "WorkingDir": "/"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	must(t, err)
	list, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{i.Name}, "Layers": []string{"layer.tar"}}})
	must(t, err)
	must(t, os.WriteFile(file, tarOf(t, func(w *tar.Writer) {
		writeFile(t, w, "config.json", 0o644, config)
		writeFile(t, w, "manifest.json", 0o644, list)
		writeFile(t, w, "layer.tar", 0o644, layer)
	}), 0o600))
}

// layer returns the files of the image. The runtime makes the folders above them.
func (i *Image) layer(t testing.TB) []byte {
	t.Helper()
	return tarOf(t, func(w *tar.Writer) {
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}))
		for name, text := range i.Texts {
			writeFile(t, w, strings.TrimPrefix(name, "/"), 0o644, []byte(text))
		}
		for name, root := range i.Files {
			must(t, filepath.WalkDir(root, func(source string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				info, err := os.Stat(source) // a link counts as the file that it leads to
				if err != nil || !info.Mode().IsRegular() {
					return err // a link to a folder, or a socket
				}
				text, err := os.ReadFile(source)
				writeFile(t, w, strings.TrimPrefix(name+strings.TrimPrefix(source, root), "/"), int64(info.Mode().Perm()|0o444), text)
				return err
			}))
		}
	})
}

// tarOf returns an archive.
func tarOf(t testing.TB, fill func(w *tar.Writer)) []byte {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	fill(w)
	must(t, w.Close())
	return text.Bytes()
}

func writeFile(t testing.TB, w *tar.Writer, name string, mode int64, text []byte) {
	t.Helper()
	must(t, w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(text))}))
	_, err := w.Write(text)
	must(t, err)
}
