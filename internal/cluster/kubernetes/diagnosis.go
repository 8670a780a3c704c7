package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// shownEvents and shownLines bound the events and the log lines in an error.
	shownEvents, shownLines = 3, 3
	// askLimit bounds a query that only improves an error.
	askLimit = 5 * time.Second
)

// event is an event that Kubernetes reports for an object.
type event struct {
	object, reason, message string
	last                    string // RFC 3339
}

// warnings returns the newest warnings about objects whose names begin with prefix.
func (a *API) warnings(ctx context.Context, prefix string) (list []event) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	client, err := a.resource(eventKind)
	if err != nil {
		return nil
	}
	all, err := client.List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		return nil
	}
	for i := range all.Items {
		text := func(path ...string) string {
			s, _, _ := unstructured.NestedString(all.Items[i].Object, path...)
			return s
		}
		e := event{object: text("involvedObject", "name"), reason: text("reason"), message: text("message"),
			last: cmp.Or(text("lastTimestamp"), text("series", "lastObservedTime"), text("eventTime"))}
		if strings.HasPrefix(e.object, prefix) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b event) int { return strings.Compare(b.last, a.last) })
	return list[:min(len(list), shownEvents)]
}

// lastWords returns the last lines of a pod's first container. If the container has ended, they are from its previous
// run.
func (a *API) lastWords(ctx context.Context, pod *corev1.Pod) string {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if len(pod.Spec.Containers) == 0 || len(pod.Status.ContainerStatuses) == 0 {
		return ""
	}
	status := pod.Status.ContainerStatuses[0]
	text, err := a.log(ctx, pod, status.Name, shownLines, status.State.Running == nil && status.RestartCount > 0)
	if err != nil {
		return ""
	}
	return text
}

// log returns the last lines of a container as one line, or of its previous run.
func (a *API) log(ctx context.Context, pod *corev1.Pod, container string, lines int, previous bool) (string, error) {
	query := fmt.Sprintf("?container=%s&tailLines=%d", container, lines)
	if previous {
		query += "&previous=true"
	}
	text, err := a.get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/log%s", a.Namespace, pod.Name, query))
	return strings.Join(strings.Split(strings.TrimSpace(string(text)), "\n"), " | "), err
}

// diagnose adds Kubernetes' warnings and log lines of a cluster's pods to an error.
func (a *API) diagnose(err error, name string, pods []*corev1.Pod) error {
	ctx := context.Background() // the caller's context has ended
	var more []string
	for _, e := range a.warnings(ctx, name) {
		more = append(more, fmt.Sprintf("%s: %s %s", e.object, e.reason, strings.TrimSpace(e.message)))
	}
	for _, p := range pods {
		if ready(p, p.Name) == nil {
			continue
		}
		if said := a.lastWords(ctx, p); said != "" {
			more = append(more, fmt.Sprintf("the log of %s ends with: %s", p.Name, said))
			break
		}
	}
	if len(more) == 0 {
		return err
	}
	return fmt.Errorf("%w; %s", err, strings.Join(more, "; "))
}

// quota returns an errHopeless if a quota forbids pods with these names, by the first warning, or nil.
func (a *API) quota(ctx context.Context, name string) error {
	for _, e := range a.warnings(ctx, name) {
		if e.reason == "FailedCreate" && (strings.Contains(e.message, "exceeded quota") || strings.Contains(e.message, "is forbidden")) {
			return errHopeless(fmt.Sprintf("the pods of %s are not allowed: %s", e.object, e.message))
		}
	}
	return nil
}
