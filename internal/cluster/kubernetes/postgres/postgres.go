// Package postgres is the kind k8s/postgres: PostgreSQL with synchronous standbys. It uses the installed operator:
// CloudNativePG or Zalando's. CloudNativePG was tested to make, move and repair the objects. Zalando's operator was
// not tested, but its schema accepts the resource.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/wait"
)

const (
	port = 5432
	// user owns the database with the same name.
	user       = "stroppy"
	askTimeout = 2 * time.Second // of a query to one server, which may hang
)

var (
	cnpgKind    = schema.GroupVersionKind{Group: "postgresql.cnpg.io", Version: "v1", Kind: "Cluster"}
	zalandoKind = schema.GroupVersionKind{Group: "acid.zalan.do", Version: "v1", Kind: "postgresql"}
)

// Kind returns the kind for package kubernetes.
func Kind() *kubernetes.Kind {
	return &kubernetes.Kind{
		Name: "postgres", Port: port, Version: "17", Disk: "10Gi",
		Operators: []kubernetes.Operator{{
			Name: "CloudNativePG", Kind: cnpgKind,
			Install: "helm install cnpg cloudnative-pg --repo https://cloudnative-pg.github.io/charts --namespace cnpg-system --create-namespace",
			Labels:  labels.Set{"cnpg.io/cluster": "NAME"}, PodPrefix: "NAME-", FirstPod: 1,
			// PhaseHealthy (api/v1/cluster_types.go)
			Render: cloudNativePG, Status: reports("phase", "Cluster in healthy state"),
		}, {
			Name: "Zalando's Postgres Operator", Kind: zalandoKind,
			Install: "helm install postgres-operator postgres-operator --repo https://opensource.zalando.com/postgres-operator/charts/postgres-operator",
			Labels:  labels.Set{"cluster-name": "NAME"}, PodPrefix: "NAME-",
			// ClusterStatusRunning (pkg/apis/acid.zalan.do/v1/const.go)
			Render: zalando, Status: reports("PostgresClusterStatus", "Running"),
		}},
		Rights:  []kubernetes.Right{{Resource: "secrets", Verbs: []string{"get"}}},
		Connect: connect, Unconnected: func(*kubernetes.Spec) kubernetes.Database { return new(database) },
		Settings: func(string, string) error { return nil },
	}
}

func isZalando(s *kubernetes.Spec) bool { return s.Operator.Kind == zalandoKind }

// reports returns a status that requires a field of the resource to have a value.
func reports(field, value string) func(*kubernetes.Object, *kubernetes.Spec) error {
	return func(o *kubernetes.Object, _ *kubernetes.Spec) error {
		if said := kubernetes.Text(o.Object, "status", field); said != value {
			return fmt.Errorf("its operator reports %q %s", said, kubernetes.Text(o.Object, "status", "phaseReason"))
		}
		return nil
	}
}

// settings returns the requested settings of the server.
func settings(s *kubernetes.Spec) map[string]any {
	all := map[string]any{}
	for _, one := range s.Settings {
		all[one[0]] = one[1]
	}
	return all
}

// cloudNativePG returns a Cluster in which a majority of the servers acknowledges each commit (cloudnative-pg.io,
// "Replication").
func cloudNativePG(s *kubernetes.Spec) []*kubernetes.Object {
	server := map[string]any{"parameters": settings(s)}
	if s.Nodes > 1 {
		server["synchronous"] = map[string]any{"method": "any", "number": int64(s.Nodes / 2), "dataDurability": "required"}
	}
	return []*kubernetes.Object{s.Resource(map[string]any{
		"instances": int64(s.Nodes), "imageName": cmp.Or(s.Image, "ghcr.io/cloudnative-pg/postgresql:"+s.Version), "imagePullPolicy": s.Pull,
		"storage": map[string]any{"size": s.Disk, "storageClass": kubernetes.Given(s.StorageClass)}, "resources": s.Resources(),
		"postgresql": server, "bootstrap": map[string]any{"initdb": map[string]any{
			"database": user, "owner": user,
			"postInitSQL": []any{"GRANT pg_monitor TO " + user}, // for server metrics in the report
		}},
		"inheritedMetadata": map[string]any{"labels": map[string]any{kubernetes.RunLabel: s.Name}},
	})}
}

// zalando returns a postgresql whose Patroni runs in strict synchronous mode (postgres-operator.readthedocs.io,
// "Cluster manifest reference").
func zalando(s *kubernetes.Spec) []*kubernetes.Object {
	spec := map[string]any{
		"teamId": user, "numberOfInstances": int64(s.Nodes), "users": map[string]any{user: []any{"createdb"}}, "databases": map[string]any{user: user},
		"volume":      map[string]any{"size": s.Disk, "storageClass": kubernetes.Given(s.StorageClass)},
		"postgresql":  map[string]any{"version": s.Version, "parameters": settings(s)},
		"dockerImage": kubernetes.Given(s.Image), "resources": kubernetes.Given(s.Resources()),
	}
	if s.Nodes > 1 {
		spec["patroni"] = map[string]any{"synchronous_mode": true, "synchronous_mode_strict": true}
	}
	return []*kubernetes.Object{s.Resource(spec)}
}

// secretName returns the name of the secret with the owner's name and password.
func secretName(s *kubernetes.Spec) string {
	if isZalando(s) {
		return fmt.Sprintf("%s.%s.credentials.postgresql.acid.zalan.do", user, s.Name)
	}
	return s.Name + "-app"
}

// database is a connected PostgreSQL.
type database struct {
	api      *kubernetes.API
	spec     *kubernetes.Spec
	user     string
	password string
	name     string // of the database
	secure   string // TLS of connections, as a parameter of a URL
	servers  []string
}

func connect(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec, addresses []string) (kubernetes.Database, error) {
	secret, err := a.Secret(ctx, secretName(s))
	if err != nil {
		return nil, err
	}
	if secret["password"] == "" {
		return nil, fmt.Errorf("the secret %s has no password of the owner", secretName(s))
	}
	return &database{
		api: a, spec: s, servers: addresses, secure: "sslmode=require",
		user: cmp.Or(secret["username"], user), password: secret["password"], name: cmp.Or(secret["dbname"], user),
	}, nil
}

func (d *database) address(hosts, query string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(d.user, d.password), Host: hosts, Path: "/" + d.name, RawQuery: query}
	return u.String()
}

// URL returns the address of all servers. The servers of both operators accept TLS connections with self-signed
// certificates.
func (d *database) URL() string {
	return d.address(strings.Join(d.servers, ","), d.secure+"&target_session_attrs=read-write")
}

func (d *database) NodeURL(i int) string {
	return d.address(d.servers[i], d.secure+"&target_session_attrs=any")
}

// server is a server's own state.
type server struct {
	standby  bool
	replayed int64 // position in the log up to which a standby has replayed, in bytes
}

// to connects to a server for one query, so that no connection outlives the server process.
func (d *database) to(ctx context.Context, i int, question func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.NodeURL(i))
	if err != nil {
		return fmt.Errorf("n%d does not answer: %w", i, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return question(ctx, conn)
}

func (d *database) ask(ctx context.Context, i int) (s server, err error) {
	err = d.to(ctx, i, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT pg_is_in_recovery(), COALESCE(pg_last_wal_replay_lsn() - '0/0', 0)::bigint").Scan(&s.standby, &s.replayed)
	})
	return s, err
}

// Now implements kubernetes.Clock.
func (d *database) Now(ctx context.Context, node int) (now time.Time, err error) {
	err = d.to(ctx, node, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	})
	return now, err
}

// write commits a message that nobody reads, and returns the end of the server's log.
func (d *database) write(ctx context.Context, i int) (end int64, err error) {
	err = d.to(ctx, i, func(ctx context.Context, c *pgx.Conn) error {
		if _, err := c.Exec(ctx, "SELECT pg_logical_emit_message(true, 'stroppy', '')"); err != nil {
			return fmt.Errorf("n%d does not accept writes: %w", i, err)
		}
		return c.QueryRow(ctx, "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint").Scan(&end)
	})
	return end, err
}

// askAll asks all servers at once.
func (d *database) askAll(ctx context.Context) ([]server, []error) {
	list, failed := make([]server, len(d.servers)), make([]error, len(d.servers))
	_ = kubernetes.Each(d.servers, func(i int, _ string) error {
		list[i], failed[i] = d.ask(ctx, i)
		return nil
	})
	return list, failed
}

// Whole returns nil if one server accepts writes, and each other one replays what is written now. The primary's view
// of its standbys is not used, because the owner of a database may not read all statistics.
func (d *database) Whole(ctx context.Context) error {
	list, failed := d.askAll(ctx)
	if err := errors.Join(failed...); err != nil {
		return err
	}
	primary, primaries := 0, 0
	for i, s := range list {
		if !s.standby {
			primary = i
			primaries++
		}
	}
	if primaries != 1 {
		return fmt.Errorf("%d servers accept writes", primaries)
	}
	end, err := d.write(ctx, primary)
	if err != nil {
		return err
	}
	return kubernetes.Each(list, func(i int, _ server) error {
		if i == primary {
			return nil
		}
		return d.follows(ctx, i, end)
	})
}

// follows waits until a standby has replayed the log up to a position.
func (d *database) follows(ctx context.Context, i int, end int64) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return wait.Retry(ctx, func() error {
		s, err := d.ask(ctx, i)
		switch {
		case err != nil:
			return err
		case !s.standby:
			return fmt.Errorf("n%d also accepts writes", i)
		case s.replayed < end:
			return fmt.Errorf("n%d has %d bytes of the log to replay", i, end-s.replayed)
		}
		return nil
	})
}

func (d *database) Leader(ctx context.Context) (leader int, err error) {
	err = wait.Retry(ctx, func() error {
		list, failed := d.askAll(ctx)
		leader = -1
		for i, s := range list {
			if failed[i] != nil || s.standby {
				continue
			}
			if leader >= 0 {
				return fmt.Errorf("n%d and n%d both accept writes", leader, i)
			}
			leader = i
		}
		if leader < 0 {
			return errors.Join(append(failed, errors.New("no server accepts writes"))...)
		}
		return nil
	})
	return leader, err
}

// MoveLeader implements kubernetes.Mover. With CloudNativePG it does the same as `kubectl cnpg promote`
// (internal/cmd/plugin/promote). Zalando's operator has no such command.
func (d *database) MoveLeader(ctx context.Context, to int) error {
	if isZalando(d.spec) {
		return errors.New("leadership cannot be moved with Zalando's operator: use kill leader")
	}
	target := d.spec.Pods[to]
	err := d.api.Patch(ctx, cnpgKind, d.spec.Name, map[string]any{"status": map[string]any{
		"targetPrimary": target, "targetPrimaryTimestamp": kubernetes.Now(),
		"phase": "Switchover in progress", "phaseReason": "Switching over to " + target,
	}}, "status")
	if err != nil {
		return err
	}
	return wait.RetryEvery(ctx, askTimeout/4, func() error {
		leader, err := d.Leader(ctx)
		if err == nil && leader != to {
			err = fmt.Errorf("n%d is still the leader", leader)
		}
		return err
	})
}
