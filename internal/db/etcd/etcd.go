// Package etcd speaks to an etcd cluster, version 3.4 or later, as an ordered
// key-value store with optimistic transactions.
//
// etcd has one atomic request: if these comparisons hold, do these writes. A transaction
// of package db becomes one request that reads all keys at one revision, later reads at
// that revision, and one request that compares and writes: the software transactional
// memory of etcd's own client library (client/v3/concurrency/stm.go), whose names the
// isolations carry.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
	"stroppy/internal/isolation"
)

const (
	// maxOperations bounds the comparisons, and the writes, that a request may
	// have: the default of the server's --max-txn-ops. The longest of the lists
	// counts, not their sum (api/v3rpc/key.go, checkTxnRequest).
	maxOperations = 128

	// maxWrites leaves room to compare keys that are only read: the default
	// isolation compares all keys that were read or are written.
	maxWrites = 100

	// maxRequest leaves room for the framing of a request, which has at most 1.5 MiB by
	// default: the server's --max-request-bytes
	// (https://etcd.io/docs/v3.5/dev-guide/limit/). A commit is one request.
	maxRequest = 1_500_000
)

// mode is the set of keys that a commit compares.
type mode uint8

const (
	compareAll   mode = iota // the keys that were read, and the keys that are written
	compareReads             // what was read
	compareNone
)

// Isolations are those of concurrency.Isolation; RepeatableReads is not among
// them because its reads come from several revisions.
var Isolations = db.Isolations{
	Product: "etcd",
	Source:  "https://etcd.io/docs/v3.4/learning/api_guarantees/ (strict serializability of KV operations), over comparisons as in etcd's client/v3/concurrency/stm.go",
	Levels: []db.NamedLevel{
		{Name: "serializable snapshot", Level: isolation.StrictSerializable}, // the default of etcd's own library
		{Name: "serializable", Level: isolation.StrictSerializable},
		{Name: "read committed", Level: isolation.ReadCommitted},
	},
}

// modes maps each isolation to the mode of its commits.
var modes = map[string]mode{"serializable snapshot": compareAll, "serializable": compareReads, "read committed": compareNone}

// Database is an etcd cluster. It satisfies db.KV, db.Footprinter and db.Monitored.
type Database struct {
	config   config
	nodes    []*node
	cluster  atomic.Uint64
	sessions atomic.Uint32 // opened so far
}

var (
	_ db.KV                        = (*Database)(nil)
	_ db.Ranger                    = (*Database)(nil)
	_ db.Footprinter               = (*Database)(nil)
	_ db.Monitored                 = (*Database)(nil)
	_ db.Multiplexer[db.KVSession] = (*Database)(nil)
)

// Open opens a cluster by its URL,
//
//	etcd://[user:password@]h1[:2379],h2,h3[?timeout=1s][&reads=linearizable|serializable]
//
// and returns when one of its nodes has answered with these credentials. timeout
// is of each call; a page of a scan has ten times as long. With
// reads=serializable a member answers reads from its own state without asking the
// others, which may be old.
func Open(ctx context.Context, url string) (*Database, error) {
	c, err := readURL(url)
	if err != nil {
		return nil, err
	}
	d := &Database{config: c}
	for i, address := range c.nodes {
		d.nodes = append(d.nodes, &node{number: i, address: address, config: &d.config, cluster: &d.cluster})
	}
	if _, err := connectAny(ctx, d.nodes, 0); err != nil {
		_ = d.Close() // nothing was done over it
		if wire.DemandsTLS(ctx, opConnect, err, "", c.nodes...) != err {
			err = db.Fatalf(opConnect, "%w", db.MessageError{Cause: err,
				Text: "etcd node " + strings.Join(c.nodes, ",") + ": " + wire.NeedsTLS.Reason() + ", which this driver does not speak: name nodes that serve clients without it"})
		}
		return nil, err
	}
	return d, nil
}

// Close closes all connections; open sessions fail from then on.
func (d *Database) Close() error {
	var errs []error
	for _, n := range d.nodes {
		errs = append(errs, n.close())
	}
	return errors.Join(errs...)
}

// Limits implements db.Database for a server with its default limits.
func (*Database) Limits() db.Limits {
	return db.Limits{Value: maxRequest, Commit: maxRequest, Writes: maxWrites}
}

// IsolationNames implements db.Isolated.
func (*Database) IsolationNames() []string { return Isolations.IsolationNames() }

// Claim implements db.Database.
//
// A commit whose reads are compared goes through consensus as one operation, so the
// promise of strict serializability for all KV operations covers the whole transaction; a
// transaction that only reads is one operation or reads at the revision of its first.
// With reads=serializable such a one may see an older revision than it should, which was
// whole and true once: the order exists and real time is broken, serializable and not
// strict. Commits that compare nothing lose updates.
func (d *Database) Claim(name string) (db.Claim, error) {
	claim, err := Isolations.Claim(name)
	if err != nil {
		return db.Claim{}, err
	}
	if d.config.stale && claim.Level > isolation.Serializable {
		claim.Level = isolation.Serializable
		claim.Source += ", with serializable reads, which the same page says may be stale"
	}
	return claim, nil
}

// Info asks every node that answers what it is.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	l, err := connectAny(ctx, d.nodes, 0)
	if err != nil {
		return db.Info{}, err
	}
	statuses := d.statuses(ctx)
	if len(statuses) == 0 {
		return db.Info{}, d.silent("ask for the status")
	}
	var versions []string // as a rule one
	for _, s := range statuses {
		versions = append(versions, s.GetVersion())
	}
	slices.Sort(versions)
	info := db.Info{Name: "etcd", Durable: "https://etcd.io/docs/latest/learning/api_guarantees/", Version: strings.Join(slices.Compact(versions), ", ")}
	info.Add("nodes", "%d in the URL, %d answered", len(d.nodes), len(statuses))
	info.Add("cluster id", "%x", statuses[0].GetHeader().GetClusterId())
	if members := d.members(ctx, l); len(members) > 0 {
		info.Add("members", "%d: %s", len(members), strings.Join(members, ", "))
	}
	// Servers from 3.6 on report their quota; 0 is what an older one says.
	if quota := statuses[0].GetDbSizeQuota(); quota > 0 {
		info.Add("quota-backend-bytes", "%d", quota)
	}
	info.Add("reads", "%s", map[bool]string{false: "linearizable", true: "serializable: from the member asked, may be stale"}[d.config.stale])
	info.Add("timeout of a call", "%v", d.config.timeout)
	info.Add("durability", "a commit is acknowledged when a majority of the members has it in its log; whether they fsync (--unsafe-no-fsync) etcd reports to no client")
	return info, nil
}

// statuses asks every node; one that does not answer is left out.
func (d *Database) statuses(ctx context.Context) (all []*pb.StatusResponse) {
	for _, n := range d.nodes {
		conn, err := n.connection()
		if err != nil {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, min(probeTimeout, d.config.timeout))
		if s, err := pb.NewMaintenanceClient(conn).Status(limited, &pb.StatusRequest{}); err == nil {
			all = append(all, s)
		}
		cancel()
	}
	return all
}

// members returns the members that the cluster knows; none if it does not answer.
func (d *Database) members(ctx context.Context, l *link) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, d.config.timeout)
	defer cancel()
	answer, _ := pb.NewClusterClient(l.conn).MemberList(ctx, &pb.MemberListRequest{})
	for _, m := range answer.GetMembers() {
		name := m.GetName()
		if m.GetIsLearner() {
			name += " (learner)"
		}
		names = append(names, name)
	}
	return names
}

func (d *Database) silent(op string) error {
	return &db.Error{Class: db.Unavailable, Op: op, Err: fmt.Errorf("none of %d etcd nodes answers", len(d.nodes))}
}

// Footprint returns the size of the leader's database file, free pages included:
// one copy of the data. The other members keep as much each, and every member
// keeps its log beside it. While no node that leads answers, the largest file
// counts.
func (d *Database) Footprint(ctx context.Context) (int64, error) {
	var largest int64
	for _, s := range d.statuses(ctx) {
		if s.GetLeader() == s.GetHeader().GetMemberId() {
			return s.GetDbSize(), nil
		}
		largest = max(largest, s.GetDbSize())
	}
	if largest == 0 {
		return 0, d.silent("ask for the size of the database")
	}
	return largest, nil
}
