// Package mongodb is the kind k8s/mongodb: a replica set with its user's password in a Secret. It uses the installed
// operator: MongoDB's community operator or Percona's. The schemas of both accept the resources, and Percona's
// operator was tested up to its StatefulSet. Servers of MongoDB in pods were not tested.
package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stroppy/internal/cluster/kubernetes"
	"stroppy/internal/cluster/mongodb"
	"stroppy/internal/cluster/wait"
)

const (
	port     = 27017
	user     = "stroppy"
	name     = "stroppy"  // of the database
	password = "password" // key in the secret, and the operator's default
	logsDisk = "2Gi"      // size of each member's second volume, the operator's default

	communityVersion = "8.0.4" // default version
)

var community = schema.GroupVersionKind{Group: "mongodbcommunity.mongodb.com", Version: "v1", Kind: "MongoDBCommunity"}

// Kind returns the kind for package kubernetes.
func Kind() *kubernetes.Kind {
	return &kubernetes.Kind{
		Name: "mongodb", Port: port, Disk: "10Gi",
		Operators: []kubernetes.Operator{{
			Name: "MongoDB's community operator", Kind: community,
			Install: "helm install community-operator community-operator --repo https://mongodb.github.io/helm-charts --namespace NAMESPACE",
			Labels:  labels.Set{"app": service("NAME")}, PodPrefix: "NAME-", Render: ofCommunity, Status: communityStatus,
		}, {
			Name: "Percona's operator for MongoDB", Kind: percona,
			Install: "helm install psmdb-operator psmdb-operator --repo https://percona.github.io/percona-helm-charts --namespace NAMESPACE",
			Labels:  perconaLabels, Secrets: perconaSecrets, PodPrefix: "NAME-" + replicaSet + "-", Render: ofPercona, Status: perconaStatus,
		}},
		Connect: connect, Check: check, Settings: kubernetes.PlainSettings("MongoDB's configuration file", "._"),
		Unconnected: func(*kubernetes.Spec) kubernetes.Database { return new(database) },
	}
}

// service returns the name of the operator's headless service (api/v1/mongodbcommunity_types.go).
func service(resource string) string { return resource + "-svc" }

func secretName(s *kubernetes.Spec) string { return s.Name + "-user" }

// userSecret returns the password of the user, who is an administrator and may read the members' state and move
// leadership.
func userSecret(s *kubernetes.Spec) *kubernetes.Object {
	return kubernetes.NewSecret(secretName(s), map[string]string{password: kubernetes.NewPassword()})
}

// ofCommunity returns a replica set of MongoDB's own operator.
func ofCommunity(s *kubernetes.Spec) []*kubernetes.Object {
	settings := map[string]any{}
	for _, one := range s.Settings {
		settings[one[0]] = scalar(one[1])
	}
	ours := map[string]any{kubernetes.RunLabel: s.Name}
	volume := func(name string, claim map[string]any) any {
		return map[string]any{"metadata": map[string]any{"name": name, "labels": ours}, "spec": claim}
	}
	logs := *s
	logs.Disk = logsDisk
	return []*kubernetes.Object{userSecret(s), s.Resource(map[string]any{
		"members": int64(s.Nodes), "type": "ReplicaSet", "version": cmp.Or(s.Version, communityVersion), "additionalMongodConfig": settings,
		"security": map[string]any{"authentication": map[string]any{"modes": []any{"SCRAM"}}},
		"users": []any{map[string]any{
			"name": user, "db": "admin", "passwordSecretRef": map[string]any{"name": secretName(s)},
			"roles": []any{map[string]any{"name": "root", "db": "admin"}}, "scramCredentialsSecretName": s.Name,
		}},
		"statefulSet": map[string]any{"spec": map[string]any{
			"template": map[string]any{"metadata": map[string]any{"labels": ours}, "spec": map[string]any{"containers": []any{map[string]any{
				"name": "mongod", "image": kubernetes.Given(s.Image), "imagePullPolicy": s.Pull, "resources": s.Resources(),
			}}}},
			"volumeClaimTemplates": []any{volume("data-volume", s.ClaimSpec()), volume("logs-volume", logs.ClaimSpec())},
		}},
	})}
}

// scalar returns a value in the type of the configuration file. A text that is not the canonical form of a number,
// such as the version 8.0, stays a text.
func scalar(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && strings.Trim(text, "-.0123456789") == "" && strconv.FormatFloat(f, 'f', -1, 64) == text {
		return f
	}
	if truth, err := strconv.ParseBool(text); err == nil && len(text) > 1 {
		return truth
	}
	return text
}

// communityStatus requires the phase Running (api/v1/mongodbcommunity_types.go).
func communityStatus(o *kubernetes.Object, _ *kubernetes.Spec) error {
	return reports(o, "phase", "Running")
}

// reports returns an error unless a field of the status has a value.
func reports(o *kubernetes.Object, field, value string) error {
	if said := kubernetes.Text(o.Object, "status", field); said != value {
		return fmt.Errorf("its operator reports %q %s", said, kubernetes.Text(o.Object, "status", "message"))
	}
	return nil
}

// database is a connected replica set.
type database struct {
	set     string
	servers []mongodb.Server
}

func connect(ctx context.Context, a *kubernetes.API, s *kubernetes.Spec, addresses []string) (d kubernetes.Database, err error) {
	var cannot unusable
	err = wait.Retry(ctx, func() error { // the operator reports the members last
		o, err := s.Made(ctx, a)
		if err == nil {
			d, err = found(ctx, a, o, s.Pods, addresses)
		}
		if errors.As(err, &cannot) {
			return nil
		}
		return err
	})
	if cannot != "" {
		return nil, cannot
	}
	return d, err
}

// unusable is an error that waiting does not change.
type unusable string

func (e unusable) Error() string { return string(e) }

// found reads the members' names and the user's password from a resource.
func found(ctx context.Context, a *kubernetes.API, o *kubernetes.Object, pods, addresses []string) (*database, error) {
	if kubernetes.Flag(o.Object, "spec", "security", "tls", "enabled") || kubernetes.Text(o.Object, "spec", "tls", "mode") == "requireTLS" {
		return nil, unusable(fmt.Sprintf("the %s %s has TLS, and its certificates are not read here: use its address with --db", o.GetKind(), o.GetName()))
	}
	users, _, _ := unstructured.NestedSlice(o.Object, "spec", "users")
	if len(users) == 0 {
		return nil, unusable(fmt.Sprintf("the %s %s has no user in spec.users: add an administrator, or use its address with --db", o.GetKind(), o.GetName()))
	}
	account, of, key, err := accountOf(o, users[0])
	if err != nil {
		return nil, err
	}
	secret, err := a.Secret(ctx, of)
	if err != nil {
		return nil, err
	}
	d := &database{set: o.GetName()}
	var hosts []string
	if o.GetKind() == percona.Kind {
		d.set, hosts, err = perconaMembers(o, pods)
	} else {
		hosts, err = hostsOf(kubernetes.Text(o.Object, "status", "mongoUri"), pods)
	}
	if err != nil {
		return nil, err
	}
	for i, host := range hosts {
		d.servers = append(d.servers, mongodb.Server{Name: fmt.Sprintf("n%d", i), Host: host, Address: addresses[i], User: account, Password: secret[key]})
	}
	return d, nil
}

// accountOf returns the name of a user in a resource, and the name and key of the secret with the password.
func accountOf(o *kubernetes.Object, user any) (name, secret, key string, err error) {
	account, _ := user.(map[string]any)
	name, of := kubernetes.Text(account, "name"), kubernetes.Text(account, "db")
	secret, key = kubernetes.Text(account, "passwordSecretRef", "name"), kubernetes.Text(account, "passwordSecretRef", "key")
	switch {
	case secret == "":
		return "", "", "", unusable(fmt.Sprintf("the user %s of the %s %s has no passwordSecretRef: add one, or use the database's address with --db", name, o.GetKind(), o.GetName()))
	case of != "" && of != "admin":
		return "", "", "", unusable(fmt.Sprintf("the first user %s of the %s %s belongs to the database %s: put a user of the database admin first, or use the database's address with --db", name, o.GetKind(), o.GetName(), of))
	}
	return name, secret, cmp.Or(key, password), nil
}

// hostsOf returns the HOST:PORT of pods from the operator's URI, which contains the members' names for each other.
func hostsOf(uri string, pods []string) (hosts []string, err error) {
	_, rest, _ := strings.Cut(uri, "://")
	rest, _, _ = strings.Cut(rest, "/")
	all := strings.Split(rest, ",")
	for _, pod := range pods {
		at := slices.IndexFunc(all, func(host string) bool { return strings.HasPrefix(host, pod+".") })
		if at < 0 {
			return nil, fmt.Errorf("its operator does not name the member %s: it reports %q", pod, uri)
		}
		hosts = append(hosts, all[at])
	}
	return hosts, nil
}

// address returns the URL of servers by their names in the replica set. A client outside reaches all members, which
// the set names too, through this program.
func (d *database) address(servers []mongodb.Server, outside bool, query url.Values) string {
	var hosts, via []string
	for _, m := range servers {
		hosts = append(hosts, m.Host)
	}
	for _, m := range d.servers {
		via = append(via, m.Host+"="+m.Address)
	}
	if outside {
		query.Set("via", strings.Join(via, ","))
	}
	query.Set("authSource", "admin")
	u := url.URL{Scheme: "mongodb", User: url.UserPassword(d.servers[0].User, d.servers[0].Password), Host: strings.Join(hosts, ","), Path: "/" + name, RawQuery: query.Encode()}
	return u.String()
}

func (d *database) URL() string {
	return d.address(d.servers, true, url.Values{"replicaSet": {d.set}})
}

func (d *database) NodeURL(i int) string {
	return d.address(d.servers[i:i+1], true, url.Values{"directConnection": {"true"}})
}

// InsideURL implements kubernetes.Inside: pods can resolve the members' names.
func (d *database) InsideURL() string {
	return d.address(d.servers, false, url.Values{"replicaSet": {d.set}})
}

func (d *database) Whole(ctx context.Context) error { return mongodb.Healthy(ctx, d.servers) }

func (d *database) Leader(ctx context.Context) (leader int, err error) {
	err = wait.Retry(ctx, func() error {
		leader, err = mongodb.Primary(ctx, d.servers)
		return err
	})
	return leader, err
}

// MoveLeader implements kubernetes.Mover: the member stands for election until it accepts writes.
func (d *database) MoveLeader(ctx context.Context, to int) error {
	return wait.Retry(ctx, func() error {
		leader, err := mongodb.Primary(ctx, d.servers)
		if err != nil || leader == to {
			return err
		}
		return errors.Join(fmt.Errorf("n%d is primary", leader), d.servers[to].StepUp(ctx))
	})
}
