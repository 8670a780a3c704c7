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

// params are what a cluster can be told behind its question mark.
type params struct {
	flags   []string      // of every server, sorted
	suspect time.Duration // until a silent node is suspected to be dead; 0 for Galera's own time
}

const (
	paramSnapshot = "snapshot"
	paramFlush    = "flush"
	paramTimeout  = "timeout"
	paramSet      = "set." // before the name of a setting of MariaDB
)

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
func parseParams(values url.Values, galera bool) (params, error) {
	var p params
	for name, all := range values {
		var err error
		value := values.Get(name)
		setting, isSetting := strings.CutPrefix(name, paramSet)
		switch {
		case len(all) != 1:
			err = fmt.Errorf("it is given %d times: give it once", len(all))
		case isSetting:
			err = p.set(setting, value)
		case name == paramSnapshot:
			if err = oneOf(value, "on", "off"); err == nil {
				p.flags = append(p.flags, "--innodb-snapshot-isolation="+strings.ToUpper(value))
			}
		case name == paramFlush:
			if err = oneOf(value, "0", "1", "2"); err == nil {
				p.flags = append(p.flags, "--innodb-flush-log-at-trx-commit="+value)
			}
		case name == paramTimeout && galera:
			if p.suspect, err = time.ParseDuration(value); err != nil || p.suspect < minSuspect || p.suspect > maxSuspect {
				err = fmt.Errorf("it must be a time from %v to %v, such as 2s", minSuspect, maxSuspect)
			}
		default:
			err = errors.New("MariaDB has none of this name: take snapshot, flush, timeout (of galera alone), " +
				"or set.NAME for a setting of MariaDB's, such as set.sync-binlog=1")
		}
		if err != nil {
			return p, &cluster.ParamError{Param: name, Reason: err.Error()}
		}
	}
	slices.Sort(p.flags)
	return p, nil
}

func oneOf(value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		return fmt.Errorf("it must be one of %s", strings.Join(allowed, ", "))
	}
	return nil
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
// which a silent node is suspected; the others keep their proportion to it
// (https://galeracluster.com/library/documentation/galera-parameters.html,
// evs.suspect_timeout: 5 s, evs.inactive_timeout: 15 s).
func groupOptions(suspect time.Duration) []string {
	if suspect == 0 {
		return nil
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("PT%.3fS", d.Seconds()) }
	return []string{
		"evs.keepalive_period=" + seconds(suspect/5), "evs.inactive_check_period=" + seconds(suspect/10),
		"evs.suspect_timeout=" + seconds(suspect), "evs.inactive_timeout=" + seconds(3*suspect),
		"evs.install_timeout=" + seconds(3*suspect/2),
	}
}
