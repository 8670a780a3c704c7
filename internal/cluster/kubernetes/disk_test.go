package kubernetes

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// writers is a database that is asked for nothing here but whether its servers can be had to write.
type writers struct{ Database }

func (writers) Volume() string { return "/data" }

func (writers) Write(context.Context, int) error { return errors.New("nobody has a disk") }

// TestReached holds where Chaos Mesh can inject faults into a volume, and why it cannot.
func TestReached(t *testing.T) {
	yes := true
	readOnly := &corev1.SecurityContext{ReadOnlyRootFilesystem: &yes}
	mount := func(paths ...string) (mounts []corev1.VolumeMount) {
		for _, at := range paths {
			mounts = append(mounts, corev1.VolumeMount{Name: "data", MountPath: at})
		}
		return mounts
	}
	for name, c := range map[string]struct {
		mounts  []corev1.VolumeMount
		context *corev1.SecurityContext
		says    string
	}{
		"none":                {mount("/var/lib"), nil, "no volume mounted at /var/lib/db"},
		"one":                 {mount("/var/lib/db/"), nil, ""},
		"read-only root":      {mount("/var/lib/db"), readOnly, "cannot write to /var/lib"},
		"in another volume":   {mount("/var/lib", "/var/lib/db"), readOnly, ""},
		"below another one":   {mount("/var", "/var/lib/db"), readOnly, ""},
		"another name beside": {mount("/var/li", "/var/lib/db"), readOnly, "cannot write to /var/lib"},
		"read-only beside":    {append(mount("/var/lib/db"), corev1.VolumeMount{Name: "x", MountPath: "/var/lib", ReadOnly: true}), nil, "cannot write to /var/lib"},
	} {
		err := reached(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", VolumeMounts: c.mounts, SecurityContext: c.context}}}}, "/var/lib/db")
		if c.says != "" {
			says(t, err, c.says)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStill holds that a fault counts as gone with the server that had it.
func TestStill(t *testing.T) {
	status := func(id string) corev1.PodStatus {
		running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", ContainerID: "other"}, {Name: "db", ContainerID: id, State: running}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db"}}}, Status: status("a")}
	pod.Name, pod.UID = "x", "1"
	w := &podWatch{pods: map[string]*corev1.Pod{"x": pod}}
	v := &volume{node: &node{cluster: &Cluster{pods: w}, pod: "x"}, pod: "1", server: "a", within: time.Second}
	if err := v.still(t.Context()); err != nil {
		t.Error(err)
	}
	if says, ended := v.ended(t.Context()); ended {
		t.Errorf("a server that runs has ended with %q", says)
	}
	pod.Status = status("b")
	says(t, v.still(t.Context()), "started again meanwhile")
	pod.Status, pod.UID = status("a"), "2"
	says(t, v.still(t.Context()), "started again meanwhile")
	if !noSpace("write /data/x: No space left on device") || noSpace("wrote x") {
		t.Error("what ENOSPC is called is not known")
	}
}
