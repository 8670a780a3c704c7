package redis

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"stroppy/internal/cluster"
)

// params are what a cluster can be told behind its question mark.
type params struct {
	failOver bool          // failover: a lost primary is replaced
	wait     int           // wait: for so many replicas the driver waits at each commit
	patience time.Duration // timeout: how long a silent server is waited for
	settings map[string]string
}

// ownSettings are those by which a cluster finds its nodes and their roles, and
// those that change with whom a node speaks or what it is.
var ownSettings = []string{
	"aclfile", "bind", "daemonize", "dir", "include", "logfile", "masterauth", "masteruser", "pidfile", "port",
	"protected-mode", "rename-command", "replica-announce-ip", "replica-announce-port", "replica-read-only", "replicaof",
	"requirepass", "slave-announce-ip", "slave-announce-port", "slave-read-only", "slaveof", "supervised", "tls-port",
	"tls-replication", "unixsocket", "user", "cluster-enabled",
}

// parseParams reads the parameters for a cluster of so many nodes. The error is a
// *cluster.ParamError.
func parseParams(values url.Values, nodes int) (params, error) {
	const fsync = "appendfsync"
	p := params{failOver: true, patience: time.Second, settings: map[string]string{fsync: "always"}}
	err := cluster.Params{
		Kind: "a cluster of Redis",
		Known: map[string]func(string) error{
			fsync: func(value string) error {
				if !slices.Contains([]string{"always", "everysec", "no"}, value) {
					return fmt.Errorf("%q is none of always, everysec and no", value)
				}
				p.settings[fsync] = value
				return nil
			},
			"wait": func(value string) (err error) {
				if p.wait, err = strconv.Atoi(value); err != nil || p.wait < 0 || p.wait >= nodes {
					return fmt.Errorf("%q is no number of replicas from 0 to %d: more would let every commit wait in vain", value, nodes-1)
				}
				return nil
			},
			"failover": cluster.OnOff(&p.failOver),
			"timeout":  cluster.Silence(&p.patience),
		},
		Set: cluster.Settings("Redis", "-_.", ownSettings, p.settings),
	}.Read(values)
	if err == nil && values.Has(fsync) && values.Has("set."+fsync) {
		err = &cluster.ParamError{Param: "set." + fsync, Reason: "it says the same as appendfsync: leave one of them out"}
	}
	return p, err
}

// settingsText writes settings as redis.conf has them.
func settingsText(settings map[string]string) string {
	return cluster.SettingLines(settings, func(name, value string) string {
		if value == "" {
			value = `""`
		}
		return name + " " + value
	})
}
