package mysql

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"stroppy/internal/cluster"
)

// params are the parameters of a cluster.
type params struct {
	flags   []string      // of every server, sorted
	suspect time.Duration // time until a silent node is suspected; 0: Galera's default
	group   groupParams   // of Group Replication
	own     []string      // settings that the cluster itself sets
}

// groupParams are the parameters of Group Replication.
type groupParams struct {
	multiPrimary bool
	consistency  string        // group_replication_consistency; empty: the server's default
	expel        time.Duration // group_replication_member_expel_timeout
}

// consistencies are the values of group_replication_consistency
// (https://dev.mysql.com/doc/refman/8.4/en/group-replication-configuring-consistency-guarantees.html).
var consistencies = []string{"EVENTUAL", "BEFORE_ON_PRIMARY_FAILOVER", "BEFORE", "AFTER", "BEFORE_AND_AFTER"}

// minSuspect is needed because with a shorter time a busy machine counts as dead.
const minSuspect, maxSuspect = time.Second, time.Minute

// maxExpel is MySQL's maximum.
const maxExpel = time.Hour

// ownSettings are the settings by which a cluster finds its nodes and their data.
var ownSettings = []string{
	"basedir", "bind-address", "binlog-format", "datadir", "defaults-file", "defaults-extra-file", "innodb-autoinc-lock-mode",
	"innodb-data-home-dir", "innodb-log-group-home-dir", "innodb-undo-directory", "log-error", "no-defaults", "pid-file", "port",
	"skip-grant-tables", "skip-name-resolve", "skip-networking", "socket", "tmpdir", "user",
	"wsrep-cluster-address", "wsrep-cluster-name", "wsrep-data-home-dir", "wsrep-new-cluster", "wsrep-node-address", "wsrep-node-name",
	"wsrep-on", "wsrep-provider", "wsrep-provider-options", "wsrep-recover", "wsrep-sst-method", "wsrep-sst-receive-address",
	"wsrep-start-position",
}

// groupSettings are the settings by which a group finds its members, and by which a member returns.
var groupSettings = []string{
	"disable-log-bin", "enforce-gtid-consistency", "group-replication-autorejoin-tries", "group-replication-bootstrap-group",
	"group-replication-consistency", "group-replication-enforce-update-everywhere-checks", "group-replication-exit-state-action",
	"group-replication-group-name", "group-replication-group-seeds", "group-replication-ip-allowlist", "group-replication-local-address",
	"group-replication-member-expel-timeout", "group-replication-single-primary-mode", "group-replication-start-on-boot",
	"gtid-mode", "log-bin", "plugin-load-add", "report-host", "report-port", "server-id", "super-read-only",
}

// parse reads the parameters. The error is a *cluster.ParamError.
func (k *kind) parse(values url.Values) (params, error) {
	p := params{own: k.own}
	known := map[string]func(string) error{
		"flush":         cluster.OneOf(p.flag("innodb-flush-log-at-trx-commit"), "0", "1", "2"),
		"snapshot":      cluster.OneOf(p.flag("innodb-snapshot-isolation"), "on", "off"),
		"timeout":       cluster.Between(&p.suspect, minSuspect, maxSuspect, "2s"),
		"multi-primary": cluster.OnOff(&p.group.multiPrimary),
		"consistency":   cluster.OneOf(func(value string) { p.group.consistency = value }, consistencies...),
		"expel": func(value string) error {
			err := cluster.Between(&p.group.expel, 0, maxExpel, "5s")(value)
			if err == nil && p.group.expel%time.Second != 0 {
				err = errors.New("it must be a time in whole seconds, such as 5s")
			}
			return err
		},
	}
	maps.DeleteFunc(known, func(name string, _ func(string) error) bool { return !slices.Contains(k.params, name) })
	err := cluster.Params{Known: known, Set: p.set, Unknown: k.unknown}.Read(values)
	slices.Sort(p.flags)
	return p, err
}

// flag adds a flag with a value.
func (p *params) flag(name string) func(value string) {
	return func(value string) { p.flags = append(p.flags, "--"+name+"="+strings.ToUpper(value)) }
}

var settingName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// set adds a setting. MariaDB accepts _ for -, unique prefixes of names, and prefixes that modify the use of the
// value (https://mariadb.com/docs/server/server-management/starting-and-stopping-mariadb/mariadbd-options).
func (p *params) set(name, value string) error {
	name = strings.ReplaceAll(name, "_", "-")
	if !settingName.MatchString(name) || strings.ContainsRune(value, 0) {
		return errors.New("the name of a setting has small letters, digits and -, as in set.sync-binlog=1")
	}
	bare := name
	for _, prefix := range []string{"loose-", "enable-", "disable-", "skip-", "maximum-"} {
		bare = strings.TrimPrefix(bare, prefix)
	}
	for _, own := range p.own {
		if strings.HasPrefix(own, name) || strings.HasPrefix(own, bare) {
			return fmt.Errorf("the cluster sets %s itself, to find its nodes and their data", own)
		}
	}
	p.flags = append(p.flags, "--"+name+"="+value)
	return nil
}

// CheckSetting returns why a setting of a MariaDB server cannot be given, or nil.
func CheckSetting(name, value string) error {
	p := params{own: ownSettings}
	return p.set(name, value)
}

// groupOptions returns the times of Galera's group communication for the time after which a silent node is suspected
// (https://galeracluster.com/library/documentation/galera-parameters.html). The time for an agreement on a new group
// is at least Galera's default of 7.5 s. The time until a single node is given up is at least 15 s. With less time,
// nodes on a busy machine exclude each other again and again, until no primary component is left.
func groupOptions(suspect time.Duration) []string {
	if suspect == 0 {
		return nil
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("PT%.3fS", d.Seconds()) }
	return []string{
		"evs.keepalive_period=" + seconds(suspect/5), "evs.inactive_check_period=" + seconds(suspect/10),
		"evs.suspect_timeout=" + seconds(suspect), "evs.inactive_timeout=" + seconds(max(3*suspect, 15*time.Second)),
		"evs.install_timeout=" + seconds(max(3*suspect/2, 7500*time.Millisecond)),
	}
}
