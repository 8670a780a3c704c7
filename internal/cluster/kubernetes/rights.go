package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Right is a set of verbs on one resource in the namespace.
type Right struct {
	Group, Resource string // such as apps and statefulsets; a subresource follows a slash
	Verbs           []string
}

// ownRights returns the rights that every kind needs.
func ownRights() []Right {
	return []Right{
		{"", "pods", []string{"get", "list", "watch", "delete", "deletecollection", "patch"}},
		{"", "pods/log", []string{"get"}},
		{"", "pods/portforward", []string{"create"}},
		{"", eventResource(), []string{"list"}},
		{"", "persistentvolumeclaims", []string{"get", "list", "delete", "deletecollection"}},
		{"coordination.k8s.io", "leases", []string{"create", "get", "list", "patch", "delete"}},
	}
}

// managed returns the verbs for objects that are applied and later deleted.
func managed() []string { return []string{"create", "get", "list", "patch", "delete"} }

var accessReview = schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"}

// Require returns an error that names the missing rights of this account, or nil if it has all.
func (a *API) Require(ctx context.Context, rights []Right) error {
	reviews, err := a.resource(accessReview)
	if err != nil {
		return fmt.Errorf("ask Kubernetes for the rights of this account: %w", a.explain(err))
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	var lacks []string
	var failed error
	for _, r := range rights {
		for _, verb := range r.Verbs {
			group.Go(func() {
				allowed, err := a.may(ctx, reviews.Create, r, verb)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = err
				} else if !allowed {
					lacks = append(lacks, verb+" "+schema.GroupResource{Group: r.Group, Resource: r.Resource}.String())
				}
			})
		}
	}
	group.Wait()
	if failed != nil {
		return fmt.Errorf("ask Kubernetes for the rights of this account: %w", a.explain(failed))
	}
	if len(lacks) > 0 {
		slices.Sort(lacks)
		return fmt.Errorf("this account may not %s in the namespace %s: it needs the rights of docs/kubernetes.md", strings.Join(lacks, ", "), a.Namespace)
	}
	return nil
}

type creates func(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error)

// may reports whether one verb is allowed.
func (a *API) may(ctx context.Context, create creates, r Right, verb string) (bool, error) {
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resourceAttributes": map[string]any{
		"namespace": a.Namespace, "verb": verb, "group": r.Group, "resource": resource, "subresource": subresource,
	}}}}
	review.SetGroupVersionKind(accessReview)
	answer, err := create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, err
}

// namespaceThere returns an error if the namespace does not exist. If the account may not read namespaces, it returns
// nil, and a later request fails.
func (a *API) namespaceThere(ctx context.Context) error {
	namespaces, err := a.resource(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err == nil {
		_, err = namespaces.Get(ctx, a.Namespace, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the namespace %s does not exist: make it with `kubectl create namespace %s`, or name another by namespace=", a.Namespace, a.Namespace)
	case apierrors.IsForbidden(err):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the API server at %s does not answer", a.Host())
	}
	return a.explain(err)
}
