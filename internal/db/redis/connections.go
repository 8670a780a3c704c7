package redis

import (
	"context"
	"net"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
)

// FreeConnections implements db.ConnectionLimited. maxclients limits clients, replicas and connections of a cluster
// together (https://redis.io/docs/latest/commands/info/). The connection of this method is not counted, because it ends
// now. If its port differs from the port that the server sees, there is a proxy between them.
func (d *Database) FreeConnections(ctx context.Context) (db.FreeConnections, error) {
	about := goredis.NewStringCmd(ctx, "client", "info")
	l, server, err := d.ask(ctx, "ask how many connections it takes", about)
	if err != nil {
		return db.FreeConnections{}, err
	}
	free := db.FreeConnections{Server: "Redis at " + l.node}
	most, err := strconv.Atoi(server["maxclients"])
	used := -1
	for _, name := range []string{"connected_clients", "connected_slaves", "cluster_connections"} {
		n, _ := strconv.Atoi(server[name]) // a missing name counts as 0
		used += n
	}
	_, own, _ := net.SplitHostPort(l.wire.LocalAddr().String())
	_, seen, _ := net.SplitHostPort(valueOf(about.Val(), "addr"))
	if err == nil && most > 0 && used >= 0 && own == seen {
		free.Tighten(most, used, "maxclients = "+server["maxclients"], "raise maxclients")
	}
	return free, nil
}

// valueOf returns the value of a name in an answer of words name=value.
func valueOf(answer, name string) string {
	for _, w := range strings.Fields(answer) {
		if value, found := strings.CutPrefix(w, name+"="); found {
			return value
		}
	}
	return ""
}
