package dbtest

import (
	"context"
	"net/url"
	"strings"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	etcdcluster "stroppy/internal/cluster/etcd"
	"stroppy/internal/cluster/mariadb"
	"stroppy/internal/cluster/patroni"
	postgrescluster "stroppy/internal/cluster/postgres"
	rediscluster "stroppy/internal/cluster/redis"
	"stroppy/internal/db"
	"stroppy/internal/db/etcd"
	"stroppy/internal/db/mysql"
	"stroppy/internal/db/postgres"
	"stroppy/internal/db/redis"
)

// failingOver is a kind of cluster that fails over, and what its commits meet.
type failingOver struct {
	engine string
	params url.Values
	start  func(context.Context, cluster.Options) (cluster.Local, error)
	more   string // for the URL of the writers, so that they do not wait long for a silent server
	open   func(context.Context, string) (db.Database, error)
	faults []metFault
	apart  bool // its start takes as long as those of all others: it is for who asks for all faults
}

// metFault is a fault that comes while commits are under way. Some writes must be committed
// meanwhile or around it. Of those that were under way some must have an unknown outcome, and
// some must surely not be applied, unless noUnknown or noRefusal says why the fault need not
// bring that.
type metFault struct {
	fault                string
	noUnknown, noRefusal string
	code                 string // of the server's answer with which a write that was not applied must have ended; empty: of none
	loses                bool   // what was acknowledged may be lost: see docs/track-record.md
}

// lasts is for how long the fault is in effect; 0 where it is over at once.
func (f metFault) lasts() time.Duration {
	_, text, _ := strings.Cut(f.fault, " for ")
	d, _ := time.ParseDuration(text)
	return d
}

// Why a fault need not bring an outcome.
const (
	goesOn   = "the primary may go on to serve its clients meanwhile"
	handOver = "the lead is handed over in good order, in a moment that a commit may miss"
)

func failingOvers() []failingOver {
	return []failingOver{
		{"postgres", nil, clustertest.Launcher(postgrescluster.StartCluster), "answer_timeout=1s", opens(postgres.Open), []metFault{
			{fault: "kill primary at 500ms for 4s"},
		}, false},
		// The primary is paused for less than ttl: one that is paused for longer may lose what was acknowledged.
		{"postgres-patroni", url.Values{"synchronous": {"strict"}}, patroni.Start, "answer_timeout=1s", opens(postgres.Open), []metFault{
			{fault: "kill primary at 500ms for 4s"}, {fault: "pause primary at 500ms for 2s"}, {fault: "partition primary at 500ms for 6s"},
			{fault: "move leader at 500ms", noUnknown: handOver}, {fault: "kill-agent primary at 500ms for 6s", noUnknown: goesOn, noRefusal: goesOn}, {fault: "kill-store at 500ms for 5s", noUnknown: goesOn, noRefusal: goesOn},
		}, true},
		{"redis-sentinel", url.Values{"wait": {"1"}, "min-replicas-to-write": {"1"}}, rediscluster.Start, "timeout=2s", opens(redis.Open), []metFault{
			{fault: "kill primary at 500ms for 5s"}, {fault: "pause primary at 500ms for 5s", loses: true},
			{fault: "partition primary at 500ms for 5s", code: "NOREPLICAS", loses: true},
			{fault: "move leader at 500ms", noUnknown: handOver, noRefusal: handOver, loses: true}, {fault: "kill-agent primary at 500ms for 2s", noUnknown: goesOn, noRefusal: goesOn},
		}, false},
		{"galera", nil, clustertest.Launcher(mariadb.StartGalera), "answer_timeout=3s", opens(mysql.Open), []metFault{
			{fault: "kill n0 at 500ms for 3s"}, {fault: "pause n0 at 500ms for 8s"}, {fault: "partition n0 at 500ms for 9s", code: "1047"}, {fault: "stop n0 at 500ms for 2s", noUnknown: handOver},
		}, false},
		// A move of the lead waits for the transactions that are open, and some are held open here.
		{"mysql", clustertest.Fetched("mysql"), clustertest.Launcher(mariadb.StartMySQL), "answer_timeout=3s", opens(mysql.Open), []metFault{
			{fault: "kill primary at 500ms for 10s"}, {fault: "pause primary at 500ms for 10s"}, {fault: "partition primary at 500ms for 12s"},
		}, true},
		{"etcd", nil, clustertest.Launcher(etcdcluster.Start), "timeout=1s", opens(etcd.Open), []metFault{
			{fault: "kill leader at 500ms for 3s"}, {fault: "pause leader at 500ms for 4s"}, {fault: "partition leader at 500ms for 4s"},
			{fault: "move leader at 500ms", noUnknown: handOver, noRefusal: handOver},
		}, false},
	}
}
