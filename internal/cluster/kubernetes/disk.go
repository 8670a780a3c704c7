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

	"stroppy/internal/fault"
)

// ioChaos makes calls to the files of a container's volume fail or take longer (IOChaosSpec).
const ioChaos = "IOChaos"

// Writer is a database whose servers can be made to write to their volume. Only the server's container uses the
// volume, so nobody else is affected.
type Writer interface {
	// Volume returns the mount point, in a server's container, of the volume that Write writes to. The server must
	// not map files of this volume into memory.
	Volume() string
	// Write makes a node's server store something durably on its volume. No client sees it, and it does not stay.
	Write(ctx context.Context, node int) error
}

var errNoWriter = errors.New("this kind of server cannot be made to write to its volume, so the fault could not be verified: use k8s/etcd, or inject an IOChaos of your own by `chaos 'FILE'`")

// DiskFaults returns why the volume of the node's server cannot have faults, or nil if it can.
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

// FillDisk makes operations that need space on the volume fail: writes and new names. If the server ends because of
// this, Kubernetes starts it again on a volume without the fault.
func (n *node) FillDisk(ctx context.Context) (fault.Effect, error) {
	v, err := n.injectVolume(ctx, seenWithin, fullDisk())
	if err != nil {
		return fault.Effect{}, err
	}
	return v.full(ctx)
}

// full returns the effect of a full volume.
func (v *volume) full(ctx context.Context) (e fault.Effect, err error) {
	endsItself := false
	e, err = v.effect(ctx, func(ctx context.Context) (string, error) {
		_, write := v.write(ctx)
		end := v.ended(ctx)
		endsItself = end != nil
		return noRoom(write, end)
	}, func(ctx context.Context) (string, error) {
		_, err := v.write(ctx)
		return "a write found space", err
	})
	if endsItself && err == nil {
		e.Still, e.EndsItself = nil, true
	}
	return e, err
}

// noRoom returns how a full volume was seen: by the end of its server, or by the error of a write.
func noRoom(write error, end *ending) (seen string, err error) {
	switch {
	case end != nil && end.unread == nil && noSpace(end.log):
		return "its server ended because there was no space left; Kubernetes starts it again on a disk with space", nil
	case end != nil:
		return "", fmt.Errorf("its server has ended for another reason than a full disk: %w", end)
	case write == nil:
		return "", errors.New("a write found space")
	case !noSpace(write.Error()):
		return "", fmt.Errorf("a write failed for another reason than a full disk: %w", write)
	}
	return "a write found no space", nil
}

// fullDisk returns the part of an IOChaos for a full disk.
func fullDisk() map[string]any {
	return map[string]any{
		"action": "fault", "errno": int64(28), // ENOSPC on Linux (errno(3))
		"methods": []any{"write", "create", "mknod", "mkdir", "symlink", "link"},
	}
}

// slowDisk returns the part of an IOChaos for a slow disk.
func slowDisk(perCall time.Duration) map[string]any {
	return map[string]any{"action": "latency", "delay": perCall.String()}
}

// noSpace reports whether a text contains the message of ENOSPC (strerror(3)).
func noSpace(text string) bool {
	return strings.Contains(strings.ToLower(text), "no space left on device")
}

// writesSeen is the number of writes that show the duration of a write. A single write may be late for another
// reason, such as a compaction.
const writesSeen = 3

// SlowDisk makes every call to the volume of the node's server take longer by perCall.
func (n *node) SlowDisk(ctx context.Context, perCall time.Duration) (fault.Effect, error) {
	const calls = 10 // approximate number of calls per write
	v, err := n.injectVolume(ctx, seenWithin+writesSeen*calls*perCall, slowDisk(perCall))
	if err != nil {
		return fault.Effect{}, err
	}
	return v.slow(ctx, perCall)
}

// slow returns the effect of a slow volume.
func (v *volume) slow(ctx context.Context, perCall time.Duration) (fault.Effect, error) {
	return v.effect(ctx, func(ctx context.Context) (string, error) {
		times, err := v.writes(ctx)
		if end := v.ended(ctx); end != nil { // its end may take as long
			return "", fmt.Errorf("its server has ended: %w", end)
		}
		if err != nil {
			return "", err
		}
		return slowed(times, v.before, perCall)
	}, func(ctx context.Context) (string, error) {
		times, err := v.writes(ctx)
		if err != nil {
			return "", err
		}
		return fast(times, v.before+perCall)
	})
}

// slowed returns how slow calls were seen: each write takes longer than the longest write before by at least perCall.
func slowed(times []time.Duration, before, perCall time.Duration) (string, error) {
	text := fmt.Sprintf("each of %d successive writes took at least %v, and at most %v before", len(times), milliseconds(slices.Min(times)), milliseconds(before))
	if slices.Min(times) < before+perCall {
		return "", errors.New(text)
	}
	return text, nil
}

// fast returns how the end of a slow disk was seen: each write takes less than a limit.
func fast(times []time.Duration, slow time.Duration) (string, error) {
	longest := slices.Max(times)
	if longest >= slow {
		return "", fmt.Errorf("one of %d writes still takes %v", len(times), milliseconds(longest))
	}
	return fmt.Sprintf("none of %d successive writes took longer than %v", len(times), milliseconds(longest)), nil
}

func milliseconds(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// volume is the volume of a node's server with a fault by Chaos Mesh.
type volume struct {
	server
	within time.Duration // bounds the time until the effect is seen
	before time.Duration // duration of the longest write before the fault
}

// injectVolume injects a fault into the volume of the node's server after it was seen to write. within bounds the
// time until the effect is seen. After an error nothing is injected.
func (n *node) injectVolume(ctx context.Context, within time.Duration, fault map[string]any) (*volume, error) {
	fail := func(err error) (*volume, error) {
		return nil, fmt.Errorf("inject a fault into the volume of %s: %w", n.Name(), err)
	}
	server, pod, err := n.server()
	if err != nil {
		return fail(err)
	}
	at := n.cluster.database.(Writer).Volume()
	if err := reached(pod, at); err != nil {
		return fail(err)
	}
	v := &volume{server: server, within: within}
	times, err := v.writes(ctx)
	if err != nil {
		return fail(fmt.Errorf("its server does not write without one: %w", err))
	}
	v.before = slices.Max(times)
	if v.fault, err = n.cluster.inject(ctx, ioChaos, volumeSpec(n.cluster, n.number, pod.Spec.Containers[0].Name, at, fault)); err != nil {
		return fail(err)
	}
	return v, nil
}

// volumeSpec returns an IOChaos for the volume of a container.
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

// writes returns the durations of writesSeen successive writes.
func (v *volume) writes(ctx context.Context) (times []time.Duration, err error) {
	for len(times) < writesSeen && err == nil {
		var took time.Duration
		took, err = v.write(ctx)
		times = append(times, took)
	}
	return times, err
}

// effect verifies the fault and its end. The end at a server that is down is not seen, because the server returns
// without the fault.
func (v *volume) effect(ctx context.Context, seen, ended func(context.Context) (string, error)) (fault.Effect, error) {
	gone := func() string {
		if v.node.Running() {
			return ""
		}
		return "the fault has gone with the server"
	}
	e, err := v.fault.effect(ctx, sight{
		into: "the volume of " + v.node.Name(), healed: "the disk of " + v.node.Name() + " as healed", gone: gone,
		seen: observing(v.within, seen), ended: observing(v.within, ended),
	})
	e.Still = v.still
	return e, err
}

// ending describes how a server ended.
type ending struct {
	log    string // its last lines
	unread error  // why the log is not available
}

func (e *ending) Error() string {
	if e.unread != nil {
		return e.unread.Error()
	}
	return "its log ends with " + e.log
}

// logLines is the number of log lines that contain the reason of the end.
const logLines = 20

// ended returns how the server has ended since the fault was injected, or nil if it has not.
func (v *volume) ended(ctx context.Context) *ending {
	pod := v.node.current()
	if pod == nil || pod.UID != v.pod {
		return &ending{unread: fmt.Errorf("its pod %s is gone with its log: `kubectl get events` shows why", v.node.pod)}
	}
	now := serverOf(pod)
	running := now.State.Running != nil
	if now.ContainerID == v.id && running {
		return nil
	}
	text, err := v.node.cluster.api.log(ctx, pod, now.Name, logLines, running)
	if err != nil {
		return &ending{unread: fmt.Errorf("its log could not be read: %w", err)}
	}
	return &ending{log: text}
}

// serverOf returns the state of a pod's first container.
func serverOf(pod *corev1.Pod) (none corev1.ContainerStatus) {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == pod.Spec.Containers[0].Name {
			return s
		}
	}
	return none
}

// reached returns why Chaos Mesh cannot inject faults into the volume at a mount point of a pod's first container.
// Chaos Mesh moves the volume into a new folder beside the mount point.
func reached(pod *corev1.Pod, at string) error {
	server := &pod.Spec.Containers[0]
	if !slices.ContainsFunc(server.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == at }) {
		return fmt.Errorf("the container %s has no volume at %s: mount one, or make the cluster again if an older version of stroppy made it", server.Name, at)
	}
	if beside := path.Dir(at); !writable(server, beside) {
		return fmt.Errorf("the container %s cannot write to %s, and Chaos Mesh needs a folder there: mount the volume below a writable folder; if an older version of stroppy made the cluster, make it again", server.Name, beside)
	}
	return nil
}

// writable reports whether files can be made in a folder of a container.
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
