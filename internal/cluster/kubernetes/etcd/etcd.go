// Package etcd is the kind k8s/etcd: a StatefulSet whose pods are members of one etcd cluster, with the image of
// etcd's maintainers (3.4 or later).
package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/labels"

	"stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/wait"
)

// The registered ports of etcd.
const clientPort, peerPort = 2379, 2380

// Mount points of a member's volume. The log has its own mount, for disk faults. A fault in the database file made a
// member crash on a page that was no longer mapped (Chaos Mesh's issue 2946).
const (
	data = "/var/lib/etcd"
	logs = data + "/log"
)

// writeTimeout bounds a write to a disk that may be slow.
const writeTimeout = 30 * time.Second

// Kind returns the kind for package kubernetes.
func Kind() *kubernetes.Kind {
	return &kubernetes.Kind{
		Name: "etcd", Port: clientPort, Disk: "1Gi",
		Image: "gcr.io/etcd-development/etcd", Version: "v3.6.8",
		StatefulSet: true,
		Operators: []kubernetes.Operator{{
			Labels:    labels.Set{kubernetes.RunLabel: "NAME", kubernetes.ComponentLabel: "etcd"},
			PodPrefix: "NAME-", Render: render,
		}},
		Connect: connect, Unconnected: func(*kubernetes.Spec) kubernetes.Database { return new(database) },
		Settings: func(name, _ string) error { return etcd.CheckFlag(name) },
	}
}

// render returns a Service by which the members find each other, and their StatefulSet.
func render(s *kubernetes.Spec) []*kubernetes.Object {
	chosen := map[string]any{kubernetes.RunLabel: s.Name, kubernetes.ComponentLabel: "etcd"}
	service := kubernetes.NewObject("v1", "Service", s.Name, map[string]any{"spec": map[string]any{
		"clusterIP": "None", "publishNotReadyAddresses": true, "selector": chosen,
		"ports": []any{
			map[string]any{"name": "client", "port": int64(clientPort)},
			map[string]any{"name": "peer", "port": int64(peerPort)},
		},
	}})
	set := kubernetes.NewObject("apps/v1", "StatefulSet", s.Name, map[string]any{"spec": map[string]any{
		"serviceName": s.Name, "replicas": int64(s.Nodes), "podManagementPolicy": "Parallel",
		"updateStrategy": map[string]any{"type": "OnDelete"},
		"selector":       map[string]any{"matchLabels": chosen},
		"template":       map[string]any{"metadata": map[string]any{"labels": chosen}, "spec": podSpec(s)},
		"volumeClaimTemplates": []any{map[string]any{
			"metadata": map[string]any{"name": kubernetes.DataVolume, "labels": chosen}, "spec": s.ClaimSpec(),
		}},
		"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Delete", "whenScaled": "Delete"},
	}})
	return []*kubernetes.Object{set, service}
}

func podSpec(s *kubernetes.Spec) map[string]any {
	probe := map[string]any{
		"httpGet":       map[string]any{"path": "/health?serializable=true", "port": int64(clientPort)},
		"periodSeconds": int64(1), "timeoutSeconds": int64(2), "failureThreshold": int64(5),
	}
	return map[string]any{
		"automountServiceAccountToken": false, "terminationGracePeriodSeconds": int64(10),
		"securityContext": kubernetes.RestrictedPod(),
		"containers": []any{map[string]any{
			"name": "etcd", "image": s.Image, "imagePullPolicy": s.Pull, "securityContext": kubernetes.RestrictedContainer(),
			"command": []any{"/usr/local/bin/etcd"}, "args": flags(s),
			"env": []any{map[string]any{"name": "POD", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}},
			"ports": []any{
				map[string]any{"name": "client", "containerPort": int64(clientPort)},
				map[string]any{"name": "peer", "containerPort": int64(peerPort)},
			},
			"readinessProbe": probe, "resources": s.Resources(),
			"volumeMounts": []any{
				map[string]any{"name": kubernetes.DataVolume, "mountPath": data},
				map[string]any{"name": kubernetes.DataVolume, "mountPath": logs, "subPath": "log"},
			},
		}},
	}
}

// flags returns the flags of every member, in which Kubernetes inserts the pod's name. A member that is made after
// the cluster has formed joins it.
func flags(s *kubernetes.Spec) (list []any) {
	state := "new"
	if s.Formed {
		state = "existing"
	}
	var members []string
	for i := range s.Nodes {
		members = append(members, fmt.Sprintf("%s-%d=%s", s.Name, i, peerURL(s.Name, i)))
	}
	list = []any{
		"--name=$(POD)", "--data-dir=" + data + "/member", "--wal-dir=" + logs + "/wal",
		fmt.Sprintf("--listen-client-urls=http://0.0.0.0:%d", clientPort), fmt.Sprintf("--listen-peer-urls=http://0.0.0.0:%d", peerPort),
		fmt.Sprintf("--advertise-client-urls=http://$(POD).%s:%d", s.Name, clientPort),
		fmt.Sprintf("--initial-advertise-peer-urls=http://$(POD).%s:%d", s.Name, peerPort),
		"--initial-cluster=" + strings.Join(members, ","), "--initial-cluster-state=" + state, "--initial-cluster-token=" + s.Name,
	}
	for _, one := range s.Settings {
		list = append(list, "--"+one[0]+"="+one[1])
	}
	return list
}

func peerURL(name string, i int) string {
	return fmt.Sprintf("http://%s-%d.%s:%d", name, i, name, peerPort)
}

// database is a connected etcd cluster.
type database struct {
	spec      *kubernetes.Spec
	addresses []string
}

func connect(_ context.Context, _ *kubernetes.API, s *kubernetes.Spec, addresses []string) (kubernetes.Database, error) {
	return &database{s, addresses}, nil
}

func (d *database) URL() string { return "etcd://" + strings.Join(d.addresses, ",") }

func (d *database) NodeURL(i int) string { return "etcd://" + d.addresses[i] }

// InsideURL implements kubernetes.Inside: pods of the namespace find members by name.
func (d *database) InsideURL() string { return "etcd://" + d.spec.Hosts(d.spec.Name, clientPort) }

func (d *database) status(ctx context.Context, i int) (*clientv3.StatusResponse, error) {
	return etcd.Ask(ctx, d.addresses[i:i+1], etcd.AskTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.StatusResponse, error) {
		return c.Status(ctx, d.addresses[i])
	})
}

// Whole asks each member for a linearizable read and for the complete list of members.
func (d *database) Whole(ctx context.Context) error {
	for i := range d.addresses {
		members, err := d.members(ctx, i)
		if err != nil {
			return fmt.Errorf("n%d does not answer: %w", i, err)
		}
		if len(members) != len(d.addresses) {
			return fmt.Errorf("n%d knows %d members instead of %d", i, len(members), len(d.addresses))
		}
		for _, m := range members {
			if m.IsLearner || m.Name == "" {
				return fmt.Errorf("n%d knows a member at %s that has not joined", i, strings.Join(m.PeerURLs, ","))
			}
		}
	}
	return nil
}

// members returns the list of members by a linearizable answer of one member.
func (d *database) members(ctx context.Context, i int) ([]*etcdserverpb.Member, error) {
	list, err := etcd.Ask(ctx, d.addresses[i:i+1], etcd.AskTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.MemberListResponse, error) {
		return c.MemberList(ctx)
	})
	if err != nil {
		return nil, err
	}
	return list.Members, nil
}

// Leader returns the node that reports itself as leader, in the highest term if there are several.
func (d *database) Leader(ctx context.Context) (leader int, err error) {
	err = wait.Retry(ctx, func() error {
		term := uint64(0)
		leader = -1
		for i := range d.addresses {
			s, err := d.status(ctx, i)
			if err == nil && s.Leader == s.Header.MemberId && s.RaftTerm > term {
				leader, term = i, s.RaftTerm
			}
		}
		if leader < 0 {
			return errors.New("no member of etcd reports itself as leader")
		}
		return nil
	})
	return leader, err
}

// MoveLeader implements kubernetes.Mover.
func (d *database) MoveLeader(ctx context.Context, to int) error {
	from, err := d.Leader(ctx)
	if err != nil || from == to {
		return err
	}
	target, err := d.status(ctx, to)
	if err != nil {
		return fmt.Errorf("move leadership to n%d: it does not answer: %w", to, err)
	}
	_, err = etcd.Ask(ctx, d.addresses[from:from+1], etcd.ChangeTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.MoveLeaderResponse, error) {
		return c.MoveLeader(ctx, target.Header.MemberId)
	})
	if err != nil {
		return fmt.Errorf("move leadership to n%d: %w", to, err)
	}
	return nil
}

// Volume implements kubernetes.Writer.
func (d *database) Volume() string { return logs }

// Write implements kubernetes.Writer. A member stores each log entry on its disk before it answers. The entry is a
// lease that nobody uses, and that expires.
func (d *database) Write(ctx context.Context, node int) error {
	_, err := etcd.Ask(ctx, d.addresses[node:node+1], writeTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
		return c.Grant(ctx, 1)
	})
	if err != nil {
		return fmt.Errorf("make n%d write a log entry: %w", node, err)
	}
	return nil
}

// Rejoin implements kubernetes.Rejoiner. The member with the node's name leaves, and an empty one is expected at its
// address.
func (d *database) Rejoin(ctx context.Context, node int) error {
	others := slices.Delete(slices.Clone(d.addresses), node, node+1)
	peer := peerURL(d.spec.Name, node)
	_, err := etcd.Ask(ctx, others, etcd.ChangeTimeout, func(ctx context.Context, c *clientv3.Client) (*clientv3.MemberAddResponse, error) {
		list, err := c.MemberList(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range list.Members {
			if !slices.Contains(m.PeerURLs, peer) {
				continue
			}
			if m.Name == "" { // an earlier attempt has added it
				return nil, nil
			}
			if _, err := c.MemberRemove(ctx, m.ID); err != nil {
				return nil, err
			}
		}
		return c.MemberAdd(ctx, []string{peer})
	})
	return err
}
