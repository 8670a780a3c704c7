// Package redis starts real Redis servers on this machine: Servers are a primary
// and its replicas on loopback, which a test leads by hand; a Cluster is a primary
// with its replicas, each on its own host, and a supervisor that gives the lead of
// a lost primary to a replica.
//
// # Why the supervisor is its own
//
// Redis Sentinel is what most people run, and what the supervisor does is what
// Sentinel does. But Sentinel needs three more processes that agree with each
// other, takes seconds to give a primary up, and cannot end one that it does not
// reach: the old primary may take writes until it learns of the new one, and those
// are lost. Here one program owns all processes. It ends the old primary with
// SIGKILL, as a board controller cuts the power of a machine, and has seen it gone
// before it promotes another. So there are never two primaries, and no time of
// waiting but the time-out after which a silent primary is given up.
//
// # What a fail-over loses
//
// The replica with the highest replication offset is promoted, of those that have
// had all data of the lost primary at some time. Redis acknowledges a write before
// a replica has it, so the new primary may miss some that were acknowledged, and
// they are gone for good when the old one comes back and takes its data from the
// new one: https://redis.io/docs/latest/operate/oss_and_stack/management/replication/.
// That is how Redis is made, and no fault of the supervisor's.
package redis
