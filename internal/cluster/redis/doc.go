// Package redis starts real Redis servers on this machine: a Cluster is a primary
// with its replicas and a supervisor of our own, for the reasons that cluster.Failover
// gives; Redis Sentinel is what most people run.
//
// The replica with the highest replication offset is promoted, of those that have
// had all data of the lost primary at some time. Redis acknowledges a write before
// a replica has it, so the new primary may miss some that were acknowledged, and
// they are gone for good when the old one comes back and takes its data from the
// new one: https://redis.io/docs/latest/operate/oss_and_stack/management/replication/.
// That is how Redis is made, and no fault of the supervisor's.
package redis
