package mariadb

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"stroppy/internal/cluster"
)

// params are what a cluster takes behind its question mark.
type params struct {
	flags   []string      // of every server, sorted
	suspect time.Duration // until a silent node is suspected to be dead; 0 for Galera's own time
}

// A shorter time calls a busy machine dead.
const minSuspect, maxSuspect = time.Second, time.Minute

// ownSettings are those by which a cluster finds its nodes and their data.
var ownSettings = []string{
	"basedir", "bind-address", "binlog-format", "datadir", "defaults-file", "defaults-extra-file", "innodb-autoinc-lock-mode",
	"innodb-data-home-dir", "innodb-log-group-home-dir", "innodb-undo-directory", "log-error", "no-defaults", "pid-file", "port",
	"skip-grant-tables", "skip-name-resolve", "skip-networking", "socket", "tmpdir", "user",
	"wsrep-cluster-address", "wsrep-cluster-name", "wsrep-data-home-dir", "wsrep-new-cluster", "wsrep-node-address", "wsrep-node-name",
	"wsrep-on", "wsrep-provider", "wsrep-provider-options", "wsrep-recover", "wsrep-sst-method", "wsrep-sst-receive-address",
	"wsrep-start-position",
}

// parseParams reads the parameters. The error is a *cluster.ParamError.
func parseParams(values url.Values, kind string) (params, error) {
	var p params
	known := map[string]func(string) error{
		"flush": cluster.OneOf(p.flag("innodb-flush-log-at-trx-commit"), "0", "1", "2"),
	}
	if kind != mySQL {
		known["snapshot"] = cluster.OneOf(p.flag("innodb-snapshot-isolation"), "on", "off")
	}
	if kind == "galera" {
		known["timeout"] = cluster.Between(&p.suspect, minSuspect, maxSuspect, "2s")
	}
	unknown := "MariaDB has none of this name: take snapshot, flush, timeout (of galera alone), bin, " +
		"or set.NAME for a setting of MariaDB's, such as set.sync-binlog=1"
	if kind == mySQL {
		unknown = "MySQL has none of this name: take flush, bin, or set.NAME for a setting of MySQL's, such as set.sync-binlog=1"
	}
	err := cluster.Params{Known: known, Set: p.set, Unknown: unknown}.Read(values)
	slices.Sort(p.flags)
	return p, err
}

// flag adds a flag of MariaDB's with a value.
func (p *params) flag(name string) func(value string) {
	return func(value string) { p.flags = append(p.flags, "--"+name+"="+strings.ToUpper(value)) }
}

var settingName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// set adds a setting. MariaDB takes _ for -, any beginning of a name that is the
// only one, and prefixes that say what to do with the value
// (https://mariadb.com/docs/server/server-management/starting-and-stopping-mariadb/mariadbd-options).
func (p *params) set(name, value string) error {
	name = strings.ReplaceAll(name, "_", "-")
	if !settingName.MatchString(name) || strings.ContainsRune(value, 0) {
		return errors.New("a setting's name has small letters, digits and -, as in set.sync-binlog=1")
	}
	bare := name
	for _, prefix := range []string{"loose-", "enable-", "disable-", "skip-", "maximum-"} {
		bare = strings.TrimPrefix(bare, prefix)
	}
	for _, own := range ownSettings {
		if strings.HasPrefix(own, name) || strings.HasPrefix(own, bare) {
			return fmt.Errorf("the cluster sets %s itself, to find its nodes and their data", own)
		}
	}
	p.flags = append(p.flags, "--"+name+"="+value)
	return nil
}

// groupOptions are the times of Galera's group communication for a time after
// which a silent node is suspected
// (https://galeracluster.com/library/documentation/galera-parameters.html). The
// time in which nodes that meet again have to agree on their group is not shorter
// than Galera's own 7.5 s, nor that after which one is given up by itself than 15 s:
// on a busy machine nodes that are given less exclude each other again and again,
// until no primary component is left.
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
