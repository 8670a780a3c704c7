// Package postgres starts real PostgreSQL servers on this machine: one server, or a primary with standbys under
// Patroni, optionally with a PgBouncer before the primary.
package postgres

import (
	"context"

	"stroppy/internal/cluster"
	"stroppy/internal/cluster/postgres/patroni"
	"stroppy/internal/cluster/postgres/pgbouncer"
	"stroppy/internal/cluster/postgres/server"
)

// Start starts one server, or with at least two nodes the servers of patroni.Start. If the parameter pooler is given,
// it starts a PgBouncer before the primary. An error leaves nothing behind. It is a host.MissingError if a program
// is not installed, and a *cluster.ParamError for a wrong parameter. server.StartCluster, patroni.Start and
// pgbouncer.Parse describe the parameters.
func Start(ctx context.Context, o cluster.Options) (cluster.Local, error) {
	p, o, err := pgbouncer.Parse(o)
	if err != nil {
		return nil, err
	}
	if p.Mode != "" {
		return startPooled(ctx, o, p)
	}
	return startServers(ctx, o)
}

func startServers(ctx context.Context, o cluster.Options) (servers, error) {
	if err := refuseRemoved(o); err != nil {
		return nil, err
	}
	if o.Nodes == 1 {
		if err := patroni.Refuse(o.Params); err != nil {
			return nil, err
		}
		return local(server.StartCluster(ctx, o))
	}
	return local(patroni.Start(ctx, o))
}

// local converts the results of a start. If err is not nil, the interface is nil, and does not hold a nil pointer.
func local[C servers](c C, err error) (servers, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// refuseRemoved refuses the parameters of failover=ideal, a removed supervisor of stroppy. The error is a
// *cluster.ParamError.
func refuseRemoved(o cluster.Options) error {
	if o.Params.Get("failover") == "ideal" {
		return &cluster.ParamError{Param: "failover", Reason: "stroppy's own supervisor was removed: leave it out to use Patroni"}
	}
	for _, name := range []string{"sync", "strict", "timeout"} {
		if o.Params.Has(name) {
			return &cluster.ParamError{Param: name, Reason: "it belonged to stroppy's own supervisor, which was removed: " +
				"use Patroni's synchronous=off|on|strict or ttl"}
		}
	}
	return nil
}
