// Package kubernetes runs databases in an existing Kubernetes cluster. It applies the resources of a kind, waits
// until the database answers, and reaches its pods from this program. It kills and replaces pods, makes Chaos Mesh
// cut their network, and removes all that it has made. Each folder below it holds one kind. It changes no objects of
// others.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

// Access selects a Kubernetes cluster and a namespace in it.
type Access struct {
	Kubeconfig string // a file; empty: the one that kubectl uses, or the service account of this pod
	Context    string // in the kubeconfig; empty: its current context
	Namespace  string // empty: the context's, or default
}

// API is a namespace of a Kubernetes cluster. Its methods may be called from several goroutines.
type API struct {
	Namespace string
	config    *rest.Config
	dynamic   dynamic.Interface
	plain     *http.Client
	kinds     kinds
}

const (
	// connectLimit bounds the time for the first answer of the API server.
	connectLimit = 10 * time.Second
	// queries and burst limit the requests to the API server per second and at once. client-go's default of 5 per
	// second is too few to see an effect soon.
	queries, burst = 50, 100
)

// limiter limits requests. A request that would wait beyond its deadline was never sent: its error is a time-out, so
// that wait.Retry prefers the error of the request before.
type limiter struct{ flowcontrol.RateLimiter }

func (l limiter) Wait(ctx context.Context) error {
	err := l.RateLimiter.Wait(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return unsent{err}
}

type unsent struct{ error }

func (unsent) Timeout() bool   { return true }
func (u unsent) Unwrap() error { return u.error }

// Connect finds the API server and returns when the server has accepted the credentials. The error is one sentence.
func Connect(ctx context.Context, a Access) (*API, error) {
	fail := func(err error) error { return fmt.Errorf("connect to Kubernetes: %w", err) }
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fail(noConfig(a, rules, err))
	}
	config.UserAgent = manager
	config.RateLimiter = limiter{flowcontrol.NewTokenBucketRateLimiter(queries, burst)}
	config.WarningHandler = rest.NoWarnings{} // they would appear among the lines of the run
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fail(err)
	}
	if a.Namespace != "" {
		namespace = a.Namespace
	}
	api := &API{Namespace: namespace, config: config}
	if api.plain, err = rest.HTTPClientFor(config); err != nil {
		return nil, fail(err)
	}
	if api.dynamic, err = dynamic.NewForConfigAndClient(config, api.plain); err != nil {
		return nil, fail(err)
	}
	limited, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	if _, err := api.get(limited, "/version"); err != nil {
		return nil, fail(err)
	}
	return api, nil
}

// Host returns the API server's address.
func (a *API) Host() string { return a.config.Host }

// noConfig returns why there is no usable kubeconfig.
func noConfig(a Access, rules *clientcmd.ClientConfigLoadingRules, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no kubeconfig %s: name the file that kubectl uses", a.Kubeconfig)
	case clientcmd.IsContextNotFound(err), a.Context != "" && strings.Contains(err.Error(), "does not exist"):
		known := "none"
		if all, errLoad := rules.Load(); errLoad == nil && len(all.Contexts) > 0 {
			known = strings.Join(slices.Sorted(maps.Keys(all.Contexts)), ", ")
		}
		return fmt.Errorf("the kubeconfig has no context %q; it has: %s", a.Context, known)
	case clientcmd.IsEmptyConfig(err):
		return errors.New("there is no kubeconfig: set KUBECONFIG, or give ?kubeconfig=FILE")
	}
	return fmt.Errorf("the kubeconfig cannot be used: %w", err)
}

// explain adds to an API server's error what to do about it.
func (a *API) explain(err error) error {
	var reached *url.Error
	var network net.Error
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s does not accept the credentials of the kubeconfig: log in again", a.Host())
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the API server at %s does not answer", a.Host())
	case errors.As(err, &reached), errors.As(err, &network):
		return fmt.Errorf("the API server at %s cannot be reached: %w", a.Host(), err)
	}
	return err
}

// url returns the URL of a path of the API server.
func (a *API) url(path string) *url.URL {
	base, _, err := rest.DefaultServerURL(a.config.Host, a.config.APIPath, schema.GroupVersion{}, true)
	if err != nil { // Connect fails with such an address
		base = &url.URL{Scheme: "https", Host: a.config.Host}
	}
	u := *base
	path, u.RawQuery, _ = strings.Cut(path, "?")
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	return &u
}

// now returns the time of the API server's clock, to a second.
func (a *API) now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	_, header, err := a.ask(ctx, "/version")
	if err != nil {
		return time.Time{}, err
	}
	t, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return t, fmt.Errorf("the API server at %s does not return its time: %w", a.Host(), err)
	}
	return t, nil
}

// get reads a path of the API server that is not an object.
func (a *API) get(ctx context.Context, path string) ([]byte, error) {
	text, _, err := a.ask(ctx, path)
	return text, err
}

func (a *API) ask(ctx context.Context, path string) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url(path).String(), nil)
	if err != nil {
		return nil, nil, err
	}
	answer, err := a.plain.Do(request)
	if err != nil {
		return nil, nil, a.explain(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostRead))
	switch {
	case err != nil || answer.StatusCode == http.StatusOK:
		return text, answer.Header, err
	case answer.StatusCode == http.StatusForbidden:
		return nil, nil, fmt.Errorf("this account may not get %s", strings.TrimPrefix(request.URL.Path, "/"))
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusNotFound:
		return nil, nil, a.explain(&apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(answer.StatusCode), Reason: reasons[answer.StatusCode], Message: answer.Status}})
	}
	return nil, nil, fmt.Errorf("the API server answered %s: %.200s", answer.Status, text)
}

// reasons are the API machinery's reasons for some status codes.
var reasons = map[int]metav1.StatusReason{http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusNotFound: metav1.StatusReasonNotFound}

// mostRead bounds the size in bytes of an answer that is not an object.
const mostRead = 16 << 20
