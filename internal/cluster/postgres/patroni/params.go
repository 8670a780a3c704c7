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

// Parameters with the names of Patroni's settings.
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

// params are the parameters of a cluster.
type params struct {
	synchronous                 string
	ttl, loopWait, retryTimeout time.Duration // 0 before fit: not given
	failsafe                    bool
	maximumLag                  int64 // bytes of the log that a new leader may lack
	store                       int   // number of etcd servers
	settings                    map[string]string
}

// ownSettings are the settings that Patroni itself sets.
var ownSettings = append([]string{
	"archive_cleanup_command", "promote_trigger_file", "recovery_end_command", "recovery_min_apply_delay", "restore_command",
	"recovery_target_action", "recovery_target_inclusive", "recovery_target_lsn", "recovery_target_name", "recovery_target_time",
	"recovery_target_xid", "wal_level", "wal_log_hints", "cluster_name",
}, server.OwnSettings...)

// shortest are the times below which no Patroni works: with a retry_timeout of 1 s version 3.0.2 never elects. Before
// version 3.1 they are the defaults.
var shortest = map[string]time.Duration{ttl: 3 * time.Second, loopWait: time.Second, retryTimeout: 2 * time.Second}

// seconds accepts a time in whole seconds, Patroni's unit.
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

// parseParams reads the parameters of a cluster under Patroni, which fit completes. The error is a
// *cluster.ParamError.
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

// refuseSum returns an error, for the last of the given times, if the ttl is too short for any Patroni.
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
		"a ttl of %v is shorter than loop_wait and retry_timeout together (%v): a node would lose leadership before it gives it up", p.ttl, sum)}
}

// leastSettings are the settings of PostgreSQL that Patroni itself reads as numbers, with their minimum:
// CMDLINE_OPTIONS of patroni/postgresql/config.py. Patroni silently replaces a smaller value by its own default. If
// the value is not a number, version 3.0.2 drops all of its configuration and hangs.
var leastSettings = map[string]int64{
	"max_connections": 25, "max_wal_senders": 3, "wal_keep_segments": 1, "max_prepared_transactions": 0,
	"max_locks_per_transaction": 32, "max_replication_slots": 4, "max_worker_processes": 2,
}

// leastLog is the smallest wal_keep_size that Patroni accepts, and logUnits are its units, in kB. A number without a
// unit is in MB.
const leastLog = 16 << 10

var logUnits = []struct {
	name string
	kB   int64
}{{"kB", 1}, {"MB", 1 << 10}, {"GB", 1 << 20}, {"TB", 1 << 30}, {"", 1 << 10}}

// refuseSetting returns an error if Patroni does not accept the value of a PostgreSQL setting.
func refuseSetting(name, value string) error {
	if name == "wal_keep_size" {
		for _, unit := range logUnits {
			if number, ok := strings.CutSuffix(value, unit.name); ok {
				if n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32); err != nil || n*unit.kB < leastLog {
					return errors.New("it must be at least 16MB, Patroni's minimum")
				}
				return nil
			}
		}
	}
	least, reads := leastSettings[name]
	if n, err := strconv.ParseInt(value, 10, 32); reads && (err != nil || n < least) {
		return fmt.Errorf("it must be a whole number of at least %d, Patroni's minimum", least)
	}
	return nil
}

// Refuse refuses the parameters of Patroni for a single server. The error is a *cluster.ParamError.
func Refuse(values url.Values) error {
	const alone = "one server has no standby to fail over to: use at least 2 nodes"
	if values.Has("failover") {
		return &cluster.ParamError{Param: "failover", Reason: alone}
	}
	for _, name := range []string{synchronous, ttl, loopWait, retryTimeout, failsafe, maximumLag, "store"} {
		if values.Has(name) {
			return &cluster.ParamError{Param: name, Reason: "it is a setting of Patroni, and " + alone + ", or leave it out"}
		}
	}
	return nil
}

// Description describes the failover and its settings.
func (c *Cluster) Description() string {
	p := c.params
	return fmt.Sprintf("by Patroni %s with %d etcd (synchronous %s, ttl %v, loop_wait %v, retry_timeout %v, failsafe_mode %s, maximum_lag_on_failover %d)",
		c.programs.version, p.store, p.synchronous, p.ttl, p.loopWait, p.retryTimeout, map[bool]string{true: "on", false: "off"}[p.failsafe], p.maximumLag)
}

// minimums are the shortest times of newer versions:
// https://patroni.readthedocs.io/en/latest/releases.html#version-3-1-0. Shorter times are ignored there. Waits that
// the ttl has no room for (loop_wait and twice retry_timeout) are shortened. Then the report would be wrong.
var minimums = map[string]time.Duration{ttl: 20 * time.Second, retryTimeout: 3 * time.Second}

// fit sets the times that were not given to the minimum of this version of Patroni. It refuses given times that the
// version does not accept by a *cluster.ParamError.
func (p params) fit(version string, given url.Values) (params, error) {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 {
		return p, fmt.Errorf("%q is not a version of Patroni", version)
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
