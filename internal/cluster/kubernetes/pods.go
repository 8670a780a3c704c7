package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"stroppy/internal/cluster/wait"
)

// podWatch tracks the pods with certain labels by the API server's events. Its methods may be called from several
// goroutines.
type podWatch struct {
	end  context.CancelFunc
	done sync.WaitGroup

	store cache.Store           // of *corev1.Pod
	gone  func(pod *corev1.Pod) // called when a pod is gone

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
}

// watchPods starts a podWatch and returns when it knows all present pods. gone is called for each pod that
// disappears.
func (a *API) watchPods(ctx context.Context, selector string, gone func(*corev1.Pod)) (*podWatch, error) {
	client, err := a.resource(podKind)
	if err != nil {
		return nil, fmt.Errorf("watch the pods: %w", a.explain(err))
	}
	life, end := context.WithCancel(context.Background())
	w := &podWatch{end: end, changed: make(chan struct{}), gone: gone}
	var informer cache.Controller
	w.store, informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = selector
				return client.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = selector
				return client.Watch(ctx, o)
			},
		},
		ObjectType: &Object{},
		Transform:  asPod,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { w.wake() },
			UpdateFunc: func(before, now any) {
				w.wake()
				if was, is := podOf(before), podOf(now); was != nil && (is == nil || was.UID != is.UID) {
					w.gone(was)
				}
			},
			DeleteFunc: func(last any) {
				w.wake()
				if unseen, ok := last.(cache.DeletedFinalStateUnknown); ok {
					last = unseen.Obj
				}
				if was := podOf(last); was != nil {
					w.gone(was)
				}
			},
		},
	})
	w.done.Go(func() { informer.RunWithContext(life) })
	if err := wait.Retry(ctx, func() error {
		if !informer.HasSynced() {
			return fmt.Errorf("the API server at %s has not listed them", a.Host())
		}
		return nil
	}); err != nil {
		w.stop()
		return nil, fmt.Errorf("watch the pods: %w", err)
	}
	return w, nil
}

func (w *podWatch) stop() {
	w.end()
	w.done.Wait()
}

// asPod converts an object to a pod. A pod with other fields, from another server, stays an object. A wait for this
// pod reports it as missing.
func asPod(object any) (any, error) {
	pod := new(corev1.Pod)
	if o, ok := object.(*Object); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod) == nil {
		return pod, nil
	}
	return object, nil
}

// podOf returns a pod of the store, or nil.
func podOf(object any) *corev1.Pod {
	pod, _ := object.(*corev1.Pod)
	return pod
}

// wake ends all waits.
func (w *podWatch) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// get returns a pod, or nil.
func (w *podWatch) get(name string) *corev1.Pod {
	for _, p := range w.all() {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// all returns the pods in the order of their names. A nil podWatch has no pods.
func (w *podWatch) all() (list []*corev1.Pod) {
	if w == nil || w.store == nil {
		return nil
	}
	for _, object := range w.store.List() {
		if p := podOf(object); p != nil {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return compareNames(a.Name, b.Name) })
	return list
}

// compareNames orders pod-9 before pod-10.
func compareNames(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }

// until calls see after each change until it returns nil or an error that waiting does not change. When ctx ends, the error contains the cause and the last
// error of see.
func (w *podWatch) until(ctx context.Context, see func() error) error {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		err := see()
		if err == nil || errors.As(err, new(errHopeless)) {
			return err
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // see may depend on more than pods
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// ready returns why a pod does not accept connections, or nil if it does.
func ready(p *corev1.Pod, name string) error {
	if p == nil {
		return fmt.Errorf("the pod %s does not exist", name)
	}
	if p.DeletionTimestamp != nil {
		return fmt.Errorf("the pod %s is being deleted", name)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	if why := waiting(p); why != "" {
		return fmt.Errorf("the pod %s is not ready: %s", name, why)
	}
	return fmt.Errorf("the pod %s is not ready: it is %s", name, strings.ToLower(string(p.Status.Phase)))
}

// waiting returns why a pod's containers do not run, or "" if the pod has no reason.
func waiting(p *corev1.Pod) string {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch state := c.State; {
		case state.Waiting != nil && state.Waiting.Reason != "ContainerCreating" && state.Waiting.Reason != "PodInitializing":
			return strings.TrimSuffix("container "+c.Name+": "+state.Waiting.Reason+" "+state.Waiting.Message, " ")
		case state.Terminated != nil && state.Terminated.ExitCode != 0:
			return fmt.Sprintf("container %s ended with exit code %d (%s) %s", c.Name, state.Terminated.ExitCode, state.Terminated.Reason, state.Terminated.Message)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// hopeless are reasons of a container that waiting does not change.
var hopeless = []string{"ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError"}

// hopelessPod returns an errHopeless if a pod will never run. The image is named by a parameter.
func hopelessPod(p *corev1.Pod, parameter string) error {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		pulls := w.Reason == "ImagePullBackOff" || w.Reason == "ErrImagePull"
		if slices.Contains(hopeless, w.Reason) || pulls && time.Since(p.CreationTimestamp.Time) > pullLimit {
			return errHopeless(fmt.Sprintf("the image %s of the pod %s cannot be pulled (%s %s): name another image by %s", c.Image, p.Name, w.Reason, w.Message, parameter))
		}
	}
	return nil
}

// pullLimit is how long to wait for an image that cannot be pulled.
const pullLimit = 20 * time.Second
