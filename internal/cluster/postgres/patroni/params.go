package patroni

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/postgres/server"
)

// The parameters that have names of Patroni's own.
const (
	synchronous  = "synchronous"
	ttl          = "ttl"
	loopWait     = "loop_wait"
	retryTimeout = "retry_timeout"
	failsafe     = "failsafe_mode"
	maximumLag   = "maximum_lag_on_failover"
)

// The values of the parameter synchronous.
const (
	synchronousOff    = "off"
	synchronousOn     = "on"
	synchronousStrict = "strict"
)

// params are what a cluster takes behind its question mark.
type params struct {
	synchronous                 string
	ttl, loopWait, retryTimeout time.Duration // 0 before fit: nobody gave it
	failsafe                    bool
	maximumLag                  int64 // bytes of the log that a node that is to lead may lack
	store                       int   // etcd servers that keep the state
	settings                    map[string]string
}

// ownSettings are those that Patroni itself sets.
var ownSettings = append([]string{
	"archive_cleanup_command", "promote_trigger_file", "recovery_end_command", "recovery_min_apply_delay", "restore_command",
	"recovery_target_action", "recovery_target_inclusive", "recovery_target_lsn", "recovery_target_name", "recovery_target_time",
	"recovery_target_xid", "wal_level", "wal_log_hints", "cluster_name",
}, server.OwnSettings...)

// shortest are the times below which no Patroni works: with a retry_timeout of 1 s version
// 3.0.2 never elects. Before version 3.1 they hold where nobody gives others.
var shortest = map[string]time.Duration{ttl: 3 * time.Second, loopWait: time.Second, retryTimeout: 2 * time.Second}

// seconds takes a time in whole seconds, as Patroni has them.
func seconds(name string, to *time.Duration, example string) func(string) error {
	return func(value string) error {
		if err := cluster.Between(to, shortest[name], time.Hour, example)(value); err != nil {
			return err
		}
		if *to%time.Second != 0 {
			return fmt.Errorf("it must be a time in whole seconds, such as %s", example)
		}
		return nil
	}
}

// parseParams reads the parameters of a cluster under Patroni, which fit completes. The error
// is a *cluster.ParamError.
func parseParams(values url.Values) (params, error) {
	p := params{
		synchronous: synchronousOn, loopWait: shortest[loopWait], maximumLag: 1 << 20, store: 1, settings: map[string]string{},
	}
	err := cluster.Params{
		Kind: "a cluster of PostgreSQL under Patroni",
		Known: map[string]func(string) error{
			"failover":   cluster.OneOf(func(string) {}, "patroni"),
			synchronous:  cluster.OneOf(func(value string) { p.synchronous = value }, synchronousOff, synchronousOn, synchronousStrict),
			ttl:          seconds(ttl, &p.ttl, "3s"),
			loopWait:     seconds(loopWait, &p.loopWait, "1s"),
			retryTimeout: seconds(retryTimeout, &p.retryTimeout, "2s"),
			failsafe:     cluster.OnOff(&p.failsafe),
			maximumLag: func(value string) (err error) {
				if p.maximumLag, err = strconv.ParseInt(value, 10, 64); err != nil || p.maximumLag < 0 {
					return errors.New("it must be a number of bytes, such as 1048576")
				}
				return nil
			},
			"store": cluster.OneOf(func(value string) { p.store = int(value[0] - '0') }, "1", "3"),
			"fsync": server.Fsync(p.settings),
		},
		Set: func(name, value string) error {
			if err := cluster.Settings(server.Product, "_.", ownSettings, p.settings)(name, value); err != nil {
				return err
			}
			return refuseSetting(strings.ToLower(name), value)
		},
	}.Read(values)
	if err == nil && p.ttl > 0 {
		err = p.refuseSum(values)
	}
	return p, err
}

// refuseSum says that the ttl is too short for any Patroni, by the last of the times that were
// given; nil if it is not.
func (p params) refuseSum(given url.Values) error {
	sum := p.loopWait + max(p.retryTimeout, shortest[retryTimeout])
	if p.ttl >= sum {
		return nil
	}
	name := ttl
	for _, of := range []string{retryTimeout, loopWait, ttl} {
		if given.Has(of) {
			name = of
		}
	}
	return &cluster.ParamError{Param: name, Reason: fmt.Sprintf(
		"a ttl of %v is shorter than loop_wait and retry_timeout together (%v): a node would lose its lead before it gives it up", p.ttl, sum)}
}

// leastSettings are those of PostgreSQL's settings that Patroni itself reads as numbers, with the
// least that it takes: CMDLINE_OPTIONS of patroni/postgresql/config.py. In place of less it takes
// its own default without a word, and where the value is no number version 3.0.2 leaves all of
// its configuration out and hangs.
var leastSettings = map[string]int64{
	"max_connections": 25, "max_wal_senders": 3, "wal_keep_segments": 1, "max_prepared_transactions": 0,
	"max_locks_per_transaction": 32, "max_replication_slots": 4, "max_worker_processes": 2,
}

// leastLog is the least wal_keep_size that Patroni takes, and logUnits are its units, in kB; a
// number alone is in MB.
const leastLog = 16 << 10

var logUnits = []struct {
	name string
	kB   int64
}{{"kB", 1}, {"MB", 1 << 10}, {"GB", 1 << 20}, {"TB", 1 << 30}, {"", 1 << 10}}

// refuseSetting says why Patroni does not take the value of a setting of PostgreSQL's; nil if
// it may.
func refuseSetting(name, value string) error {
	if name == "wal_keep_size" {
		for _, unit := range logUnits {
			if number, ok := strings.CutSuffix(value, unit.name); ok {
				if n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32); err != nil || n*unit.kB < leastLog {
					return errors.New("it must be a size from 16MB on, which is the least that Patroni takes")
				}
				return nil
			}
		}
	}
	least, reads := leastSettings[name]
	if n, err := strconv.ParseInt(value, 10, 32); reads && (err != nil || n < least) {
		return fmt.Errorf("it must be a whole number from %d on, which is the least that Patroni takes", least)
	}
	return nil
}

// Refuse refuses the parameters of Patroni for a server that is alone. The error is a
// *cluster.ParamError.
func Refuse(values url.Values) error {
	const alone = "one server has no standby to fail over to: take 2 nodes or more"
	if values.Has("failover") {
		return &cluster.ParamError{Param: "failover", Reason: alone}
	}
	for _, name := range []string{synchronous, ttl, loopWait, retryTimeout, failsafe, maximumLag, "store"} {
		if values.Has(name) {
			return &cluster.ParamError{Param: name, Reason: "it is Patroni's, and " + alone + ", or leave it out"}
		}
	}
	return nil
}

// Description says who fails over, and with which settings.
func (c *Cluster) Description() string {
	p := c.params
	return fmt.Sprintf("by Patroni %s with %d etcd (synchronous %s, ttl %v, loop_wait %v, retry_timeout %v, failsafe_mode %s, maximum_lag_on_failover %d)",
		c.programs.version, p.store, p.synchronous, p.ttl, p.loopWait, p.retryTimeout, map[bool]string{true: "on", false: "off"}[p.failsafe], p.maximumLag)
}

// minimums are the shortest times of newer versions, by the version from which they hold:
// https://patroni.readthedocs.io/en/latest/releases.html#version-3-1-0. Shorter ones are
// ignored there, and longer waits than the ttl has room for are shortened (loop_wait and twice
// retry_timeout), which would let the report say what is not so.
var minimums = map[string]time.Duration{ttl: 20 * time.Second, retryTimeout: 3 * time.Second}

// fit gives the times that nobody gave the least that this version of Patroni takes. It refuses
// what was given and is not taken by a *cluster.ParamError.
func (p params) fit(version string, given url.Values) (params, error) {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 {
		return p, fmt.Errorf("%q is no version of Patroni", version)
	}
	if major < 3 || major == 3 && minor < 1 {
		p.ttl, p.retryTimeout = cmp.Or(p.ttl, shortest[ttl]), cmp.Or(p.retryTimeout, shortest[retryTimeout])
		return p, p.refuseSum(given)
	}
	needs := maps.Clone(minimums)
	because := ""
	if room := p.loopWait + 2*max(p.retryTimeout, minimums[retryTimeout]); room > needs[ttl] {
		needs[ttl], because = room, " (loop_wait and twice retry_timeout)"
	}
	p.ttl, p.retryTimeout = cmp.Or(p.ttl, needs[ttl]), cmp.Or(p.retryTimeout, needs[retryTimeout])
	times := map[string]time.Duration{ttl: p.ttl, retryTimeout: p.retryTimeout}
	var short, least []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(needs))) {
		if times[name] < needs[name] {
			short = append(short, fmt.Sprintf("no %s below %v%s", name, needs[name], because))
			least = append(least, fmt.Sprintf("%s=%v", name, needs[name]))
		}
		because = "" // of ttl, which comes first
	}
	if short == nil {
		return p, nil
	}
	name, _, _ := strings.Cut(least[0], "=")
	return p, &cluster.ParamError{Param: name, Reason: fmt.Sprintf("Patroni %s takes %s: give %s, or take version 3.0",
		version, strings.Join(short, " and "), strings.Join(least, "&"))}
}
