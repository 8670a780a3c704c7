package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
)

// ioChaos has calls to the files of a container's volume fail or take longer (IOChaosSpec).
const ioChaos = "IOChaos"

// Writer is a database one of whose servers can be had to write to its volume. The volume is of the
// server's container alone, so that nobody else sees what becomes of it.
type Writer interface {
	// Volume is the place in a server's container where the volume is mounted that Write goes to, and
	// that has none of the server's files that are mapped into memory.
	Volume() string
	// Write returns when a node's server has made something durable on its volume that no client
	// sees and that does not stay.
	Write(ctx context.Context, node int) error
}

var errNoWriter = errors.New("nobody can have this kind of server write to its volume, so nobody could see what becomes of its disk")

// DiskFaults says why the volume of the node's server can have no faults, nil if it can.
func (n *node) DiskFaults() error {
	w, ok := n.cluster.database.(Writer)
	if !ok {
		return errNoWriter
	}
	if pod := n.current(); pod != nil {
		if err := reached(pod, w.Volume()); err != nil {
			return err
		}
	}
	return n.cluster.chaosAllowed([]schema.GroupVersionKind{chaosKind(ioChaos)}, nil)
}

// FillDisk lets what needs room on the volume of the node's server fail: writes and new names. A
// server that ends because of it is started again by Kubernetes, on a volume without the fault.
func (n *node) FillDisk(ctx context.Context) (cluster.Effect, error) {
	v, err := n.hurtVolume(ctx, seenWithin, fullDisk())
	if err != nil {
		return cluster.Effect{}, err
	}
	e := cluster.Effect{Still: v.still, Heal: func(ctx context.Context) (string, error) {
		return v.heal(ctx, func(context.Context) (string, error) { return "a write found space", nil })
	}}
	e.Seen, err = v.look(ctx, func(ctx context.Context) (string, error) {
		_, err := v.write(ctx)
		if says, ended := v.ended(ctx); ended {
			if !noSpace(says) {
				return "", fmt.Errorf("its server has ended, and not for want of space: its log ends with %s", says)
			}
			e.Still, e.EndsItself = nil, true
			return "its server ended, for there was no space left, and Kubernetes starts it again on a disk that has room", nil
		}
		switch {
		case err == nil:
			return "", errors.New("a write found space")
		case !noSpace(err.Error()):
			return "", fmt.Errorf("a write failed, and not for want of space: %w", err)
		}
		return "a write found no space", nil
	})
	return e, err
}

// fullDisk is what an IOChaos says of what needs room.
func fullDisk() map[string]any {
	return map[string]any{
		"action": "fault", "errno": int64(28), // ENOSPC of Linux (errno(3))
		"methods": []any{"write", "create", "mknod", "mkdir", "symlink", "link"},
	}
}

// slowDisk is what it says of all calls.
func slowDisk(perCall time.Duration) map[string]any {
	return map[string]any{"action": "latency", "delay": perCall.String()}
}

// noSpace says whether a text has what ENOSPC is called (strerror(3)).
func noSpace(text string) bool {
	return strings.Contains(strings.ToLower(text), "no space left on device")
}

// SlowDisk lets every call to the volume of the node's server take so much longer.
func (n *node) SlowDisk(ctx context.Context, perCall time.Duration) (cluster.Effect, error) {
	v, err := n.hurtVolume(ctx, seenWithin+10*perCall, slowDisk(perCall))
	if err != nil {
		return cluster.Effect{}, err
	}
	slow := v.before + perCall
	took := func(ctx context.Context) (time.Duration, error) {
		took, err := v.write(ctx)
		return took.Round(time.Millisecond), err
	}
	e := cluster.Effect{Still: v.still, Heal: func(ctx context.Context) (string, error) {
		return v.heal(ctx, func(ctx context.Context) (string, error) {
			took, err := took(ctx)
			if err == nil && took >= slow {
				err = fmt.Errorf("a write takes %v yet", took)
			}
			return fmt.Sprintf("a write took %v", took), err
		})
	}}
	e.Seen, err = v.look(ctx, func(ctx context.Context) (string, error) {
		took, err := took(ctx)
		if says, ended := v.ended(ctx); ended { // which may take as long
			return "", fmt.Errorf("its server has ended: its log ends with %s", says)
		}
		if err == nil && took < slow {
			err = fmt.Errorf("a write took %v", took)
		}
		return fmt.Sprintf("a write took %v, and %v before", took, v.before.Round(time.Millisecond)), err
	})
	return e, err
}

// volume is that of a node's server with a fault by Chaos Mesh.
type volume struct {
	node   *node
	pod    string // its UID
	server string // the container's identifier
	within time.Duration
	before time.Duration // that a write took
	fault  *chaos
}

// hurtVolume injects a fault into the volume of the node's server, which is seen to write before,
// and whose effect may take so long to be seen. After an error nothing is injected.
func (n *node) hurtVolume(ctx context.Context, within time.Duration, fault map[string]any) (*volume, error) {
	fail := func(err error) (*volume, error) {
		return nil, fmt.Errorf("inject a fault into the volume of %s: %w", n.Name(), err)
	}
	pod := n.current()
	if pod == nil || !n.Running() {
		return fail(errors.New("its server is not running"))
	}
	at := n.cluster.database.(Writer).Volume()
	if err := reached(pod, at); err != nil {
		return fail(err)
	}
	v := &volume{node: n, pod: string(pod.UID), server: serverOf(pod).ContainerID, within: within}
	for range 3 {
		took, err := v.write(ctx)
		if err != nil {
			return fail(fmt.Errorf("its server does not write without one: %w", err))
		}
		v.before = max(v.before, took)
	}
	var err error
	if v.fault, err = n.cluster.inject(ctx, ioChaos, volumeSpec(n.cluster, n.number, pod.Spec.Containers[0].Name, at, fault)); err != nil {
		return fail(err)
	}
	return v, nil
}

// volumeSpec is an IOChaos with a fault of a volume.
func volumeSpec(c *Cluster, node int, container, at string, fault map[string]any) map[string]any {
	spec := map[string]any{"mode": "all", "selector": c.selects(node), "containerNames": []any{container}, "volumePath": at, "percent": int64(100)}
	maps.Copy(spec, fault)
	return spec
}

func (v *volume) write(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := v.node.cluster.database.(Writer).Write(ctx, v.node.number)
	return time.Since(began), err
}

// look sees something, if need be again and again.
func (v *volume) look(ctx context.Context, see func(context.Context) (string, error)) (string, error) {
	text, err := lookFor(ctx, v.within, see)
	if err != nil {
		return "", fmt.Errorf("what Chaos Mesh says that it has injected into the volume of %s was not seen: %w", v.node.Name(), err)
	}
	return text + ", by Chaos Mesh", nil
}

// still says why the fault is not there any more although nobody has healed it.
func (v *volume) still(context.Context) error {
	pod := v.node.current()
	if pod == nil || string(pod.UID) != v.pod || serverOf(pod).ContainerID != v.server {
		return fmt.Errorf("the server of %s was started again meanwhile, on a disk without the fault", v.node.Name())
	}
	return nil
}

// heal ends the fault, and sees it by a write and by ended. A server that is down has no disk, and
// has one without the fault when it comes back.
func (v *volume) heal(ctx context.Context, ended func(context.Context) (string, error)) (string, error) {
	if err := v.fault.heal(ctx); err != nil {
		return "", err
	}
	if !v.node.Running() {
		return "the fault has gone with the server", nil
	}
	return lookFor(ctx, v.within, func(ctx context.Context) (string, error) {
		if _, err := v.write(ctx); err != nil {
			return "", fmt.Errorf("the server of %s does not write although its disk is healed: %w", v.node.Name(), err)
		}
		return ended(ctx)
	})
}

// wordsRead are lines of a server's log, among the last of which is why it ended.
const wordsRead = 20

// ended says whether the server has ended since the fault was injected, and the last lines that it
// wrote.
func (v *volume) ended(ctx context.Context) (says string, ended bool) {
	pod := v.node.current()
	if pod == nil || string(pod.UID) != v.pod {
		return "nothing, for its pod has gone", true
	}
	now := serverOf(pod)
	running := now.State.Running != nil
	if now.ContainerID == v.server && running {
		return "", false
	}
	says, err := v.node.cluster.api.log(ctx, pod, now.Name, wordsRead, running)
	if err != nil {
		says = err.Error()
	}
	return says, true
}

// serverOf is the state of a pod's first container.
func serverOf(pod *corev1.Pod) (none corev1.ContainerStatus) {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == pod.Spec.Containers[0].Name {
			return s
		}
	}
	return none
}

// reached says why Chaos Mesh cannot inject faults into what a pod's first container has mounted
// somewhere. It moves that into a folder beside it, which it makes.
func reached(pod *corev1.Pod, at string) error {
	server := &pod.Spec.Containers[0]
	if !slices.ContainsFunc(server.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == at }) {
		return fmt.Errorf("the container %s has no volume mounted at %s", server.Name, at)
	}
	if beside := path.Dir(at); !writable(server, beside) {
		return fmt.Errorf("the container %s cannot write to %s, where Chaos Mesh has to make a folder", server.Name, beside)
	}
	return nil
}

// writable says whether a folder of a container lies where files can be made.
func writable(c *corev1.Container, folder string) bool {
	is := c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem
	longest := ""
	for _, m := range c.VolumeMounts {
		at := path.Clean(m.MountPath)
		if len(at) > len(longest) && (folder == at || strings.HasPrefix(folder, at+"/")) {
			longest, is = at, !m.ReadOnly
		}
	}
	return is
}
