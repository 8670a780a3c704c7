// Package mysql is the kind k8s/mysql: MariaDB with Galera, all of whose servers accept writes, by mariadb-operator.
// The operator itself was tested by hand (docs/kubernetes.md); in tests a stand-in makes its objects.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	client "github.com/go-sql-driver/mysql"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/kubernetes"
	mysqlcluster "stroppy/internal/cluster/mysql"
)

const (
	port = 3306
	// user is the superuser. The operator's initial user may have at most 20 connections
	// (internal/controller/mariadb_controller.go).
	user     = "root"
	name     = "stroppy"  // of the database in the server
	password = "password" // key in the secret
	// transport uses TLS if the server has it, with a certificate of its operator.
	transport  = "tls=preferred"
	askTimeout = 2 * time.Second // of a query to one server, which may hang
	// startWithin is how long a server may replay its log, or copy the data of another server, until kubelet restarts
	// it. The operator's default is 40 seconds.
	startWithin = 5 * time.Minute
)

var mariaDB = schema.GroupVersionKind{Group: "k8s.mariadb.com", Version: "v1alpha1", Kind: "MariaDB"}

// Kind returns the kind for package kubernetes.
func Kind() *kubernetes.Kind {
	return &kubernetes.Kind{
		Name: "mysql", Port: port, Disk: "10Gi",
		Operators: []kubernetes.Operator{{
			Name: "mariadb-operator", Kind: mariaDB,
			Install:   "helm install mariadb-operator-crds mariadb-operator-crds --repo https://helm.mariadb.com/mariadb-operator && helm install mariadb-operator mariadb-operator --repo https://helm.mariadb.com/mariadb-operator",
			Labels:    labels.Set{"app.kubernetes.io/name": "mariadb", "app.kubernetes.io/instance": "NAME"}, // pkg/builder/labels
			PodPrefix: "NAME-", Render: render, Status: status,
		}},
		Connect: connect, Settings: checkSetting,
		Unconnected: func(*kubernetes.Spec) kubernetes.Database { return new(database) },
	}
}

func checkSetting(name, value string) error {
	if strings.ContainsFunc(value, unicode.IsControl) {
		return errors.New("the value of a setting must be one line")
	}
	return mysqlcluster.CheckSetting(name, value)
}

// render returns the superuser's password and the servers.
func render(s *kubernetes.Spec) []*kubernetes.Object {
	spec := map[string]any{
		"replicas": int64(s.Nodes), "imagePullPolicy": s.Pull, "database": name,
		"image": kubernetes.Given(s.Image), "resources": kubernetes.Given(s.Resources()),
		"storage": map[string]any{
			"size": s.Disk, "storageClassName": kubernetes.Given(s.StorageClass),
			"pvcRetentionPolicy": map[string]any{"whenDeleted": "Delete", "whenScaled": "Delete"},
		},
		"rootPasswordSecretKeyRef": map[string]any{"name": secretName(s), "key": password},
		// The label removes the Secret with the agents' password, to which the operator gives no owner.
		"inheritMetadata": map[string]any{"labels": map[string]any{kubernetes.RunLabel: s.Name}},
		"startupProbe":    map[string]any{"periodSeconds": int64(10), "failureThreshold": int64(startWithin / (10 * time.Second))},
	}
	if s.Image == "" && s.Version != "" {
		spec["image"] = "docker.io/library/mariadb:" + s.Version
	}
	if s.Nodes > 1 {
		spec["galera"] = map[string]any{
			"enabled": true,
			// Galera's own settings lie beside the data, so that each server has one volume.
			"config": map[string]any{"reuseStorageVolume": true},
			// The agents use a password in a Secret. By default the operator makes a ClusterRoleBinding, which
			// nothing removes, because it has no namespace and its owner has one.
			"agent": map[string]any{"basicAuth": map[string]any{"enabled": true}},
		}
		spec["replicasAllowEvenNumber"] = s.Nodes%2 == 0
	}
	if len(s.Settings) > 0 {
		lines := "[mariadb]\n"
		for _, one := range s.Settings {
			lines += one[0] + "=" + one[1] + "\n"
		}
		spec["myCnf"] = lines
	}
	secret := kubernetes.NewSecret(secretName(s), map[string]string{password: kubernetes.NewPassword()})
	return []*kubernetes.Object{secret, s.Resource(spec)}
}

func secretName(s *kubernetes.Spec) string { return s.Name + "-superuser" }

// status returns an error unless the operator reports its condition Ready (pkg/condition/ready.go).
func status(o *kubernetes.Object, _ *kubernetes.Spec) error {
	if ready, said := kubernetes.Condition(o, "Ready"); !ready {
		return fmt.Errorf("its operator reports that it is not ready: %q", said)
	}
	return nil
}

// database is a connected MariaDB.
type database struct {
	spec     *kubernetes.Spec
	name     string // of the database in the server
	password string
	servers  []string
}

func connect(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec, addresses []string) (kubernetes.Database, error) {
	o, err := s.Made(ctx, a)
	if err != nil {
		return nil, err
	}
	text := func(path ...string) string { return kubernetes.Text(o.Object, append([]string{"spec"}, path...)...) }
	d := &database{spec: s, name: text("database"), servers: addresses}
	switch {
	case d.name == "":
		return nil, fmt.Errorf("the MariaDB %s has no database for tables: set its spec.database", s.Name)
	case len(addresses) > 1 && !kubernetes.Flag(o.Object, "spec", "galera", "enabled"):
		return nil, fmt.Errorf("the MariaDB %s replicates without Galera, so it cannot be verified which servers have all commits: use one with Galera", s.Name)
	}
	secret, err := a.Secret(ctx, text("rootPasswordSecretKeyRef", "name"))
	if err != nil {
		return nil, err
	}
	d.password = secret[text("rootPasswordSecretKeyRef", "key")]
	return d, nil
}

// address returns the URL of servers. If there are several, sessions start with different servers.
func (d *database) address(hosts string) string {
	u := url.URL{Scheme: "mysql", User: url.UserPassword(user, d.password), Host: hosts, Path: "/" + d.name, RawQuery: transport}
	if strings.Contains(hosts, ",") {
		u.RawQuery += "&spread=true"
	}
	return u.String()
}

func (d *database) URL() string { return d.address(strings.Join(d.servers, ",")) }

func (d *database) NodeURL(i int) string { return d.address(d.servers[i]) }

// InsideURL implements kubernetes.Inside: pods of the namespace find servers by name in the operator's internal
// service (api/v1alpha1/mariadb_keys.go).
func (d *database) InsideURL() string { return d.address(d.spec.Hosts(d.spec.Name+"-internal", port)) }

// Leader always returns cluster.ErrNoLeader, because all servers accept writes.
func (d *database) Leader(context.Context) (int, error) { return 0, cluster.ErrNoLeader }

// Whole asks each server whether it accepts writes in a group of all servers.
func (d *database) Whole(ctx context.Context) error {
	return kubernetes.Each(d.servers, func(i int, _ string) error { return d.member(ctx, i) })
}

// member returns why a server does not accept writes, or nil
// (https://galeracluster.com/library/documentation/galera-status-variables.html).
func (d *database) member(ctx context.Context, i int) error {
	values, err := d.ask(ctx, i)
	switch {
	case err != nil:
		return fmt.Errorf("n%d does not answer: %w", i, err)
	case len(d.servers) == 1:
		return nil
	case values["wsrep_ready"] != "ON" || values["wsrep_cluster_status"] != "Primary" || values["wsrep_local_state_comment"] != "Synced":
		return fmt.Errorf("n%d is %s in a component that is %s, ready: %s", i, values["wsrep_local_state_comment"], values["wsrep_cluster_status"], values["wsrep_ready"])
	case values["wsrep_cluster_size"] != strconv.Itoa(len(d.servers)):
		return fmt.Errorf("n%d knows %s members instead of %d", i, values["wsrep_cluster_size"], len(d.servers))
	}
	return nil
}

// ask reads a server's status of Galera.
func (d *database) ask(ctx context.Context, i int) (values map[string]string, err error) {
	err = d.to(ctx, i, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_cluster_size', 'wsrep_local_state_comment')")
		if err != nil {
			return err
		}
		defer rows.Close()
		values = map[string]string{}
		for rows.Next() {
			var name, value string
			if err := rows.Scan(&name, &value); err != nil {
				return err
			}
			values[name] = value
		}
		return rows.Err()
	})
	return values, err
}

// Now implements kubernetes.Clock.
func (d *database) Now(ctx context.Context, node int) (now time.Time, err error) {
	err = d.to(ctx, node, func(ctx context.Context, db *sql.DB) (err error) {
		now, err = mysqlcluster.Now(ctx, db, fmt.Sprintf("n%d", node))
		return err
	})
	return now, err
}

// to connects to a server for one query, because a fault may have broken a kept connection.
func (d *database) to(ctx context.Context, i int, question func(context.Context, *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	config := client.NewConfig()
	config.User, config.Passwd, config.DBName = user, d.password, d.name
	config.Net, config.Addr, config.TLSConfig = "tcp", d.servers[i], "preferred"
	config.Timeout, config.ReadTimeout, config.WriteTimeout = askTimeout, askTimeout, askTimeout
	config.Logger = &client.NopLogger{} // its messages are in the errors
	connector, err := client.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return question(ctx, db)
}
