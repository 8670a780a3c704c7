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

// shutdownLimit bounds a shutdown in good order, in which a primary lets replicas that
// lag catch up for shutdown-timeout, 10 s if it is not set.
const shutdownLimit = 15 * time.Second

// insist is how often a shutdown is asked for: Redis forgets the one that it is asked
// for while it writes its first append-only file, as a replica does that has just
// got everything ("Writing initial AOF, can't exit", src/server.c).
const insist = 500 * time.Millisecond

// errSteered is why no clock of a server of Redis can be steered. With libfaketime
// 0.9.10, Redis 7.0.15 does not come to the first line of its log.
var errSteered = errors.New("its memory comes from jemalloc, which asks for the time before the library that would steer it is ready, and hangs")

// endpoint is where a server listens.
type endpoint struct{ at netip.AddrPort }

func (e endpoint) host() string { return e.at.Addr().String() }

func (e endpoint) port() string { return strconv.Itoa(int(e.at.Port())) }

func (e endpoint) address() string { return e.at.String() }

// URL is the address of the node alone, which is read whatever its role is.
func (e endpoint) URL() string { return "redis://" + e.address() + "/0?read=any" }

// serverSettings are those of a server: the caller's over ours, except those by which
// the cluster works.
func (p params) serverSettings(at endpoint, data string, o cluster.Options) map[string]string {
	all := map[string]string{
		"appendonly": "yes",
		"save":       "", // snapshots add nothing to the append-only file
		diskless:     "no",
		maxLag:       "1",
		// A link that a cut has killed is noticed and made anew in seconds, and what
		// was missed comes without a copy of everything.
		"repl-ping-replica-period": "1",
		"repl-timeout":             "5",
		"repl-backlog-size":        "32mb",
		"maxclients":               strconv.Itoa(o.MaxConnections(10_000)), // the server's own number, or more
	}
	maps.Copy(all, p.settings)
	maps.Copy(all, map[string]string{
		"bind": at.host(),
		"port": at.port(),
		"dir":  data,
		// The address is one that this machine alone can reach.
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
