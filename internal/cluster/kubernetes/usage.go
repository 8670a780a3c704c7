package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"stroppy/internal/cluster/wait"
	"stroppy/internal/resource"
)

// meter reads the resource use of the servers' pods from the kubelets of their machines. It uses the summary API
// (k8s.io/kubelet/pkg/apis/stats/v1alpha1) through the API server. A kubelet measures its pods about every ten
// seconds.
type meter struct {
	cluster *Cluster
	stop    context.CancelFunc
	ended   chan struct{}

	mu      sync.Mutex
	latest  map[types.UID]resource.Reading
	earlier map[types.UID]resource.Reading // the measurement before
}

// usageEvery is the interval between two queries, and usageLimit bounds one query.
const usageEvery, usageLimit = 5 * time.Second, 3 * time.Second

// startMeter starts a meter that reads until Stop. The error is the reason why nothing can be read.
func (c *Cluster) startMeter(ctx context.Context) error {
	m := &meter{cluster: c, latest: map[types.UID]resource.Reading{}, earlier: map[types.UID]resource.Reading{}, ended: make(chan struct{})}
	if err := m.read(ctx); err != nil {
		return err
	}
	ctx, m.stop = context.WithCancel(context.Background())
	c.meter = m
	go func() {
		defer close(m.ended)
		for wait.Sleep(ctx, usageEvery) == nil {
			_ = m.read(ctx) // without a result, the use at this time is unknown
		}
	}()
	return nil
}

func (m *meter) end() {
	m.stop()
	<-m.ended
}

// read asks each machine that has one of the pods.
func (m *meter) read(ctx context.Context) error {
	machines := map[string]bool{}
	for _, n := range m.cluster.nodes {
		if pod := n.current(); pod != nil && pod.Spec.NodeName != "" {
			machines[pod.Spec.NodeName] = true
		}
	}
	var wrong error
	for machine := range machines {
		if err := m.ask(ctx, machine); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("read the resource use of the pods on %s: %w", machine, err))
		}
	}
	return wrong
}

// ask reads the summary of a machine. If its kubelet has no summary of the file systems, ask reads only processors
// and memory.
func (m *meter) ask(ctx context.Context, machine string) (err error) {
	for _, query := range []string{"", "?only_cpu_and_memory=true"} {
		var text []byte
		limited, cancel := context.WithTimeout(ctx, usageLimit)
		text, err = m.cluster.api.get(limited, "/api/v1/nodes/"+machine+"/proxy/stats/summary"+query)
		cancel()
		if err == nil {
			return m.take(text)
		}
	}
	return err
}

// take records a summary.
func (m *meter) take(text []byte) error {
	var summary struct {
		Pods []struct {
			PodRef struct{ UID types.UID }
			CPU    *struct {
				Time                 time.Time
				UsageCoreNanoSeconds *uint64
			}
			Memory  *struct{ WorkingSetBytes *uint64 }
			Network *struct {
				Time             time.Time
				RxBytes, TxBytes *uint64
			}
			Volume []struct {
				UsedBytes *uint64
				PVCRef    *struct{ Name string } // nil: not a volume of the data
			}
		}
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		return fmt.Errorf("the kubelet's summary is invalid: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range summary.Pods {
		if p.CPU == nil || p.CPU.UsageCoreNanoSeconds == nil || p.Memory == nil || p.Memory.WorkingSetBytes == nil {
			continue
		}
		u := resource.Reading{
			Of: string(p.PodRef.UID), At: p.CPU.Time,
			CPU: float64(*p.CPU.UsageCoreNanoSeconds) / 1e9, RSS: int64(*p.Memory.WorkingSetBytes),
		}
		if n := p.Network; n != nil && n.RxBytes != nil && n.TxBytes != nil {
			u.Traffic = &resource.Traffic{At: n.Time, Received: int64(*n.RxBytes), Sent: int64(*n.TxBytes)}
		}
		for _, v := range p.Volume {
			if v.PVCRef == nil {
				continue
			}
			if v.UsedBytes == nil { // its driver does not report it, so the sum is unknown
				u.Stored = nil
				break
			}
			if u.Stored == nil {
				u.Stored = new(int64)
			}
			*u.Stored += int64(*v.UsedBytes)
		}
		if last, is := m.latest[p.PodRef.UID]; is && u.At.After(last.At) {
			m.earlier[p.PodRef.UID] = last
		}
		m.latest[p.PodRef.UID] = u
	}
	return nil
}

// Used returns what the node's pod had used at the last measurement of its kubelet, and whether this is known.
func (n *node) Used() (resource.Reading, bool) {
	m, pod := n.cluster.meter, n.current()
	if m == nil || pod == nil {
		return resource.Reading{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u, known := m.latest[pod.UID]
	return u, known
}

// Unmetered returns why the use of the pods is unknown, or "" if it is known.
func (c *Cluster) Unmetered() string { return c.unmetered }
