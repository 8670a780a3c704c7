package redis

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"strconv"
	"time"

	"stroppy/internal/cluster"
)

// confFile is the name of a server's configuration in its folder.
const confFile = "redis.conf"

// shutdownLimit bounds a clean shutdown, in which a primary waits for lagging replicas for shutdown-timeout, 10 s by
// default.
const shutdownLimit = 15 * time.Second

// insist is the interval at which a shutdown is requested. Redis forgets a request while it writes its first
// append-only file ("Writing initial AOF, can't exit", src/server.c). A replica does so after it has received all
// data.
const insist = 500 * time.Millisecond

// errSteered is the reason why the clock of a Redis server cannot be changed. With libfaketime 0.9.10, Redis 7.0.15
// does not reach the first line of its log.
var errSteered = errors.New("its allocator jemalloc asks for the time before libfaketime is ready, and hangs")

// endpoint is the address at which a server listens.
type endpoint struct{ at netip.AddrPort }

func (e endpoint) host() string { return e.at.Addr().String() }

func (e endpoint) port() string { return strconv.Itoa(int(e.at.Port())) }

func (e endpoint) address() string { return e.at.String() }

// URL returns the address of the node alone, which can be read in any role.
func (e endpoint) URL() string { return "redis://" + e.address() + "/0?read=any" }

// serverSettings returns the settings of a server. The user's settings override the defaults, but not the settings
// that the cluster needs.
func (p params) serverSettings(at endpoint, data string, o cluster.Options) map[string]string {
	all := map[string]string{
		"appendonly": "yes",
		"save":       "", // snapshots add nothing to the append-only file
		diskless:     "no",
		maxLag:       "1",
		// A link that a cut has broken is noticed and renewed in seconds, and the missing part arrives without a full
		// copy.
		"repl-ping-replica-period": "1",
		"repl-timeout":             "5",
		"repl-backlog-size":        "32mb",
		"maxclients":               strconv.Itoa(o.MaxConnections(10_000)), // the server's default, or more
	}
	maps.Copy(all, p.settings)
	maps.Copy(all, map[string]string{
		"bind": at.host(),
		"port": at.port(),
		"dir":  data,
		// The address can be reached only from this machine.
		"protected-mode": "no",
	})
	return all
}

// writeConf writes a server's configuration.
func writeConf(path, name string, settings map[string]string) error {
	text := cluster.SettingLines(settings, func(name, value string) string {
		if value == "" {
			value = `""`
		}
		return name + " " + value
	})
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("configure %s: %w", name, err)
	}
	return nil
}
