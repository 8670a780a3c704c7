package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// kinds caches the API server's answers about kinds of objects. client-go's discovery client does the same, but
// imports the types of all API groups, which take minutes to compile.
type kinds struct {
	mu    sync.Mutex
	known map[schema.GroupVersionKind]*metav1.APIResource
}

// noKind reports a kind of object that the API server does not know.
type noKind schema.GroupVersionKind

func (k noKind) Error() string {
	return fmt.Sprintf("Kubernetes knows no %s of %s", k.Kind, schema.GroupVersion{Group: k.Group, Version: k.Version})
}

// isNoKind reports whether err is a noKind.
func isNoKind(err error) bool {
	var unknown noKind
	return errors.As(err, &unknown)
}

// lookUp returns the resource of a kind of object. An unknown kind is asked for again, because it may have been
// installed since.
func (a *API) lookUp(kind schema.GroupVersionKind) (*metav1.APIResource, error) {
	a.kinds.mu.Lock()
	defer a.kinds.mu.Unlock()
	if r := a.kinds.known[kind]; r != nil {
		return r, nil
	}
	path := "/apis/" + kind.Group + "/" + kind.Version
	if kind.Group == "" {
		path = "/api/" + kind.Version
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	text, err := a.get(ctx, path)
	if apierrors.IsNotFound(err) {
		return nil, noKind(kind)
	}
	var list metav1.APIResourceList
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("ask Kubernetes for the kinds of %s: %w", path, err)
	}
	if a.kinds.known == nil {
		a.kinds.known = map[schema.GroupVersionKind]*metav1.APIResource{}
	}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; !strings.Contains(r.Name, "/") { // otherwise it is a subresource, such as pods/log
			a.kinds.known[schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: r.Kind}] = r
		}
	}
	if r := a.kinds.known[kind]; r != nil {
		return r, nil
	}
	return nil, noKind(kind)
}

// resource returns the client for a kind of object, in the namespace if the kind has namespaces.
func (a *API) resource(kind schema.GroupVersionKind) (dynamic.ResourceInterface, error) {
	r, err := a.lookUp(kind)
	if err != nil {
		return nil, err
	}
	client := a.dynamic.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: r.Name})
	if r.Namespaced {
		return client.Namespace(a.Namespace), nil
	}
	return client, nil
}

// has reports whether the API server knows a kind of object.
func (a *API) has(kind schema.GroupVersionKind) (bool, error) {
	_, err := a.lookUp(kind)
	if isNoKind(err) {
		return false, nil
	}
	return err == nil, err
}
