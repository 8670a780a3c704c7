// Package etcd is the driver for an etcd cluster, version 3.4 or later. It uses etcd as an ordered key-value store with
// optimistic transactions.
//
// etcd has one atomic request: if these comparisons hold, do these writes. One request of a transaction reads all keys
// at one revision. Later reads use that revision. The commit is one request that compares and writes. The software
// transactional memory of etcd's own client library works in the same way (client/v3/concurrency/stm.go). The
// isolations have the names that this library uses.
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
	// maxOperations is the limit for the comparisons of a request, and for its writes. It is the default of the
	// server's --max-txn-ops. The server counts the longest of the lists, not their sum (api/v3rpc/key.go,
	// checkTxnRequest).
	maxOperations = 128

	// maxWrites leaves room for the comparisons of keys that are only read. The default isolation compares all keys
	// that were read or are written.
	maxWrites = 100

	// maxRequest leaves room for the framing of a request. The server's limit is 1.5 MiB by default:
	// --max-request-bytes (https://etcd.io/docs/v3.5/dev-guide/limit/). A commit is one request.
	maxRequest = 1_500_000
)

// mode is the set of keys that a commit compares.
type mode uint8

const (
	compareAll   mode = iota // the keys that were read, and the keys that are written
	compareReads             // the keys that were read
	compareNone
)

// Isolations has the isolations of concurrency.Isolation except RepeatableReads, whose reads come from several
// revisions.
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
	sessions atomic.Uint32 // the number of sessions that were opened
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
//	etcd://[user:password@]h1[:2379],h2,h3[?timeout=1s][&reads=linearizable|serializable][&tls=true&ca=FILE&cert=FILE&key=FILE]
//
// and returns when one of its nodes has answered with these credentials. timeout limits each call. A page of a scan has
// ten times as long. With reads=serializable a member answers reads from its own state without asking the other
// members, so the data may be old.
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
		_ = d.Close() // no data was sent over it
		if c.tls {
			err = lacksTLS(ctx, err, c.nodes)
		} else {
			err = wire.DemandsTLS(ctx, opConnect, err, inURL[wire.NeedsTLS], c.nodes...)
		}
		return nil, err
	}
	return d, nil
}

// lacksTLS returns the error of opening members with TLS that failed with err. A member without TLS ends the connection
// at the first byte. If one answers without TLS, the error explains it.
func lacksTLS(ctx context.Context, err error, nodes []string) error {
	if db.ClassOf(err) != db.Unavailable {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, node := range nodes {
		m := monitor{scheme: "http://"}
		if _, plain := m.scrape(ctx, node); plain == nil {
			return db.Fatalf(opConnect, "%w", db.MessageError{Text: "etcd node " + node + ": " + wire.LacksTLS.Text("", inURL[wire.LacksTLS]), Cause: err})
		}
	}
	return err
}

// Close closes all connections. Open sessions fail from then on.
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
// A commit whose reads are compared goes through consensus as one operation. So the promise of strict serializability
// for all KV operations covers the whole transaction. A transaction that only reads is one operation, or reads at the
// revision of its first read.
//
// With reads=serializable a transaction that only reads may see an older revision than it should. The data of that
// revision was complete and correct once. The order exists and real time is broken: serializable and not strict.
// Commits that compare nothing lose updates.
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

// Info describes the cluster by the answers of its nodes.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	l, err := connectAny(ctx, d.nodes, 0)
	if err != nil {
		return db.Info{}, err
	}
	statuses := d.statuses(ctx)
	if len(statuses) == 0 {
		return db.Info{}, d.silent("ask for the status")
	}
	var versions []string // usually one
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
	// Servers from 3.6 on report their quota. An older server reports 0.
	if quota := statuses[0].GetDbSizeQuota(); quota > 0 {
		info.Add("quota-backend-bytes", "%d", quota)
	}
	info.Add("reads", "%s", map[bool]string{false: "linearizable", true: "serializable: from the member asked, may be stale"}[d.config.stale])
	info.Add("timeout of a call", "%v", d.config.timeout)
	info.Add("durability", "a commit is acknowledged when a majority of the members has it in its log; whether they fsync (--unsafe-no-fsync) etcd reports to no client")
	return info, nil
}

// statuses asks every node, and leaves out nodes that do not answer.
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

// members returns the names of the members that the cluster knows, or none if it does not answer.
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

// Footprint returns the size of the leader's database file, free pages included: one copy of the data. Each other
// member keeps the same amount, and every member also keeps its log. If no leader answers, Footprint returns the size
// of the largest file.
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
