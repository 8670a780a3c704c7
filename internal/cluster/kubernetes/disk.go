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

var errNoWriter = errors.New("nobody can have this kind of server write to its volume, so nobody could see what becomes of its disk: take k8s/etcd, or inject an IOChaos of your own by `chaos 'FILE'`")

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
	v, err := n.injectVolume(ctx, seenWithin, fullDisk())
	if err != nil {
		return cluster.Effect{}, err
	}
	return v.full(ctx)
}

// full is the effect of a fault by which the volume has no room.
func (v *volume) full(ctx context.Context) (e cluster.Effect, err error) {
	e = cluster.Effect{Still: v.still, Heal: func(ctx context.Context) (string, error) {
		return v.heal(ctx, func(ctx context.Context) (string, error) {
			_, err := v.write(ctx)
			return "a write found space", err
		})
	}}
	e.Seen, err = v.observe(ctx, func(ctx context.Context) (string, error) {
		_, write := v.write(ctx)
		end := v.ended(ctx)
		seen, err := noRoom(write, end)
		if err == nil && end != nil {
			e.Still, e.EndsItself = nil, true
		}
		return seen, err
	})
	return e, err
}

// noRoom says by what a volume is seen to have no room: by the end of its server, if that has ended,
// or else by the error of a write.
func noRoom(write error, end *ending) (seen string, err error) {
	switch {
	case end != nil && end.unread == nil && noSpace(end.log):
		return "its server ended, for there was no space left, and Kubernetes starts it again on a disk that has room", nil
	case end != nil:
		return "", fmt.Errorf("its server has ended, and not for want of space that anybody saw: %w", end)
	case write == nil:
		return "", errors.New("a write found space")
	case !noSpace(write.Error()):
		return "", fmt.Errorf("a write failed, and not for want of space: %w", write)
	}
	return "a write found no space", nil
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

// writesSeen is how many writes, one after the other, show how long a write takes. One alone may be
// late for another reason, such as a compaction.
const writesSeen = 3

// SlowDisk lets every call to the volume of the node's server take so much longer.
func (n *node) SlowDisk(ctx context.Context, perCall time.Duration) (cluster.Effect, error) {
	const calls = 10 // that a write takes, or so
	v, err := n.injectVolume(ctx, seenWithin+writesSeen*calls*perCall, slowDisk(perCall))
	if err != nil {
		return cluster.Effect{}, err
	}
	return v.slow(ctx, perCall)
}

// slow is the effect of a fault by which each call takes so much longer.
func (v *volume) slow(ctx context.Context, perCall time.Duration) (e cluster.Effect, err error) {
	e = cluster.Effect{Still: v.still, Heal: func(ctx context.Context) (string, error) {
		return v.heal(ctx, func(ctx context.Context) (string, error) {
			times, err := v.writes(ctx)
			if err != nil {
				return "", err
			}
			return fast(times, v.before+perCall)
		})
	}}
	e.Seen, err = v.observe(ctx, func(ctx context.Context) (string, error) {
		times, err := v.writes(ctx)
		if end := v.ended(ctx); end != nil { // which may take as long
			return "", fmt.Errorf("its server has ended: %w", end)
		}
		if err != nil {
			return "", err
		}
		return slowed(times, v.before, perCall)
	})
	return e, err
}

// slowed says by what calls are seen to take so much longer: each of some writes takes as much longer
// than the longest one before.
func slowed(times []time.Duration, before, perCall time.Duration) (string, error) {
	text := fmt.Sprintf("of %d writes one after the other each took %v or longer, and %v at most before", len(times), milliseconds(slices.Min(times)), milliseconds(before))
	if slices.Min(times) < before+perCall {
		return "", errors.New(text)
	}
	return text, nil
}

// fast says by what writes are seen to be no slow ones any more: each of some takes less than that.
func fast(times []time.Duration, slow time.Duration) (string, error) {
	longest := slices.Max(times)
	if longest >= slow {
		return "", fmt.Errorf("of %d writes one takes %v yet", len(times), milliseconds(longest))
	}
	return fmt.Sprintf("of %d writes one after the other none took longer than %v", len(times), milliseconds(longest)), nil
}

func milliseconds(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// volume is that of a node's server with a fault by Chaos Mesh.
type volume struct {
	node   *node
	pod    string // its UID
	server string // the container's identifier
	within time.Duration
	before time.Duration // that the longest of some writes took
	fault  *chaos
}

// injectVolume injects a fault into the volume of the node's server, which is seen to write before,
// and whose effect may take so long to be seen. After an error nothing is injected.
func (n *node) injectVolume(ctx context.Context, within time.Duration, fault map[string]any) (*volume, error) {
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

// writes are the times of writesSeen writes one after the other.
func (v *volume) writes(ctx context.Context) (times []time.Duration, err error) {
	for len(times) < writesSeen && err == nil {
		var took time.Duration
		took, err = v.write(ctx)
		times = append(times, took)
	}
	return times, err
}

// observe sees something, if need be again and again.
func (v *volume) observe(ctx context.Context, see func(context.Context) (string, error)) (string, error) {
	text, err := observeWithin(ctx, v.within, see)
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

// heal ends the fault, and sees that it has ended by writes. A server that is down has no disk, and
// has one without the fault when it comes back.
func (v *volume) heal(ctx context.Context, see func(context.Context) (string, error)) (string, error) {
	if err := v.fault.heal(ctx); err != nil {
		return "", err
	}
	if !v.node.Running() {
		return "the fault has gone with the server", nil
	}
	text, err := observeWithin(ctx, v.within, see)
	if err != nil {
		return "", fmt.Errorf("the disk of %s was not seen to be healed although Chaos Mesh says so: %w", v.node.Name(), err)
	}
	return text, nil
}

// ending is how a server ended.
type ending struct {
	log    string // its last lines
	unread error  // why there are none
}

func (e *ending) Error() string {
	if e.unread != nil {
		return e.unread.Error()
	}
	return "its log ends with " + e.log
}

// logLines are lines of a server's log, among the last of which is why it ended.
const logLines = 20

// ended says how the server has ended since the fault was injected, nil if it has not.
func (v *volume) ended(ctx context.Context) *ending {
	pod := v.node.current()
	if pod == nil || string(pod.UID) != v.pod {
		return &ending{unread: fmt.Errorf("its pod %s has gone and its log with it, so see in `kubectl get events` why", v.node.pod)}
	}
	now := serverOf(pod)
	running := now.State.Running != nil
	if now.ContainerID == v.server && running {
		return nil
	}
	text, err := v.node.cluster.api.log(ctx, pod, now.Name, logLines, running)
	if err != nil {
		return &ending{unread: fmt.Errorf("its log could not be read: %w", err)}
	}
	return &ending{log: text}
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
		return fmt.Errorf("the container %s has no volume mounted at %s: make the cluster anew if an older stroppy has kept it, or mount one", server.Name, at)
	}
	if beside := path.Dir(at); !writable(server, beside) {
		return fmt.Errorf("the container %s cannot write to %s, where Chaos Mesh has to make a folder: make the cluster anew if an older stroppy has kept it, or mount the volume below a folder that the container can write to", server.Name, beside)
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
