package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var leaseKind = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

const (
	// leaseLasts is the time after which a run without a sign of life counts as dead on other machines.
	leaseLasts = time.Minute
	renewEvery = 10 * time.Second
	// madeAnnotation on a lease holds the objects of the run as JSON.
	madeAnnotation = "stroppy.io/made"
	// removeLimit bounds the time until the objects of a run are gone.
	removeLimit = 2 * time.Minute
)

// ownership is a Lease of a living run. It is made before the objects of the run and removed after them. So a Lease
// without a living owner shows what must be removed.
type ownership struct {
	api *API
	run string

	mu   sync.Mutex
	made made

	end  context.CancelFunc
	done sync.WaitGroup
	once sync.Once
	err  error
}

// leaseName returns the name of the lease of a run. It differs from the run's name, which the database uses:
// CloudNativePG's primary holds a lease with the cluster's name (internal/cmd/manager/instance/run/lease).
func leaseName(run string) string { return run + "-run" }

// made describes the objects that a run may have.
type made struct {
	Kinds    []schema.GroupVersionKind // kinds of the applied objects, in the order of their removal
	Selector string                    // labels of the pods and volume claims that controllers make
	Secrets  string                    // labels of the secrets that an operator leaves; empty: none
}

// own makes the lease of a run and renews it.
func (a *API) own(ctx context.Context, run string, what made) (*ownership, error) {
	o := &ownership{api: a, run: run, made: what}
	if err := o.renew(ctx); err != nil {
		return nil, fmt.Errorf("make the lease of this run: %w", err)
	}
	life, end := context.WithCancel(context.Background())
	o.end = end
	o.done.Go(func() {
		ticker := time.NewTicker(renewEvery)
		defer ticker.Stop()
		for {
			select {
			case <-life.Done():
				return
			case <-ticker.C:
				_ = o.renew(life) // it is renewed again soon; an expired lease does not end the run
			}
		}
	})
	return o, nil
}

func (o *ownership) renew(ctx context.Context) error {
	o.mu.Lock()
	what, err := json.Marshal(o.made)
	o.mu.Unlock()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	lease := NewObject("coordination.k8s.io/v1", "Lease", leaseName(o.run), map[string]any{"spec": map[string]any{
		"holderIdentity":       fmt.Sprintf("%s/%d", host, os.Getpid()),
		"leaseDurationSeconds": int64(leaseLasts.Seconds()),
		"renewTime":            Now(),
	}})
	lease.SetAnnotations(map[string]string{madeAnnotation: string(what)})
	_, err = o.api.Apply(ctx, o.run, lease)
	return err
}

// willMake records that the run is about to make objects of one more kind. They are removed before the others.
func (o *ownership) willMake(ctx context.Context, kind schema.GroupVersionKind) error {
	o.mu.Lock()
	known := slices.Contains(o.made.Kinds, kind)
	if !known {
		o.made.Kinds = append([]schema.GroupVersionKind{kind}, o.made.Kinds...)
	}
	o.mu.Unlock()
	if known {
		return nil
	}
	return o.renew(ctx)
}

// giveUp removes all objects of the run, and then the lease. It may be called again.
func (o *ownership) giveUp() error {
	return o.finish(func(ctx context.Context) error { return o.api.clearRun(ctx, o.run, o.made) })
}

// finish ends the renewal of the lease and removes objects, once.
func (o *ownership) finish(remove func(context.Context) error) error {
	o.once.Do(func() {
		o.end()
		o.done.Wait()
		ctx, cancel := context.WithTimeoutCause(context.Background(), removeLimit, fmt.Errorf("they have not gone within %v", removeLimit))
		defer cancel()
		o.err = remove(ctx)
	})
	return o.err
}

// clearRun removes the objects of a run and then its lease.
func (a *API) clearRun(ctx context.Context, run string, what made) error {
	if err := a.removeAll(ctx, run, what); err != nil {
		return err
	}
	lease := NewObject("coordination.k8s.io/v1", "Lease", leaseName(run), nil)
	if err := a.remove(ctx, lease, false); err != nil {
		return fmt.Errorf("delete the lease %s: %w", lease.GetName(), a.explain(err))
	}
	return nil
}

// clearDead removes the objects of runs whose lease has expired by the API server's clock. It returns a line for each
// run.
func (a *API) clearDead(ctx context.Context, now time.Time) (lines []string, err error) {
	leases, err := a.list(ctx, leaseKind, ManagedByLabel+"="+manager)
	if err != nil {
		return nil, fmt.Errorf("look for objects of earlier runs in the namespace %s: %w", a.Namespace, a.explain(err))
	}
	for i := range leases {
		lease := &leases[i]
		if isKept(lease) || now.Sub(lastApplied(lease)) < leaseLasts {
			continue
		}
		line, errOne := a.clearLease(ctx, lease)
		if err = errors.Join(err, errOne); errOne == nil {
			lines = append(lines, line)
		}
	}
	return lines, err
}

// lastApplied returns when an object was last changed, by the API server's clock. The clocks of the owner and of this
// machine may differ by more than the lease.
func lastApplied(o *Object) (last time.Time) {
	for _, f := range o.GetManagedFields() {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// clearLease removes the objects of the run of a lease.
func (a *API) clearLease(ctx context.Context, lease *Object) (line string, err error) {
	name, run := lease.GetName(), lease.GetLabels()[RunLabel]
	if name != leaseName(run) || !strings.HasPrefix(run, namePrefix) {
		return "", fmt.Errorf("the lease %s in the namespace %s has stroppy's label, but not its name: inspect it", name, a.Namespace)
	}
	var what made
	if err := json.Unmarshal([]byte(lease.GetAnnotations()[madeAnnotation]), &what); err != nil {
		return "", fmt.Errorf("the lease %s in the namespace %s does not list the objects of its run: delete the objects with the label %s=%s: %w", name, a.Namespace, RunLabel, run, err)
	}
	if err := a.clearRun(ctx, run, what); err != nil {
		return "", err
	}
	return fmt.Sprintf("all of %s in the namespace %s of %s", run, a.Namespace, a.Host()), nil
}
