package mysql

import (
	"context"
	"fmt"
	"slices"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/wait"
)

// kind is one of the kinds of clusters in this package.
type kind struct {
	name string // as in --cluster NAME:N
	find func(context.Context, cluster.Options) (programs, error)

	params  []string // names of its parameters
	unknown string   // the error for another parameter
	own     []string // settings that the cluster itself sets

	most      int    // number of nodes
	mostOnly  string // why more nodes are not possible
	noFaultFS string // why its nodes cannot have disk faults; empty: they can
}

const (
	unknownMariaDB = "MariaDB has no such parameter: use snapshot, flush, timeout (only galera), bin, " +
		"or set.NAME for a setting of MariaDB, such as set.sync-binlog=1"
	unknownMySQL = "MySQL has no such parameter: use flush, bin, multi-primary, consistency or expel (mysql:2 and more)" +
		", or set.NAME for a setting of MySQL, such as set.sync-binlog=1"
)

var (
	mariaDB = kind{
		name: "mariadb", find: findMariaDB, params: []string{"flush", "snapshot"}, unknown: unknownMariaDB, own: ownSettings,
		most: 1, mostOnly: "it has one node: use galera for more",
	}
	galera = kind{
		name: "galera", find: findGalera, params: []string{"flush", "snapshot", "timeout"}, unknown: unknownMariaDB, own: ownSettings,
		noFaultFS: "disk faults are only possible with mariadb:1, because a node that a full disk has expelled from a Galera cluster does not return by itself",
	}
	mySQL      = kind{name: "mysql", find: findMySQL, params: []string{"flush"}, unknown: unknownMySQL, own: ownSettings}
	mySQLGroup = kind{
		name: "mysql", find: findMySQL, params: []string{"flush", "multi-primary", "consistency", "expel"}, unknown: unknownMySQL,
		own: slices.Concat(ownSettings, groupSettings), most: 9, mostOnly: "Group Replication allows at most 9",
		noFaultFS: "disk faults are only possible with mysql:1, because a member that a full disk has expelled from its group does not return by itself",
	}
)

// StartMariaDB starts one MariaDB server as a cluster of one node. An error leaves nothing behind. It is a
// host.MissingError if MariaDB is not installed, and a *cluster.ParamError for a wrong parameter. The parameters are:
//
//	snapshot=on      a write fails if another transaction has changed the row since the
//	                 writer's snapshot (innodb_snapshot_isolation)
//	flush=0|1|2      MariaDB's innodb_flush_log_at_trx_commit
//	set.NAME=VALUE   any other setting
func StartMariaDB(ctx context.Context, o cluster.Options) (*Cluster, error) {
	return mariaDB.start(ctx, o)
}

// StartGalera starts MariaDB servers with Galera, and returns when every node is synchronized and accepts writes. It
// has the errors and parameters of StartMariaDB, on all nodes, and one more parameter:
//
//	timeout=2s       time until the others suspect a silent node, in which nobody commits;
//	                 Galera's default is 5s
func StartGalera(ctx context.Context, o cluster.Options) (*Cluster, error) {
	return galera.start(ctx, o)
}

// StartMySQL starts one MySQL server, or several as a group of Group Replication. An error leaves nothing behind. It
// is a host.MissingError if MySQL is not installed, and a *cluster.ParamError for a wrong parameter. The parameters
// are:
//
//	flush=0|1|2         MySQL's innodb_flush_log_at_trx_commit
//	set.NAME=VALUE      any other setting
//
// A group has these parameters too:
//
//	multi-primary=on    all members accept writes, not only one primary
//	consistency=LEVEL   group_replication_consistency: EVENTUAL, BEFORE_ON_PRIMARY_FAILOVER,
//	                    BEFORE, AFTER or BEFORE_AND_AFTER; default: MySQL's
//	expel=0s            time to wait for a member that was silent for 5 s, MySQL's
//	                    group_replication_member_expel_timeout; its default is 5s
func StartMySQL(ctx context.Context, o cluster.Options) (cluster.Local, error) {
	if o.Nodes > 1 {
		return startGroup(ctx, o)
	}
	return cluster.AsLocal(mySQL.start(ctx, o))
}

// prepare reads the parameters and finds the programs. lacks is the reason why the programs cannot be run.
func (k *kind) prepare(ctx context.Context, o cluster.Options) (p params, found programs, lacks, err error) {
	if p, err = k.parse(o.Params); err != nil {
		return p, found, nil, err
	}
	if k.most > 0 && o.Nodes > k.most {
		return p, found, nil, fmt.Errorf("start %s:%d: %s", k.name, o.Nodes, k.mostOnly)
	}
	found, lacks = k.find(ctx, o)
	return p, found, lacks, nil
}

// start starts servers of the kind, each of which accepts writes.
func (k *kind) start(ctx context.Context, o cluster.Options) (*Cluster, error) {
	params, programs, lacks, err := k.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	if k == &mySQL {
		params.flags = append(slices.Clone(mySQLFlags), params.flags...)
	}
	return k.launch(ctx, o, params, programs, lacks)
}

func (k *kind) launch(ctx context.Context, o cluster.Options, p params, found programs, lacks error) (*Cluster, error) {
	return cluster.Launch(ctx, k.launched(lacks), o, func() *Cluster {
		c := &Cluster{kind: k, params: p, programs: found, forming: wait.NewLock()}
		c.NodeSet = cluster.NewNodeSet(fmt.Sprintf("%s:%d", k.name, o.Nodes), c.newNode, func() func(context.Context) error { return c.checkHealthy })
		return c
	}, (*Cluster).start)
}

// launched describes the kind to cluster.Launch. The servers refuse root.
func (k *kind) launched(lacks error) cluster.Kind {
	return cluster.Kind{Name: k.name, PortTaken: "Address already in use", Product: product, Users: []string{"nobody", "mysql"}, Lacks: lacks, NoFaultFS: k.noFaultFS}
}
