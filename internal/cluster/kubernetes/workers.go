package kubernetes

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// ComponentLabel holds the role of a pod of a run.
const ComponentLabel = "app.kubernetes.io/component"

const (
	workerComponent = "worker"
	// tokenVariable is the environment variable for a worker's token.
	tokenVariable = "STROPPY_WORKER_TOKEN"
	tokenKey      = "token"
)

// Inside is a database that pods of its namespace reach without this program.
type Inside interface {
	InsideURL() string // in the form that --db takes
}

// InsideURL returns the address of the database for pods of its namespace.
func (c *Cluster) InsideURL() (string, error) {
	if in, ok := c.database.(Inside); ok && c.spec.Name == c.run {
		return in.InsideURL(), nil
	}
	return "", fmt.Errorf("the address of k8s/%s for pods is not known: do not run workers in pods", c.kind.Name)
}

// NearAddress returns the address of this machine by which it and the pods reach each other.
func (c *Cluster) NearAddress() (string, error) {
	n := c.nodes[0]
	pod := n.current()
	if pod == nil || !n.direct() {
		return "", errors.New("let workers in pods join: this program does not reach the pods at their own addresses, so they may not reach it: run it in a pod, or name an address that they reach with --workers-listen")
	}
	conn, err := net.Dial("udp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(c.kind.Port))) // sends nothing
	if err != nil {
		return "", fmt.Errorf("find the address by which pods reach this program: %w", err)
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}

// StartWorkers makes an Indexed Job whose pods join a run at an address by a token, each by its index. It returns
// when all of them run. They are removed with the cluster.
func (c *Cluster) StartWorkers(ctx context.Context, count int, address, token string) error {
	objects := c.workerObjects(count, address, token)
	err := c.api.Require(ctx, []Right{
		{Resource: "secrets", Verbs: []string{"create", "get", "list", "patch", "delete"}},
		{Group: "batch", Resource: "jobs", Verbs: managed()},
	})
	for _, o := range objects {
		if err == nil {
			err = c.owner.willMake(ctx, o.GroupVersionKind())
		}
		if err == nil {
			_, err = c.api.Apply(ctx, c.run, o)
		}
	}
	if err != nil {
		return fmt.Errorf("start the workers' pods: %w", err)
	}
	pods, err := c.api.watchPods(ctx, RunLabel+"="+c.run+","+ComponentLabel+"="+workerComponent, func(*corev1.Pod) {})
	if err != nil {
		return err
	}
	defer pods.stop()
	err = pods.until(ctx, func() error {
		running := 0
		for _, p := range pods.all() {
			if hopeless := hopelessPod(p, "tool-image="); hopeless != nil {
				return hopeless
			}
			if p.Status.Phase != corev1.PodPending {
				running++
			}
		}
		if running < count {
			return fmt.Errorf("%d of %d run", running, count)
		}
		return nil
	})
	if err != nil && !errors.As(err, new(errHopeless)) {
		err = fmt.Errorf("start the workers' pods: %w", c.api.diagnose(err, c.workersName(), pods.all()))
	}
	return err
}

func (c *Cluster) workersName() string { return c.run + "-workers" }

// workerObjects returns the Secret with the token, and the Job.
func (c *Cluster) workerObjects(count int, address, token string) []*Object {
	name := c.workersName()
	secret := NewObject("v1", "Secret", name, map[string]any{"data": map[string]any{tokenKey: base64.StdEncoding.EncodeToString([]byte(token))}})
	pod := map[string]any{
		"automountServiceAccountToken": false, "restartPolicy": "Never", "terminationGracePeriodSeconds": int64(5),
		"securityContext": RestrictedPod(),
		"volumes":         []any{map[string]any{"name": "recording", "emptyDir": map[string]any{}}},
		"containers": []any{map[string]any{
			"name": "worker", "image": c.spec.ToolImage, "imagePullPolicy": c.spec.Pull, "securityContext": RestrictedContainer(),
			"args":         []any{"worker", "--join", address},
			"env":          []any{map[string]any{"name": tokenVariable, "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": name, "key": tokenKey}}}},
			"volumeMounts": []any{map[string]any{"name": "recording", "mountPath": "/tmp"}},
		}},
	}
	job := NewObject("batch/v1", "Job", name, map[string]any{"spec": map[string]any{
		"completionMode": "Indexed", "completions": int64(count), "parallelism": int64(count), "backoffLimit": int64(0),
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{RunLabel: c.run, ManagedByLabel: manager, ComponentLabel: workerComponent, partLabel: workerComponent}}, "spec": pod},
	}})
	asPart(secret, workerComponent)
	asPart(job, workerComponent)
	return []*Object{secret, job}
}
