package dbtest

import (
	"context"
	"maps"
	"net/url"
	"strings"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/clustertest"
	etcdcluster "stroppy/internal/cluster/etcd"
	mysqlcluster "stroppy/internal/cluster/mysql"
	"stroppy/internal/cluster/postgres/patroni"
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
	waits                bool   // for the transactions that are open, so that none is held open until it is in effect
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
	isolated = "a member that is cut off may answer no statement as long as the fault lasts"
	handOver = "the lead is handed over in good order, in a moment that a commit may miss"
)

func failingOvers() []failingOver {
	group := clustertest.Fetched("mysql")
	multiPrimary := url.Values{"multi-primary": {"on"}}
	maps.Copy(multiPrimary, group)
	return []failingOver{
		// The primary is paused for less than ttl: one that is paused for longer may lose what was acknowledged.
		{"postgres-patroni", url.Values{"synchronous": {"strict"}}, clustertest.Launcher(patroni.Start), "answer_timeout=1s", opens(postgres.Open), []metFault{
			{fault: "kill primary at 500ms for 4s"}, {fault: "pause primary at 500ms for 2s"}, {fault: "partition primary at 500ms for 6s"},
			{fault: "stop primary at 500ms for 4s", noUnknown: handOver}, {fault: "move leader at 500ms", noUnknown: handOver},
			{fault: "kill-agent primary at 500ms for 6s", noUnknown: goesOn, noRefusal: goesOn}, {fault: "kill-store at 500ms for 5s", noUnknown: goesOn, noRefusal: goesOn},
			{fault: "pause-store at 500ms for 5s", noUnknown: goesOn, noRefusal: goesOn},
		}, true},
		{"redis-sentinel", url.Values{"wait": {"1"}, "min-replicas-to-write": {"1"}}, rediscluster.Start, "timeout=2s", opens(redis.Open), []metFault{
			{fault: "kill primary at 500ms for 5s"}, {fault: "stop primary at 500ms for 5s", noUnknown: handOver}, {fault: "pause primary at 500ms for 5s", loses: true},
			{fault: "partition primary at 500ms for 5s", code: "NOREPLICAS", loses: true},
			{fault: "move leader at 500ms", noUnknown: handOver, noRefusal: handOver, loses: true}, {fault: "kill-agent primary at 500ms for 2s", noUnknown: goesOn, noRefusal: goesOn},
		}, false},
		{"galera", nil, clustertest.Launcher(mysqlcluster.StartGalera), "answer_timeout=3s", opens(mysql.Open), []metFault{
			{fault: "kill n0 at 500ms for 3s"}, {fault: "pause n0 at 500ms for 8s"}, {fault: "partition n0 at 500ms for 9s", code: "1047"}, {fault: "stop n0 at 500ms for 2s", noUnknown: handOver},
		}, false},
		{"mysql", group, clustertest.Launcher(mysqlcluster.StartMySQL), "answer_timeout=3s", opens(mysql.Open), []metFault{
			{fault: "kill primary at 500ms for 10s"}, {fault: "pause primary at 500ms for 10s"}, {fault: "partition primary at 500ms for 12s"},
			{fault: "stop primary at 500ms for 5s", noUnknown: handOver, noRefusal: handOver},
			{fault: "move leader at 500ms", noUnknown: handOver, noRefusal: handOver, waits: true},
		}, true},
		{"mysql-multi-primary", multiPrimary, clustertest.Launcher(mysqlcluster.StartMySQL), "answer_timeout=3s", opens(mysql.Open), []metFault{
			{fault: "kill n0 at 500ms for 10s"}, {fault: "pause n0 at 500ms for 10s"}, {fault: "partition n0 at 500ms for 12s", noRefusal: isolated},
			{fault: "stop n0 at 500ms for 5s", noUnknown: handOver, noRefusal: handOver},
		}, true},
		{"etcd", nil, clustertest.Launcher(etcdcluster.Start), "timeout=1s", opens(etcd.Open), []metFault{
			{fault: "kill leader at 500ms for 3s"}, {fault: "pause leader at 500ms for 4s"}, {fault: "partition leader at 500ms for 4s"},
			{fault: "stop leader at 500ms for 3s", noUnknown: handOver},
			{fault: "move leader at 500ms", noUnknown: handOver, noRefusal: handOver},
		}, false},
	}
}
