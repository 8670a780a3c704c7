package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
)

// node is one server of the database: the present pod with its name.
type node struct {
	cluster *Cluster
	number  int
	pod     string
	relay   *relay
}

// platformNode is a node that Kubernetes restarts whenever it has ended.
type platformNode struct{ *node }

// RestartsItself marks a node that does not stay down.
func (platformNode) RestartsItself() {}

// heldNode is a node that can stay down and can return empty.
type heldNode struct{ *node }

// remadeNode is a platformNode that returns empty after its volume claims were deleted.
type remadeNode struct {
	platformNode
	Remade
}

// capable returns the node with its capabilities. The data of a database of somebody else are never removed.
func (n *node) capable() cluster.Node {
	if n.cluster.kind.StatefulSet {
		return heldNode{n}
	}
	if r, ok := n.cluster.database.(Remade); ok && n.cluster.spec.Name == n.cluster.run {
		return remadeNode{platformNode{n}, r}
	}
	return platformNode{n}
}

// direct reports whether clients reach the pod at its own address.
func (n *node) direct() bool { return n.cluster.kind.Direct || n.relay != nil && n.relay.direct }

func (n *node) Number() int { return n.number }

func (n *node) Name() string { return fmt.Sprintf("n%d", n.number) }

func (n *node) Running() bool {
	p := n.current()
	return p != nil && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning &&
		len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil
}

// current returns the node's pod, or nil.
func (n *node) current() *corev1.Pod {
	return n.cluster.pods.get(n.pod)
}

// Kill deletes the pod without a grace period, and returns when its server no longer answers.
func (n *node) Kill(ctx context.Context) error { return n.end(ctx, true) }

// Terminate deletes the pod; its server shuts down cleanly.
func (n *node) Terminate(ctx context.Context) error { return n.end(ctx, false) }

func (n *node) end(ctx context.Context, atOnce bool) error {
	pod := n.current()
	if pod == nil {
		return nil
	}
	if n.cluster.kind.StatefulSet {
		n.cluster.holding.Lock()
		defer n.cluster.holding.Unlock()
		if err := n.cluster.gate(ctx, true); err != nil {
			return err
		}
	}
	err := n.delete(ctx, pod, atOnce)
	if n.cluster.kind.StatefulSet {
		if err == nil { // the next pod must be made from the template with the gate
			err = n.cluster.pods.until(ctx, func() error {
				if p := n.current(); p == nil || p.UID == pod.UID {
					return fmt.Errorf("the pod %s has not been made again", n.pod)
				}
				return nil
			})
		}
		err = errors.Join(err, n.cluster.gate(context.WithoutCancel(ctx), false))
	}
	if err != nil {
		return fmt.Errorf("end the pod %s: %w", n.pod, err)
	}
	return nil
}

// delete deletes a pod and verifies that it is gone.
func (n *node) delete(ctx context.Context, pod *corev1.Pod, atOnce bool) error {
	o := NewObject("v1", "Pod", pod.Name, nil)
	o.SetUID(pod.UID)
	if err := n.cluster.api.remove(ctx, o, atOnce); err != nil {
		return n.cluster.api.explain(err)
	}
	return n.cluster.pods.until(ctx, func() error {
		if p := n.current(); p != nil && p.UID == pod.UID {
			return errors.New("it still exists")
		}
		if n.direct() && pod.Status.PodIP != "" && n.elsewhere(pod.Status.PodIP) == nil && reachable(ctx, pod, n.cluster.kind.Port) {
			return errors.New("its server still answers")
		}
		return nil
	})
}

// elsewhere returns the node whose pod has an address now, or nil.
func (n *node) elsewhere(ip string) *node {
	for _, other := range n.cluster.nodes {
		if p := other.current(); p != nil && p.Status.PodIP == ip {
			return other
		}
	}
	return nil
}

// Restart lets the node return on its own data, and returns when the node accepts connections.
func (n *node) Restart(ctx context.Context) error {
	err := n.cluster.pods.until(ctx, func() error {
		pod := n.current()
		if pod != nil && gated(pod) {
			if err := n.open(ctx, pod); err != nil {
				return err
			}
		}
		return ready(pod, n.pod)
	})
	if err != nil {
		return fmt.Errorf("wait for the pod %s: %w", n.pod, err)
	}
	return nil
}

// Replace ends the node, removes its volume, and lets it return empty.
func (n heldNode) Replace(ctx context.Context) error {
	if pod := n.current(); pod == nil || !gated(pod) {
		if err := n.Kill(ctx); err != nil {
			return err
		}
	}
	old, err := n.deleteClaim(ctx, DataVolume+"-"+n.pod) // its StatefulSet makes a new one
	if err == nil {
		err = n.claimGone(ctx, old)
	}
	if err != nil {
		return err
	}
	if r, ok := n.cluster.database.(Rejoiner); ok {
		if err := wait.Retry(ctx, func() error { return r.Rejoin(ctx, n.number) }); err != nil {
			return fmt.Errorf("let %s join as an empty member: %w", n.Name(), err)
		}
	}
	return n.Restart(ctx)
}

// Replace removes the volume of the node when the others have its data, and ends the node. It returns when the
// operator has made the node again and it is a member.
func (n remadeNode) Replace(ctx context.Context) error {
	err := wait.RetryEvery(ctx, time.Second, func() error {
		if !n.cluster.replacing.TryLock() {
			return errors.New("another node is being replaced")
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer n.cluster.replacing.Unlock()
	return n.replace(ctx)
}

func (n remadeNode) replace(ctx context.Context) error {
	if err := wait.RetryEvery(ctx, time.Second, func() error { return n.Expendable(ctx, n.number) }); err != nil {
		return fmt.Errorf("wait until the other nodes have the data of %s: %w", n.Name(), err)
	}
	var pod *corev1.Pod
	err := n.cluster.pods.until(ctx, func() error { // a pod that was ended before is just being made again
		if pod = n.current(); pod == nil || pod.DeletionTimestamp != nil {
			return fmt.Errorf("the pod %s does not exist", n.pod)
		}
		return nil
	})
	if err != nil {
		return err
	}
	claims := claimsOf(pod)
	if len(claims) == 0 {
		return fmt.Errorf("the pod %s has no volume claim", n.pod)
	}
	var old []*Object
	for _, name := range claims {
		claim, err := n.deleteClaim(ctx, name) // it is removed when no pod uses it
		if err != nil {
			return err
		}
		old = append(old, claim)
	}
	if err := n.delete(ctx, pod, true); err != nil {
		return fmt.Errorf("end the pod %s: %w", n.pod, err)
	}
	for _, claim := range old {
		if err := n.claimGone(ctx, claim); err != nil {
			return err
		}
	}
	if err := n.Restart(ctx); err != nil {
		return err
	}
	if err := wait.RetryEvery(ctx, time.Second, func() error { return n.Joined(ctx, n.number) }); err != nil {
		return fmt.Errorf("let %s join as an empty member: %w", n.Name(), err)
	}
	return nil
}

// claimsOf returns the volume claims of a pod.
func claimsOf(pod *corev1.Pod) (names []string) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// deleteClaim deletes a volume claim and returns its last state.
func (n *node) deleteClaim(ctx context.Context, name string) (*Object, error) {
	old, err := n.cluster.api.Get(ctx, claimKind, name)
	if err != nil {
		return nil, err
	}
	claim := NewObject("v1", claimKind.Kind, name, nil)
	claim.SetUID(old.GetUID())
	if err := n.cluster.api.remove(ctx, claim, false); err != nil {
		return nil, fmt.Errorf("delete the volume claim %s: %w", name, n.cluster.api.explain(err))
	}
	return old, nil
}

// claimGone waits until a deleted volume claim no longer exists.
func (n *node) claimGone(ctx context.Context, old *Object) error {
	return wait.RetryEvery(ctx, removeEvery, func() error {
		now, err := n.cluster.api.Get(ctx, claimKind, old.GetName())
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil && now.GetUID() == old.GetUID():
			return fmt.Errorf("the volume claim %s still exists", old.GetName())
		}
		return err
	})
}

// DataVolume is the name of the data volume of a server in a StatefulSet of ours. It begins the name of the volume
// claim of a pod.
const DataVolume = "data"

// gateName is the scheduling gate of a pod that must stay down.
const gateName = "stroppy.io/down"

// gate makes new pods of the StatefulSet stay down, or not. It does not affect existing pods, because the StatefulSet
// does not replace pods by itself.
func (c *Cluster) gate(ctx context.Context, on bool) error {
	var gates any // nil removes them
	if on {
		gates = []any{map[string]any{"name": gateName}}
	}
	return c.api.Patch(ctx, statefulSetKind, c.spec.Name, map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{"schedulingGates": gates}}}})
}

func gated(p *corev1.Pod) bool {
	return slices.Contains(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gateName})
}

// open allows a pod that stays down to be scheduled. The UID restricts the change to this pod.
func (n *node) open(ctx context.Context, pod *corev1.Pod) error {
	return n.cluster.api.Patch(ctx, podKind, pod.Name, map[string]any{
		"metadata": map[string]any{"uid": string(types.UID(pod.UID))},
		"spec":     map[string]any{"schedulingGates": []any{}},
	})
}
