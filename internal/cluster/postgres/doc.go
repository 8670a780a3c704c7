// Package postgres starts real PostgreSQL servers on this machine: a Server is
// one of them alone, a Cluster is a primary with its standbys and a supervisor
// that gives the lead of a lost primary to a standby.
//
// # Why the supervisor is its own
//
// Patroni is what most people run, and what the supervisor does is what Patroni
// does with synchronous_mode. But Patroni needs Python and a consensus store
// (etcd, Consul, ZooKeeper) beside the servers, and it cannot know whether a
// primary that it does not reach is dead: the primary has a lease, and nobody is
// promoted before that has run out, by default 30 s. Here one program owns all
// processes. It ends the old primary with SIGKILL, as a board controller cuts the
// power of a machine, and has seen it gone before it promotes another. So there
// is no doubt who leads, no lease, and no time of waiting but the time-out after
// which a silent primary is given up.
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
