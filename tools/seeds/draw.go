package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
)

// plan is one run.
type plan struct {
	seed     int
	cluster  string
	workload string
	rate     int      // transactions a second, few enough for a machine of two cores
	faults   []string // of the nemesis
}

// kind is a cluster with the faults in which it promises to lose nothing.
type kind struct {
	cluster string
	share   int // of a hundred runs
	rate    int
	alone   bool // one fault a run: the promise does not cover two at once
	faults  []string
}

// links are the faults of the network that every kind must outlive.
var links = []string{
	"partition random for 2s..6s", "partition random one-way for 2s..6s", "partition random one-way in for 2s..6s",
	"partition halves for 2s..5s", "partition client from random for 1s..4s",
	"slow random by 20ms varying 10ms for 3s..6s", "lossy random by 10% for 3s..6s", "limit random to 200kB/s for 3s..6s",
}

// Pauses of Patroni are shorter than its ttl, because a primary of version 3.0.2 that
// was paused for longer may overwrite the leader key (docs/track-record.md).
var patroni = append([]string{
	"kill primary for 1s..6s", "kill random for 1s..6s", "kill standbys for 1s..4s", "kill all for 1s..3s", "stop primary for 1s..5s",
	"pause random for 1s..2s", "pause standby for 1s..5s", "partition primary for 2s..7s", "partition primary one-way for 3s..6s",
	"replace primary for 1s..2s", "replace standby for 1s..2s", "move leader",
	"kill-store for 1s..5s", "pause-store for 1s..5s", "pause-agent primary for 1s..2s", "kill-agent standby for 1s..4s",
}, links...)

func kinds() []kind {
	return []kind{
		{cluster: "postgres:3?synchronous=strict", share: 25, rate: 500, faults: append([]string{"kill-agent primary for 2s..7s"}, patroni...)},
		{cluster: "postgres:3", share: 10, rate: 500, faults: patroni},
		// WAIT keeps what was acknowledged in a fail-over of a primary that is dead. So the
		// primary is away either for much less than down-after or for much longer, and a
		// primary that lives keeps its Sentinels.
		{cluster: "redis:3?wait=1&min-replicas-to-write=1&down-after=3s", share: 20, rate: 500, alone: true, faults: []string{
			"kill primary for 500ms..1s", "kill primary for 8s..11s", "stop primary for 8s..11s", "kill follower for 1s..8s", "stop follower for 1s..8s",
			"pause follower for 1s..8s", "pause primary for 500ms..1s", "partition follower for 1s..8s", "partition follower one-way for 1s..8s",
			"kill-agent random for 1s..8s", "pause-agent random for 1s..8s", "partition client from follower for 1s..6s",
			"slow follower by 20ms varying 10ms for 3s..6s", "limit follower to 200kB/s for 3s..6s",
		}},
		{cluster: "galera:3", share: 20, rate: 200, faults: append([]string{
			"kill random for 1s..6s", "kill n0 for 1s..6s", "stop random for 1s..5s", "pause random for 1s..8s", "replace random for 1s..3s", "kill minority for 1s..6s",
		}, links...)},
		{cluster: "etcd:3", share: 15, rate: 300, faults: append([]string{
			"kill leader for 1s..6s", "kill random for 1s..6s", "kill majority for 1s..4s", "kill all for 1s..3s", "stop leader for 1s..5s", "pause leader for 1s..6s",
			"pause random for 1s..6s", "replace random for 1s..3s", "partition leader for 2s..6s", "partition minority for 2s..5s", "partition all for 1s..3s",
			"move leader", "rolling-restart", "add node for 4s..5s", "remove follower for 3s..4s",
		}, links...)},
		{cluster: "etcd:3?layer=on", share: 10, rate: 200, faults: []string{
			"lose-unsynced random for 1s..4s", "lose-unsynced leader for 1s..4s", "lose-unsynced all for 1s..3s", "disk-full random for 2s..4s",
			"slow-disk random by 50ms for 2s..5s", "slow-disk leader by 50ms for 2s..5s", "kill leader for 1s..6s", "partition leader for 2s..6s",
		}},
	}
}

// own are seeds that draw from a kind of their own, so that the other seeds draw what they drew
// before there were these.
type own struct {
	first, last int
	mysql       bool // of a server that a machine may lack
	kind        kind
}

// lastSeed is the last of owns.
const lastSeed = 140

func owns() []own {
	// Reads and commits wait for all members, because at MySQL's own consistency a primary that
	// was cut off may show what is no longer so.
	return []own{
		{101, 120, true, kind{cluster: "mysql:3?consistency=BEFORE_AND_AFTER", rate: 200, faults: append([]string{
			"kill primary for 1s..6s", "kill random for 1s..6s", "kill standby for 1s..6s", "kill all for 1s..3s", "stop primary for 1s..5s", "stop standby for 1s..5s",
			"pause primary for 1s..8s", "pause random for 1s..8s", "partition primary for 2s..8s", "partition minority for 2s..6s",
			"replace primary for 1s..2s", "replace standby for 1s..3s", "move leader",
		}, links...)}},
		{121, 130, true, kind{cluster: "mysql:3?consistency=BEFORE_AND_AFTER&multi-primary=on", rate: 150, faults: append([]string{
			"kill random for 1s..6s", "kill all for 1s..3s", "stop random for 1s..5s", "pause random for 1s..8s", "partition minority for 2s..6s",
			"replace random for 1s..3s",
		}, links...)}},
		{131, lastSeed, false, kind{cluster: "postgres:3?synchronous=strict&pooler=transaction", rate: 300, faults: append([]string{"kill-agent primary for 2s..7s"}, patroni...)}},
	}
}

// ownOf are the seeds that a seed is one of; nil if it draws from kinds.
func ownOf(seed int) *own {
	for _, o := range owns() {
		if o.first <= seed && seed <= o.last {
			return &o
		}
	}
	return nil
}

// needsMySQL reports whether a seed is one of Group Replication.
func needsMySQL(seed int) bool { o := ownOf(seed); return o != nil && o.mysql }

// draw makes the plan of a seed.
func draw(seed int) plan {
	random := rand.New(rand.NewPCG(uint64(seed), 15))
	of := func(list []string) string { return list[random.IntN(len(list))] }
	n := random.IntN(100)
	var k kind
	for _, k = range kinds() {
		if n -= k.share; n < 0 {
			break
		}
	}
	if o := ownOf(seed); o != nil {
		k = o.kind
	}
	p := plan{seed: seed, cluster: k.cluster, rate: k.rate, workload: "bank"}
	if random.IntN(100) >= 60 {
		p.workload = of([]string{"tpcb", "kv", "events", "append"})
	}
	faults := 1
	if !k.alone {
		faults += random.IntN(3)
	}
	for i := range faults {
		at := 3 + random.IntN(3) + 5*i // one that takes longer meets the next
		text := of(k.faults)
		what, span, timed := strings.Cut(text, " for ")
		p.faults = append(p.faults, fmt.Sprintf("%s at %ds", what, at))
		if timed {
			p.faults[i] += " for " + between(random, span)
		}
	}
	return p
}

// between draws a time of a span such as 500ms..2s, in steps of half a second.
func between(random *rand.Rand, span string) string {
	low, high, _ := strings.Cut(span, "..")
	halves := func(text string) int {
		if text == "500ms" {
			return 1
		}
		seconds, err := strconv.Atoi(strings.TrimSuffix(text, "s"))
		if err != nil {
			panic("no span: " + span)
		}
		return 2 * seconds
	}
	from, to := halves(low), halves(high)
	n := from + random.IntN(to-from+1)
	return strconv.Itoa(n*500) + "ms"
}

// arguments returns the arguments of the program.
func (p plan) arguments(mysql string) []string {
	cluster := p.cluster
	if needsMySQL(p.seed) && mysql != "" {
		cluster += "&bin=" + url.QueryEscape(mysql)
	}
	args := []string{"run", p.workload, "--seed", strconv.Itoa(p.seed), "--cluster", cluster, "--duration", "20s",
		"--clients", "8", "--rate", strconv.Itoa(p.rate), "--max-degradation", "0"}
	for _, fault := range p.faults {
		args = append(args, "--nemesis", fault)
	}
	return args
}

// wants returns the verdict of every plan: the cluster promises to lose nothing under these faults.
func (p plan) wants() string { return "valid" }

func (p plan) needsMySQL() bool { return needsMySQL(p.seed) }

func (p plan) entry() attempt {
	return attempt{Seed: p.seed, Cluster: p.cluster, Workload: p.workload, Faults: p.faults}
}
