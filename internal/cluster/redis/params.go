package redis

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"stroppy/internal/cluster"
)

// params are what a cluster can be told behind its question mark.
type params struct {
	failOver bool          // failover: a lost primary is replaced
	wait     int           // wait: for so many replicas the driver waits at each commit
	patience time.Duration // timeout: how long a silent server is waited for
	settings map[string]string
}

const (
	paramFsync    = "appendfsync"
	paramWait     = "wait"
	paramFailOver = "failover"
	paramTimeout  = "timeout"
	paramSet      = "set." // before the name of a setting of Redis
)

// ownSettings are those by which a cluster finds its nodes and their roles, and
// those that change with whom a node speaks or what it is.
var ownSettings = []string{
	"aclfile", "bind", "daemonize", "dir", "include", "logfile", "masterauth", "masteruser", "pidfile", "port",
	"protected-mode", "rename-command", "replica-announce-ip", "replica-announce-port", "replica-read-only", "replicaof",
	"requirepass", "slave-announce-ip", "slave-announce-port", "slave-read-only", "slaveof", "supervised", "tls-port",
	"tls-replication", "unixsocket", "user", "cluster-enabled",
}

// A shorter time calls a busy machine dead; a longer one than this is longer
// than the servers' own time-outs.
const minPatience, maxPatience = 200 * time.Millisecond, time.Minute

// parseParams reads the parameters for a cluster of so many nodes. The error is a
// *cluster.ParamError.
func parseParams(values url.Values, nodes int) (params, error) {
	p := params{failOver: true, patience: time.Second, settings: map[string]string{"appendfsync": "always"}}
	for name := range values {
		value := values.Get(name)
		var err error
		switch setting, isSetting := strings.CutPrefix(name, paramSet); {
		case isSetting:
			err = p.set(setting, value)
		case name == paramFsync:
			if !slices.Contains([]string{"always", "everysec", "no"}, value) {
				err = fmt.Errorf("%q is none of always, everysec and no", value)
			}
			p.settings[paramFsync] = value
		case name == paramWait:
			if p.wait, err = strconv.Atoi(value); err != nil || p.wait < 0 || p.wait >= nodes {
				err = fmt.Errorf("%q is no number of replicas from 0 to %d: more would let every commit wait in vain", value, nodes-1)
			}
		case name == paramFailOver:
			p.failOver, err = value == "on", onOff(value)
		case name == paramTimeout:
			if p.patience, err = time.ParseDuration(value); err != nil || p.patience < minPatience || p.patience > maxPatience {
				err = fmt.Errorf("it must be a time from %v to %v, such as 1s", minPatience, maxPatience)
			}
		default:
			err = unknownParam(name)
		}
		if err != nil {
			return p, &cluster.ParamError{Param: name, Reason: err.Error()}
		}
	}
	if values.Has(paramFsync) && values.Has(paramSet+paramFsync) {
		return p, &cluster.ParamError{Param: paramSet + paramFsync, Reason: "it says the same as appendfsync: leave one of them out"}
	}
	return p, nil
}

func onOff(value string) error {
	if value != "on" && value != "off" {
		return fmt.Errorf("%q is neither on nor off", value)
	}
	return nil
}

func (p *params) set(name, value string) error {
	lower := strings.ToLower(name)
	switch {
	case lower == "" || strings.Trim(lower, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "":
		return fmt.Errorf("%q is no name of a setting of Redis", name)
	case slices.Contains(ownSettings, lower):
		return fmt.Errorf("the setting %s is not for you to set: the cluster's own value makes it work", lower)
	case strings.ContainsAny(value, "\r\n\x00"):
		return errors.New("the value of a setting must be one line")
	}
	p.settings[lower] = value
	return nil
}

func unknownParam(name string) error {
	known := []string{paramFsync, paramWait, paramFailOver, paramTimeout}
	near := slices.MinFunc(known, func(a, b string) int {
		return levenshtein.ComputeDistance(name, a) - levenshtein.ComputeDistance(name, b)
	})
	return fmt.Errorf("a cluster of Redis has no such parameter; the nearest is %s, and set.NAME=VALUE sets a setting of the server's", near)
}
