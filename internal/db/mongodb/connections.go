package mongodb

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"stroppy/internal/db"
)

// FreeConnections implements db.ConnectionLimited. It returns the primary's number of available connections within
// net.maxIncomingConnections, which a limit of open files may reduce
// (https://www.mongodb.com/docs/manual/reference/command/serverStatus/#connections). The connection of this query
// will be used by clients. The user needs the right to serverStatus, as in clusterMonitor. Without it, nothing is
// known. The same applies to several mongos, over which connections are distributed.
func (d *Database) FreeConnections(ctx context.Context) (db.FreeConnections, error) {
	free := db.FreeConnections{Server: "MongoDB at " + d.config.name()}
	status, err := d.client.Database("admin").RunCommand(ctx, bson.D{
		{Key: "serverStatus", Value: 1}, {Key: "metrics", Value: 0}, {Key: "locks", Value: 0}, {Key: "wiredTiger", Value: 0},
	}, d.readOptions).Raw()
	if err != nil {
		return free, d.failure("ask how many connections it takes", err, before)
	}
	current, available := numberAt(status, "connections", "current"), numberAt(status, "connections", "available")
	if current > 0 && available >= 0 && (len(d.config.servers) == 1 || !d.sharded) {
		most := current + available
		free.Tighten(int(most), int(current)-1, fmt.Sprintf("%d connections, the smaller of net.maxIncomingConnections and what its open files allow", most),
			"raise net.maxIncomingConnections and the limit of open files")
	}
	return free, nil
}
