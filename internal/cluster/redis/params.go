package redis

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster"
)

// params are the parameters of a cluster.
type params struct {
	sentinel bool // failover=sentinel; otherwise there is no failover
	wait     int  // number of replicas for which the driver waits at each commit
	settings map[string]string

	downAfter, failoverTimeout time.Duration // of Sentinel
}

// The values of the parameter failover.
const (
	bySentinel = "sentinel"
	byNobody   = "off"
)

// The settings of Redis that are parameters with their own names.
const (
	appendOnly  = "appendonly"
	appendFsync = "appendfsync"
	minReplicas = "min-replicas-to-write"
	maxLag      = "min-replicas-max-lag"
	diskless    = "repl-diskless-sync"
	save        = "save"
)

// ownSettings are the settings by which a cluster finds its nodes and their roles. Other settings of the list depend
// on the peer or the role of a node.
var ownSettings = []string{
	"aclfile", "bind", "daemonize", "dir", "include", "logfile", "masterauth", "masteruser", "pidfile", "port",
	"protected-mode", "rename-command", "replica-announce-ip", "replica-announce-port", "replica-priority", "replica-read-only", "replicaof",
	"requirepass", "slave-announce-ip", "slave-announce-port", "slave-priority", "slave-read-only", "slaveof", "supervised", "tls-port",
	"tls-replication", "unixsocket", "user", "cluster-enabled",
}

// leastDownAfter and leastFailover are the smallest safe values. With a shorter down-after Sentinel regards living
// servers as down, and with a shorter failover-timeout its failovers do not end: both were seen with 100 ms and 500
// ms. If all processors are busy, even a down-after of 500 ms is too short.
const leastDownAfter, leastFailover = 200 * time.Millisecond, time.Second

var errNoReplica = errors.New("one server has no replica: use at least 2 nodes, or leave it out")

// parseParams reads the parameters for a cluster of nodes; by is the default of the parameter failover. The error is
// a *cluster.ParamError.
func parseParams(values url.Values, nodes int, by string) (params, error) {
	p := params{
		downAfter: time.Second, failoverTimeout: 2 * time.Second,
		settings: map[string]string{appendFsync: "always"},
	}
	if err := refuseRemoved(values); err != nil {
		return p, err
	}
	set := func(name string) func(string) { return func(value string) { p.settings[name] = value } }
	number := func(name string, most int) func(string) error {
		return func(value string) error {
			n, err := strconv.Atoi(value)
			switch {
			case err == nil && n > 0 && most == 0:
				return errNoReplica
			case err != nil || n < 0 || n > most:
				return fmt.Errorf("it must be a number from 0 to %d", most)
			}
			p.settings[name] = value
			return nil
		}
	}
	own := map[string]func(string) error{
		appendOnly:  cluster.OneOf(set(appendOnly), "yes", "no"),
		appendFsync: cluster.OneOf(set(appendFsync), "always", "everysec", "no"),
		save:        readSave(set(save)),
		minReplicas: number(minReplicas, nodes-1),
		maxLag:      number(maxLag, 3600),
		diskless:    cluster.OneOf(set(diskless), "yes", "no"),
	}
	known := map[string]func(string) error{
		"wait": func(value string) (err error) {
			p.wait, err = strconv.Atoi(value)
			switch {
			case err == nil && p.wait > 0 && nodes == 1:
				return errNoReplica
			case err != nil || p.wait < 0 || p.wait >= nodes:
				return fmt.Errorf("%q is not a number of replicas from 0 to %d: with more, every commit would wait in vain", value, nodes-1)
			}
			return nil
		},
		"failover":         cluster.OneOf(func(value string) { by = value }, bySentinel, byNobody),
		"down-after":       cluster.Between(&p.downAfter, leastDownAfter, time.Minute, "1s"),
		"failover-timeout": cluster.Between(&p.failoverTimeout, leastFailover, time.Hour, "2s"),
	}
	for name, read := range own {
		known[name] = read
	}
	err := cluster.Params{Kind: "a cluster of Redis", Known: known, Set: cluster.Settings("Redis", "-_.", ownSettings, p.settings)}.Read(values)
	if err != nil {
		return p, err
	}
	for name := range own {
		if values.Has(name) && values.Has("set."+name) {
			return p, &cluster.ParamError{Param: "set." + name, Reason: "it is the same setting as " + name + ": leave one of them out"}
		}
	}
	p.sentinel = by == bySentinel
	return p, p.check(values, nodes)
}

// refuseRemoved refuses failover=ideal, a removed supervisor of stroppy, and its parameter timeout. The error is a
// *cluster.ParamError.
func refuseRemoved(values url.Values) error {
	switch {
	case values.Get("failover") == "ideal":
		return &cluster.ParamError{Param: "failover", Reason: "stroppy's own supervisor was removed: use failover=" + bySentinel}
	case values.Has("timeout"):
		return &cluster.ParamError{Param: "timeout", Reason: "it belonged to stroppy's own supervisor, which was removed: use Sentinel's down-after"}
	}
	return nil
}

// leastReplicas returns the number of replicas without which a primary refuses writes.
func (p params) leastReplicas() int {
	if p.settings[maxLag] == "0" { // it disables the limit
		return 0
	}
	n, _ := strconv.Atoi(p.settings[minReplicas]) // the server refuses a value that is not a number
	return n
}

// usualFailover returns the default failover of a cluster of nodes.
func usualFailover(nodes int) string {
	if nodes < 2 {
		return byNobody
	}
	return bySentinel
}

// check returns an error if parameters conflict.
func (p params) check(values url.Values, nodes int) error {
	if p.sentinel && nodes < 2 {
		return &cluster.ParamError{Param: "failover", Reason: "one server has no replica to fail over to: use at least 2 nodes"}
	}
	if p.sentinel {
		return nil
	}
	for _, name := range []string{"down-after", "failover-timeout"} {
		if values.Has(name) {
			return &cluster.ParamError{Param: name, Reason: "it is for failover=" + bySentinel + ": leave it out"}
		}
	}
	return nil
}

// readSave accepts pairs of seconds and changes, or nothing.
func readSave(take func(string)) func(string) error {
	return func(value string) error {
		words := strings.Fields(value)
		if len(words)%2 != 0 {
			return errors.New("it must be seconds and changes, such as 60 1000, or nothing")
		}
		for _, word := range words {
			if n, err := strconv.ParseUint(word, 10, 31); err != nil || n == 0 {
				return errors.New("it must be seconds and changes, such as 60 1000, or nothing")
			}
		}
		take(strings.Join(words, " "))
		return nil
	}
}
