package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"stroppy/internal/cluster"
)

// node is one server of the database: the pod that has its name, whichever that is.
type node struct {
	cluster *Cluster
	number  int
	pod     string
	relay   *relay
}

// platformNode is a node that Kubernetes starts again whenever it has ended.
type platformNode struct{ *node }

// RestartsItself says that the node does not stay down.
func (platformNode) RestartsItself() {}

// heldNode is a node that stays down until it is to come back, and may come back empty.
type heldNode struct{ *node }

// remadeNode is a platformNode that comes back empty when its volume claims are gone too.
type remadeNode struct {
	platformNode
	Remade
}

// capable is the node with what can be done to it. What somebody else has made keeps its data.
func (n *node) capable() cluster.Node {
	if n.cluster.kind.StatefulSet {
		return heldNode{n}
	}
	if r, ok := n.cluster.database.(Remade); ok && n.cluster.spec.Name == n.cluster.run {
		return remadeNode{platformNode{n}, r}
	}
	return platformNode{n}
}

// direct says whether clients reach the pod at its own address.
func (n *node) direct() bool { return n.cluster.kind.Direct || n.relay != nil && n.relay.direct }

// Number implements cluster.Node, as Name and Running do.
func (n *node) Number() int { return n.number }

func (n *node) Name() string { return fmt.Sprintf("n%d", n.number) }

func (n *node) Running() bool {
	p := n.current()
	return p != nil && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning &&
		len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil
}

// current is the node's pod; nil where there is none.
func (n *node) current() *corev1.Pod {
	if n.cluster.planned {
		return nil
	}
	return n.cluster.pods.get(n.pod)
}

// Kill deletes the pod at once, without a grace period, and returns when its server does not
// answer any more.
func (n *node) Kill(ctx context.Context) error { return n.end(ctx, true) }

// Terminate deletes the pod, whose server shuts down in good order.
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
		if err == nil { // the next pod has to be made of the template with the gate
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

// delete deletes a pod and sees that it has gone.
func (n *node) delete(ctx context.Context, pod *corev1.Pod, atOnce bool) error {
	o := NewObject("v1", "Pod", pod.Name, nil)
	o.SetUID(pod.UID)
	if err := n.cluster.api.remove(ctx, o, atOnce); err != nil {
		return n.cluster.api.explain(err)
	}
	return n.cluster.pods.until(ctx, func() error {
		if p := n.current(); p != nil && p.UID == pod.UID {
			return errors.New("it is there yet")
		}
		if n.direct() && pod.Status.PodIP != "" && n.elsewhere(pod.Status.PodIP) == nil && reachable(ctx, pod, n.cluster.kind.Port) {
			return errors.New("its server answers yet")
		}
		return nil
	})
}

// elsewhere is the node whose pod has an address now, nil if none has.
func (n *node) elsewhere(ip string) *node {
	for _, other := range n.cluster.nodes {
		if p := other.current(); p != nil && p.Status.PodIP == ip {
			return other
		}
	}
	return nil
}

// Restart lets the node come back on its own data, and returns when it takes connections.
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

// Replace ends the node, takes its volume away, and lets it come back empty.
func (n heldNode) Replace(ctx context.Context) error {
	if pod := n.current(); pod == nil || !gated(pod) {
		if err := n.Kill(ctx); err != nil {
			return err
		}
	}
	if err := n.emptyClaims(ctx); err != nil {
		return err
	}
	if r, ok := n.cluster.database.(Rejoiner); ok {
		if err := cluster.Retry(ctx, func() error { return r.Rejoin(ctx, n.number) }); err != nil {
			return fmt.Errorf("let %s join as an empty member: %w", n.Name(), err)
		}
	}
	return n.Restart(ctx)
}

// Replace takes the volume of the node away when the others have its data, ends it, and returns
// when its operator has made it anew and it is a member again.
func (n remadeNode) Replace(ctx context.Context) error {
	err := cluster.RetryEvery(ctx, time.Second, func() error {
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
	if err := cluster.RetryEvery(ctx, time.Second, func() error { return n.Expendable(ctx, n.number) }); err != nil {
		return fmt.Errorf("see that the others have the data of %s: %w", n.Name(), err)
	}
	var pod *corev1.Pod
	err := n.cluster.pods.until(ctx, func() error { // where it was ended before it is being made again
		if pod = n.current(); pod == nil || pod.DeletionTimestamp != nil {
			return fmt.Errorf("the pod %s is not there", n.pod)
		}
		return nil
	})
	if err != nil {
		return err
	}
	claims := claimsOf(pod)
	if len(claims) == 0 {
		return fmt.Errorf("the pod %s has no volume claim that could be taken away", n.pod)
	}
	var old []*Object
	for _, name := range claims {
		claim, err := n.deleteClaim(ctx, name) // which goes when no pod has it
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
	if err := cluster.RetryEvery(ctx, time.Second, func() error { return n.Joined(ctx, n.number) }); err != nil {
		return fmt.Errorf("let %s join as an empty member: %w", n.Name(), err)
	}
	return nil
}

// claimsOf are the volume claims that a pod has.
func claimsOf(pod *corev1.Pod) (names []string) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// emptyClaims takes the volume claims of the node away. Its StatefulSet makes others.
func (n *node) emptyClaims(ctx context.Context) error {
	old, err := n.deleteClaim(ctx, n.claim())
	if err != nil {
		return err
	}
	return n.claimGone(ctx, old)
}

// deleteClaim deletes a volume claim, and returns it as it was.
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

// claimGone waits until a volume claim that was deleted is not there any more.
func (n *node) claimGone(ctx context.Context, old *Object) error {
	return cluster.RetryEvery(ctx, removeEvery, func() error {
		now, err := n.cluster.api.Get(ctx, claimKind, old.GetName())
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil && now.GetUID() == old.GetUID():
			return fmt.Errorf("the volume claim %s is there yet", old.GetName())
		}
		return err
	})
}

// DataVolume is the name of the volume of a server's data in a StatefulSet of ours.
const DataVolume = "data"

// claim is the name that a StatefulSet gives the volume claim of a pod.
func (n *node) claim() string { return DataVolume + "-" + n.pod }

// gateName is the scheduling gate of a pod that is to stay down.
const gateName = "stroppy.io/down"

// gate has pods of the StatefulSet that are made from now on stay down, or not. The pods that
// are there are not touched, because it replaces none by itself.
func (c *Cluster) gate(ctx context.Context, on bool) error {
	var gates any // nil takes them away
	if on {
		gates = []any{map[string]any{"name": gateName}}
	}
	return c.api.Patch(ctx, statefulSetKind, c.spec.Name, map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{"schedulingGates": gates}}}})
}

func gated(p *corev1.Pod) bool {
	for _, g := range p.Spec.SchedulingGates {
		if g.Name == gateName {
			return true
		}
	}
	return false
}

// open lets a pod that stays down be scheduled. It is asked of a pod with this UID alone.
func (n *node) open(ctx context.Context, pod *corev1.Pod) error {
	return n.cluster.api.Patch(ctx, podKind, pod.Name, map[string]any{
		"metadata": map[string]any{"uid": string(types.UID(pod.UID))},
		"spec":     map[string]any{"schedulingGates": []any{}},
	})
}
