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
	// leaseLasts is how long after its last sign of life the owner of a run counts as dead for
	// others than the machine that it ran on.
	leaseLasts = time.Minute
	renewEvery = 10 * time.Second
	// madeAnnotation of a lease has what the run makes, as JSON.
	madeAnnotation = "stroppy.io/made"
	// removeLimit bounds how long the objects of a run may take to go.
	removeLimit = 2 * time.Minute
)

// ownership is a Lease that says that the run which made all objects of its name is alive. It
// is made before them and goes after them, so that whoever finds it without a living owner
// knows what to remove.
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

// leaseName is the name of the lease of a run. It is not that of the run, which the database has:
// CloudNativePG's primary holds a lease of the cluster's own name (internal/cmd/manager/instance/run/lease).
func leaseName(run string) string { return run + "-run" }

// made is what there may be of a run.
type made struct {
	Kinds    []schema.GroupVersionKind // of the objects that were applied, in the order in which they go
	Selector string                    // labels of the pods and volume claims that others make of them
	Secrets  string                    // labels of the secrets that an operator leaves; empty: none
}

// own makes the lease of a run.
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
				_ = o.renew(life) // the next one is soon; a lease that has run out is not the run's end
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

// willMake notes, before it is made, that the run will have objects of one more kind. They go
// before those that were there first.
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

// giveUp removes all objects of the run, and the lease when nothing else is left. It may be
// called again.
func (o *ownership) giveUp() error {
	o.once.Do(func() {
		o.end()
		o.done.Wait()
		ctx, cancel := context.WithTimeoutCause(context.Background(), removeLimit, fmt.Errorf("they have not gone within %v", removeLimit))
		defer cancel()
		o.err = o.api.clearRun(ctx, o.run, o.made)
	})
	return o.err
}

// clearRun removes the objects of a run, and then its lease.
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

// clearDead removes what runs have left whose owner has given no sign of life for long before
// now, by the API server's clock, and returns a line for each.
func (a *API) clearDead(ctx context.Context, now time.Time) (lines []string, err error) {
	leases, err := a.list(ctx, leaseKind, ManagedByLabel+"="+manager)
	if err != nil {
		return nil, fmt.Errorf("look for what earlier runs have left in the namespace %s: %w", a.Namespace, a.explain(err))
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

// lastApplied is when an object was changed last, by the API server's clock: those of the owner
// and of this machine may differ by more than a lease lasts.
func lastApplied(o *Object) (last time.Time) {
	for _, f := range o.GetManagedFields() {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// clearLease removes what the run of a lease has made.
func (a *API) clearLease(ctx context.Context, lease *Object) (line string, err error) {
	name, run := lease.GetName(), lease.GetLabels()[RunLabel]
	if name != leaseName(run) || !strings.HasPrefix(run, namePrefix) {
		return "", fmt.Errorf("the lease %s in the namespace %s is labelled as one of stroppy's and is none: look at it", name, a.Namespace)
	}
	var what made
	if err := json.Unmarshal([]byte(lease.GetAnnotations()[madeAnnotation]), &what); err != nil {
		return "", fmt.Errorf("the lease %s in the namespace %s does not say what its run has made: delete what has the label %s=%s: %w", name, a.Namespace, RunLabel, run, err)
	}
	if err := a.clearRun(ctx, run, what); err != nil {
		return "", err
	}
	return fmt.Sprintf("all of %s in the namespace %s of %s", run, a.Namespace, a.Host()), nil
}
