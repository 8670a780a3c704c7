// Package postgres starts real PostgreSQL servers on this machine: a Server is
// one of them alone, a Cluster is a primary with its standbys and a supervisor of our
// own, for the reasons that cluster.Failover gives; what it does is what Patroni does
// with synchronous_mode.
//
// # Which standby may be promoted
//
// One that is registered, which means: it has everything that the primary has
// acknowledged, and the primary acknowledges nothing before it has it. A standby
// is registered when that has become true (see Cluster.admit), and loses its
// registration before the primary stops waiting for it. So whatever moment the
// primary is lost at, either the registered standby has everything, or none is
// registered and the primary is waited for, or started again on its own data.
// With sync=off there is no such rule, and a fail-over can lose what was
// acknowledged.
//
// A primary that was given up comes back as a standby, with a new copy of the
// data, for its own may hold what nobody else ever had.
package postgres
