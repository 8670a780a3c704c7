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

// failingOver is a kind of cluster that fails over, with the faults to inject.
type failingOver struct {
	engine string
	params url.Values
	start  func(context.Context, cluster.Options) (cluster.Local, error)
	more   string // parameters of the writers' URL, which limit the wait for a silent server
	open   func(context.Context, string) (db.Database, error)
	faults []metFault
	apart  bool // skipped by default, because its start takes as long as the starts of all others
}

// metFault is a fault that starts while commits are in progress. Some writes must be committed during the fault or
// next to it. Some of the writes in progress must have an unknown outcome, and some must fail definitely. noUnknown
// and noRefusal give a reason if the fault need not cause such an outcome.
type metFault struct {
	fault                string
	noUnknown, noRefusal string
	code                 string // code that one of the refused writes must have; empty: any code
	loses                bool   // acknowledged writes may be lost: see docs/track-record.md
	waits                bool   // the fault waits for open transactions, so that none is held open until it is in effect
}

// lasts returns the duration of the fault, or 0 if the fault ends at once.
func (f metFault) lasts() time.Duration {
	_, text, _ := strings.Cut(f.fault, " for ")
	d, _ := time.ParseDuration(text)
	return d
}

// Reasons why a fault need not cause an outcome.
const (
	goesOn   = "the primary may continue to serve its clients"
	isolated = "an isolated member may not answer any statement during the fault"
	handOver = "the handover is orderly and so short that no commit may be in progress"
)

// failingOvers returns the kinds of clusters that fail over and their faults.
func failingOvers() []failingOver {
	group := clustertest.Fetched("mysql")
	multiPrimary := url.Values{"multi-primary": {"on"}}
	maps.Copy(multiPrimary, group)
	return []failingOver{
		// The primary is paused for less than ttl, because a longer pause may lose acknowledged writes.
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
