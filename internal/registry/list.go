//go:build !embedded

package registry

import (
	"context"
	"errors"
	"net/netip"

	"github.com/spf13/cobra"

	"stroppy/internal/cluster"
	cockroachcluster "stroppy/internal/cluster/cockroach"
	"stroppy/internal/cluster/disk"
	dqlitecluster "stroppy/internal/cluster/dqlite"
	etcdcluster "stroppy/internal/cluster/etcd"
	foundationdbcluster "stroppy/internal/cluster/foundationdb"
	"stroppy/internal/cluster/host"
	infinisqlcluster "stroppy/internal/cluster/infinisql"
	"stroppy/internal/cluster/kubernetes"
	cockroachkubernetes "stroppy/internal/cluster/kubernetes/cockroach"
	etcdkubernetes "stroppy/internal/cluster/kubernetes/etcd"
	foundationdbkubernetes "stroppy/internal/cluster/kubernetes/foundationdb"
	mongodbkubernetes "stroppy/internal/cluster/kubernetes/mongodb"
	mysqlkubernetes "stroppy/internal/cluster/kubernetes/mysql"
	postgreskubernetes "stroppy/internal/cluster/kubernetes/postgres"
	mongodbcluster "stroppy/internal/cluster/mongodb"
	mysqlcluster "stroppy/internal/cluster/mysql"
	postgrescluster "stroppy/internal/cluster/postgres"
	postgresserver "stroppy/internal/cluster/postgres/server"
	rediscluster "stroppy/internal/cluster/redis"
	voltdbcluster "stroppy/internal/cluster/voltdb"
	"stroppy/internal/db"
	"stroppy/internal/db/cockroach"
	"stroppy/internal/db/dqlite"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/foundationdb"
	"stroppy/internal/db/infinisql"
	"stroppy/internal/db/memory"
	"stroppy/internal/db/mongodb"
	"stroppy/internal/db/mysql"
	"stroppy/internal/db/noop"
	"stroppy/internal/db/postgres"
	"stroppy/internal/db/redis"
	"stroppy/internal/db/sqlite"
	"stroppy/internal/db/voltdb"
	"stroppy/internal/db/wire"
	"stroppy/internal/exit"
	"stroppy/internal/scenario"
)

// clusterServants serve the clusters of several databases.
func clusterServants() []*cobra.Command {
	return []*cobra.Command{
		servant(kubernetes.ProbeCommand, "Say which pods this pod reaches", kubernetes.Probe),
		servant(host.FaultFSCommand, "Serve the file system under a node's data", func([]string) error { return disk.Serve() }),
	}
}

// ConnectFromThose returns a context in which connections are made from these addresses.
func ConnectFromThose(ctx context.Context, addresses []netip.Addr) (context.Context, error) {
	for _, address := range addresses {
		if err := wire.CheckLocal(address); err != nil {
			return ctx, exit.Usagef("local-address: %w", err)
		}
	}
	return wire.WithLocalAddresses(ctx, addresses), nil
}

// Databases returns one entry for each database: the Driver of its folder, and the clusters of it that this
// program can start. The build tag embedded leaves out databases with servers, and with them most of what a
// build has to compile.
func Databases() []Database {
	return []Database{
		{Driver: sqlite.Driver},
		{Driver: postgres.Driver, Clusters: []ClusterKind{
			{"postgres", "postgres:N[?synchronous=on&pooler=transaction]  a PostgreSQL primary with standbys and Patroni; postgres:1: one server; pooler: PgBouncer in front", 1, 5, starter(postgrescluster.Start)},
			inKubernetes(postgreskubernetes.Kind(), "PostgreSQL with synchronous standbys, by the operator CloudNativePG, or Zalando's (experimental)", 3, 9),
		}},
		{Driver: cockroach.Driver, Clusters: []ClusterKind{
			{"cockroach", "cockroach:N[?election_ticks=6&max_offset=500ms]  CockroachDB, a majority of each range of which decides", 3, 9, starter(cockroachcluster.Start)},
			inKubernetes(cockroachkubernetes.Kind(), "experimental: CockroachDB, by either operator of Cockroach Labs", 3, 9),
		}},
		{Driver: etcd.Driver, Clusters: []ClusterKind{
			{"etcd", "etcd:N  etcd, a majority of whose nodes decides", 3, 9, starter(etcdcluster.Start)},
			inKubernetes(etcdkubernetes.Kind(), "etcd, by a StatefulSet", 3, 9),
		}},
		{Driver: foundationdb.Driver, Clusters: []ClusterKind{
			{"fdb", "fdb:N[?redundancy=double&storage=ssd&knobs=test]  FoundationDB, whose data are on as many nodes as the redundancy says; in a build with the tag fdb", 3, 25, starter(foundationdbcluster.Start)},
			inKubernetes(foundationdbkubernetes.Kind(fdbClient()), "FoundationDB, by its operator; in a build with the tag fdb", 3, 25),
		}},
		{Driver: dqlite.Driver, Clusters: []ClusterKind{
			{"dqlite", "dqlite:N  dqlite, SQLite replicated by Raft; in a build with the tag dqlite", 3, 9, starter(dqlitecluster.Start)},
		}, servant: servant(dqlitecluster.NodeCommand, "Be a node of dqlite", dqlitecluster.Serve)},
		{Driver: mysql.Driver, Clusters: []ClusterKind{
			{"mariadb", "mariadb:1  one MariaDB server", 1, 1, starter(mysqlcluster.StartMariaDB)},
			{"mysql", "mysql:N[?multi-primary=on&consistency=BEFORE]  one MySQL server, or several with Group Replication, of which one takes writes or all", 1, 9, starter(mysqlcluster.StartMySQL)},
			{"galera", "galera:N[?snapshot=on]  MariaDB nodes with Galera, all of which take writes", 3, 5, starter(mysqlcluster.StartGalera)},
			inKubernetes(mysqlkubernetes.Kind(), "MariaDB with Galera, by mariadb-operator", 3, 9),
		}},
		{Driver: mongodb.Driver, Clusters: []ClusterKind{
			{"mongodb", "mongodb:N[?shards=2&w=1]  a replica set of MongoDB, a majority of whose members decides; with shards a mongos before so many of them", 1, 7, starter(mongodbcluster.Start)},
			inKubernetes(mongodbkubernetes.Kind(), "experimental: a replica set of MongoDB, by its community operator or Percona's", 3, 7),
		}},
		{Driver: voltdb.Driver, Clusters: []ClusterKind{
			{"voltdb", "voltdb:N[?kfactor=1&sites=2&heartbeat=5s]  VoltDB, from the jars in the folder that STROPPY_VOLTDB names", 3, 9, starter(voltdbcluster.Starter(voltdb.Hosts))},
		}},
		{Driver: infinisql.Driver, Clusters: []ClusterKind{
			{"infinisql", "infinisql:1[?procedures=DIR]  one InfiniSQL server, from infinisqld and infinisqlmgr.py on PATH", 1, 9, starter(infinisqlcluster.Starter(infinisql.Prepare))},
		}},
		{Driver: redis.Driver, Clusters: []ClusterKind{
			{"redis", "redis:N[?wait=1]  a Redis primary with asynchronous replicas and Sentinels", 2, 5, starter(rediscluster.Start)},
		}},
		{Driver: memory.Driver},
		{Driver: noop.Driver},
	}
}

// inKubernetes is a kind that is started in a Kubernetes cluster that is there.
func inKubernetes(k *kubernetes.Kind, about string, nodes, most int) ClusterKind {
	return ClusterKind{scenario.InKubernetes + k.Name, scenario.InKubernetes + k.Name + ":N[?namespace=NAME&cpu=2&memory=4Gi&disk=10Gi&version=V]  " + about, nodes, most,
		func(ctx context.Context, o cluster.Options) (cluster.Cluster, error) {
			return kubernetes.Start(ctx, k, o, Version())
		}}
}

// fdbClient is the driver of FoundationDB, by which its kind in Kubernetes asks for its health.
func fdbClient() foundationdbkubernetes.Client {
	return foundationdbkubernetes.Client{Missing: foundationdb.Missing, Open: func(ctx context.Context, url string) (foundationdbkubernetes.Observer, error) {
		d, err := foundationdb.Open(ctx, url)
		if err != nil {
			return nil, err
		}
		monitored, ok := d.(db.Monitored)
		if !ok {
			return nil, errors.Join(errors.New("ask FoundationDB for its state: its driver has no monitor"), d.Close())
		}
		return fdbObserver{d, monitored.Monitor()}, nil
	}}
}

// fdbObserver is a FoundationDB cluster as its driver observes it.
type fdbObserver struct {
	db.Database
	monitor db.Monitor
}

// State implements foundationdbkubernetes.Observer, as Close does.
func (o fdbObserver) State(ctx context.Context) ([]byte, error) {
	sample, err := o.monitor.Sample(ctx)
	return sample.State, err
}

func (o fdbObserver) Close() error {
	o.monitor.Close()
	return o.Database.Close()
}

// ObjectsRemover removes a cluster in Kubernetes that a run has kept.
func ObjectsRemover() remover { return kubernetes.Down }

// Releasers returns what frees resources that clusters hold outside their folders.
func Releasers() []host.Releaser { return []host.Releaser{postgresserver.ReleaseMemoryBelow} }

// ObjectsClearer removes what a run that was killed has left in Kubernetes.
func ObjectsClearer() host.Clearer { return kubernetes.Clear }

// clusterFolders are the parameters of clusters that a variable of the environment gives
// where the command line does not: the variable by kind and parameter.
var clusterFolders = map[[2]string]string{{"voltdb", "jars"}: voltdbcluster.Variable}
