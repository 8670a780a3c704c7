package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// load is clients that write, and what was acknowledged to them.
type load struct {
	cluster *Cluster
	stop    context.CancelFunc
	writers sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string
}

func startLoad(t *testing.T, c *Cluster) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{cluster: c, stop: stop}
	for w := range 4 {
		l.writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				nodes := c.list()
				via, key := nodes[(w+i)%len(nodes)], fmt.Sprintf("%s/%d/%06d", t.Name(), w, i)
				question := map[string][]byte{"key": []byte(key), "value": []byte("x")}
				if !via.awake() || via.ask(ctx, 2*time.Second, "/v3/kv/put", question, nil) != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				l.mu.Lock()
				l.acknowledged = append(l.acknowledged, key)
				l.mu.Unlock()
			}
		})
	}
	t.Cleanup(func() {
		stop()
		l.writers.Wait()
	})
	l.goesOn(t)
	return l
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged)
}

// goesOn waits until more writes were acknowledged, none of which had begun
// before.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	before := l.count()
	must(t, persist(within(t, time.Minute), func() error {
		if l.count() < before+10 {
			return errors.New("no write is acknowledged")
		}
		return nil
	}))
}

// verify ends the load, waits until the cluster is whole, and looks on every
// node for every write that was acknowledged.
func (l *load) verify(t *testing.T) {
	t.Helper()
	l.stop()
	l.writers.Wait()
	must(t, l.cluster.Whole(within(t, time.Minute)))
	for _, n := range l.cluster.list() {
		var answer struct{ KVs []struct{ Key []byte } }
		question := map[string]any{"key": []byte(t.Name() + "/"), "range_end": []byte(t.Name() + "0"), "keys_only": true}
		must(t, n.ask(t.Context(), 10*time.Second, "/v3/kv/range", question, &answer))
		there := map[string]bool{}
		for _, kv := range answer.KVs {
			there[string(kv.Key)] = true
		}
		missing := slices.DeleteFunc(slices.Clone(l.acknowledged), func(key string) bool { return there[key] })
		if len(missing) > 0 {
			t.Errorf("%s lacks %d of %d writes that were acknowledged: %v…", n.Name(), len(missing), len(l.acknowledged), missing[0])
		}
	}
	t.Logf("%d writes acknowledged, all on every node", len(l.acknowledged))
}
