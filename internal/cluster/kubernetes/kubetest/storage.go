package kubetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster/wait"
)

// storageClass is the default class of the node's volumes, which are folders.
const storageClass = "folders"

// provisioner is the provisioner of the class: startStorage.
const provisioner = "stroppy.test/folders"

var (
	claims  = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
)

// startStorage provisions a volume for each claim of the class until the test ends, and removes it when the claim is
// gone.
func (n *Node) startStorage(t testing.TB) {
	t.Helper()
	n.create(t, "storage.k8s.io/v1", "StorageClass", "storageclasses", "", map[string]any{
		"metadata":    map[string]any{"name": storageClass, "annotations": map[string]any{"storageclass.kubernetes.io/is-default-class": "true"}},
		"provisioner": provisioner, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for wait.Sleep(ctx, 200*time.Millisecond) == nil {
			if err := n.provision(ctx); err != nil && ctx.Err() == nil {
				t.Logf("provision volumes: %v", err)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// provision makes missing volumes and removes unused ones.
func (n *Node) provision(ctx context.Context) error {
	wanted, err := n.Client.Resource(claims).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range wanted.Items {
		claim := &wanted.Items[i]
		class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
		volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
		if class == storageClass && volume == "" {
			err = errors.Join(err, n.makeVolume(ctx, claim))
		}
	}
	made, errList := n.Client.Resource(volumes).List(ctx, metav1.ListOptions{})
	if errList != nil {
		return errors.Join(err, errList)
	}
	for i := range made.Items {
		volume := &made.Items[i]
		phase, _, _ := unstructured.NestedString(volume.Object, "status", "phase")
		if phase == "Released" {
			errRemove := os.RemoveAll(n.volumePath(volume.GetName()))
			if errRemove == nil {
				errRemove = n.Client.Resource(volumes).Delete(ctx, volume.GetName(), metav1.DeleteOptions{})
			}
			err = errors.Join(err, errRemove)
		}
	}
	return err
}

func (n *Node) volumePath(name string) string { return filepath.Join(n.Dir, "volumes", name) }

// makeVolume makes a folder that any user may write, and a volume that is bound to the claim.
func (n *Node) makeVolume(ctx context.Context, claim *unstructured.Unstructured) error {
	name := "volume-" + string(claim.GetUID())
	path := n.volumePath(name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o777); err != nil {
		return err
	}
	size, _, _ := unstructured.NestedString(claim.Object, "spec", "resources", "requests", "storage")
	modes, _, _ := unstructured.NestedSlice(claim.Object, "spec", "accessModes")
	_, err := n.Client.Resource(volumes).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{"pv.kubernetes.io/provisioned-by": provisioner}},
		"spec": map[string]any{
			"capacity": map[string]any{"storage": size}, "accessModes": modes,
			"storageClassName": storageClass, "persistentVolumeReclaimPolicy": "Delete",
			"claimRef": map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.GetNamespace(), "name": claim.GetName(), "uid": string(claim.GetUID())},
			"hostPath": map[string]any{"path": path},
		},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // not bound yet
	}
	return err
}
