package kubetest

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/cluster/host"
	"stroppy/internal/cluster/wait"
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
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	must(t, wait.RetryEvery(ctx, 50*time.Millisecond, func() error {
		select {
		case <-p.Done():
			cancel()
			return fmt.Errorf("containerd has ended: %w: %s", p.Err(), n.logEnd("containerd"))
		default:
		}
		return ctr(ctx, "version")
	}))
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
		must(t, image.write(file))
		must(t, ctr(t.Context(), "images", "import", file))
		must(t, os.Remove(file))
	}
}

// write writes the image in the format of docker save: one layer, the configuration, and the list.
func (i *Image) write(file string) error {
	layer := file + ".layer"
	defer os.Remove(layer)
	sum, err := i.writeLayer(layer)
	if err != nil {
		return fmt.Errorf("make the image %s: %w", i.Name, err)
	}
	env := i.Env
	if !slices.ContainsFunc(env, func(one string) bool { return strings.HasPrefix(one, "PATH=") }) {
		env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, env...)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": i.Entrypoint, "User": i.User, "Env": env, "WorkingDir": "/"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum}},
	})
	if err != nil {
		return err
	}
	list, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{i.Name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	for _, one := range []struct {
		name string
		text []byte
	}{{"config.json", config}, {"manifest.json", list}} {
		if err := writeText(w, one.name, one.text); err != nil {
			return err
		}
	}
	return errors.Join(writeFile(w, "layer.tar", layer), w.Close(), out.Close())
}

// writeLayer writes the layer and returns its hash.
func (i *Image) writeLayer(file string) (sum string, err error) {
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer out.Close()
	hash := sha256.New()
	w := tar.NewWriter(io.MultiWriter(out, hash))
	made := map[string]bool{}
	folders := func(name string) error { // the folders above a file
		for at := range name {
			if name[at] != '/' || made[name[:at]] {
				continue
			}
			made[name[:at]] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[:at] + "/", Mode: 0o755}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return "", err
	}
	made["tmp"] = true
	for _, name := range slices.Sorted(maps.Keys(i.Texts)) {
		at := strings.TrimPrefix(name, "/")
		if err := errors.Join(folders(at), writeText(w, at, []byte(i.Texts[name]))); err != nil {
			return "", err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Files)) {
		root, at := i.Files[name], strings.TrimPrefix(name, "/")
		err := filepath.WalkDir(root, func(source string, entry fs.DirEntry, err error) error {
			below, errRel := filepath.Rel(root, source)
			if err := errors.Join(err, errRel); err != nil || entry.IsDir() {
				return err
			}
			target := path.Join(at, filepath.ToSlash(below))
			return errors.Join(folders(target), writeFile(w, target, source))
		})
		if err != nil {
			return "", err
		}
	}
	if err := errors.Join(w.Close(), out.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func writeText(w *tar.Writer, name string, text []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}

// writeFile writes a file, or the file that a link leads to.
func writeFile(w *tar.Writer, name, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil // a link to a folder, or a socket
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: int64(info.Mode().Perm() | 0o444), Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}
