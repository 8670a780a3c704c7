package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"stroppy/internal/db"
)

// The charts of etcd's metrics.
const (
	chartRaft    = "Raft entries per second"
	chartPending = "Proposals that wait"
	chartSyncs   = "Syncs of the write-ahead log and commits of the backend per second"
	chartBusy    = "Share of the time in syncs of the log and commits of the backend"
	chartMembers = "Members that answer, and the term"
	chartSize    = "Database file, MB"
	chartTrouble = "Changes of the leader, failed proposals and slow applies per second"
)

// The numbers of the metrics of a member's Status, which are the first metrics.
const (
	answering = iota
	term
	raftIndex
	ofStatus
)

var fromStatus = [ofStatus]db.Metric{
	answering: {Name: "members_answering", Label: "members that answer", Chart: chartMembers},
	term:      {Name: "raft_term", Label: "term", Chart: chartMembers},
	raftIndex: {Name: "raft_entries_per_s", Label: "entries", Chart: chartRaft, Counter: true},
}

// exported holds the metrics of /metrics (https://etcd.io/docs/v3.5/metrics/), with their names there. A histogram has
// one metric for its sum and one for its count.
var exported = db.Measurements{
	{"etcd_server_proposals_pending", db.Metric{Name: "proposals_pending", Label: "proposals", Chart: chartPending}},
	{"etcd_disk_wal_fsync_duration_seconds_count", db.Metric{Name: "wal_syncs_per_s", Label: "syncs of the log", Chart: chartSyncs, Counter: true}},
	{"etcd_disk_backend_commit_duration_seconds_count", db.Metric{Name: "backend_commits_per_s", Label: "commits of the backend", Chart: chartSyncs, Counter: true}},
	{"etcd_disk_wal_fsync_duration_seconds_sum", db.Metric{Name: "wal_sync_seconds_per_s", Label: "syncs of the log", Chart: chartBusy, Counter: true}},
	{"etcd_disk_backend_commit_duration_seconds_sum", db.Metric{Name: "backend_commit_seconds_per_s", Label: "commits of the backend", Chart: chartBusy, Counter: true}},
	{"etcd_mvcc_db_total_size_in_bytes", db.Metric{Name: "database_bytes", Label: "in all", Chart: chartSize, Scale: db.Megabyte}},
	{"etcd_mvcc_db_total_size_in_use_in_bytes", db.Metric{Name: "database_used_bytes", Label: "in use", Chart: chartSize, Scale: db.Megabyte}},
	{"etcd_server_leader_changes_seen_total", db.Metric{Name: "leader_changes_per_s", Label: "changes of the leader", Chart: chartTrouble, Counter: true}},
	{"etcd_server_proposals_failed_total", db.Metric{Name: "proposals_failed_per_s", Label: "failed proposals", Chart: chartTrouble, Counter: true}},
	{"etcd_server_slow_apply_total", db.Metric{Name: "slow_applies_per_s", Label: "slow applies", Chart: chartTrouble, Counter: true}},
}

// monitor asks all members over separate connections, and the leader for its metrics.
type monitor struct {
	nodes  []*node
	http   http.Client
	scheme string
	leader string // the last leader that answered
}

// Monitor implements db.Monitored. The metrics describe Raft, syncs of the log and the size of the leader's data. Every
// member has them at /metrics.
func (d *Database) Monitor() db.Monitor {
	m := &monitor{http: http.Client{Transport: &http.Transport{DisableCompression: true, TLSClientConfig: d.config.secure}}, scheme: "http://"}
	if d.config.tls {
		m.scheme = "https://"
	}
	cluster := new(atomic.Uint64)
	for _, n := range d.nodes {
		m.nodes = append(m.nodes, &node{number: n.number, address: n.address, config: n.config, cluster: cluster})
	}
	return m
}

func (*monitor) Interval() time.Duration { return time.Second }

func (*monitor) Metrics() []db.Metric {
	return append(fromStatus[:], exported.Metrics()...)
}

func (m *monitor) Sample(ctx context.Context) (s db.Sample, err error) {
	leader, status, answers := m.find(ctx)
	if leader == nil {
		if answers == 0 {
			return s, &db.Error{Class: db.Unavailable, Op: "ask for the status", Err: fmt.Errorf("none of %d etcd nodes answers", len(m.nodes))}
		}
		return s, &db.Error{Class: db.Unavailable, Op: "ask for the status", Err: errors.New("no etcd node that answers leads")}
	}
	s.Server, s.Fresh = leader.address, leader.address != m.leader
	m.leader = leader.address
	s.Values = append(s.Values, float64(answers), float64(status.GetRaftTerm()), float64(status.GetRaftIndex()))
	found, err := m.scrape(ctx, leader.address)
	if err != nil {
		m.leader = "" // the next sample has no earlier one to compare with
	}
	for _, one := range exported {
		x, there := found[one.Name]
		if !there {
			x = math.NaN()
		}
		s.Values = append(s.Values, x)
	}
	return s, nil
}

// find asks all members at once. It waits for a silent member for at most half of the available time.
func (m *monitor) find(ctx context.Context) (leader *node, status *pb.StatusResponse, answers int) {
	ctx, cancel := context.WithTimeout(ctx, m.Interval()*4/10)
	defer cancel()
	statuses := make([]*pb.StatusResponse, len(m.nodes))
	var group sync.WaitGroup
	for i, n := range m.nodes {
		group.Go(func() {
			if conn, err := n.connection(); err == nil {
				statuses[i], _ = pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{}) // silent members are not counted
			}
		})
	}
	group.Wait()
	for i, s := range statuses {
		if s == nil {
			continue
		}
		answers++
		// Two members lead until the old leader learns about the election of the new one.
		if s.GetLeader() == s.GetHeader().GetMemberId() && s.GetRaftTerm() >= status.GetRaftTerm() {
			leader, status = m.nodes[i], s
		}
	}
	return leader, status, answers
}

// scrape reads the metrics that exported lists. A member exports more than a thousand lines, and a parser of all lines
// took four times as long as the rest of a sample.
func (m *monitor) scrape(ctx context.Context, address string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.scheme+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := m.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("etcd node %s answers %s for its metrics", address, answer.Status)
	}
	return wanted(answer.Body)
}

// wanted reads the text format, and adds up the values of a name. Each line has the form NAME VALUE or NAME{LABELS}
// VALUE (https://prometheus.io/docs/instrumenting/exposition_formats/).
func wanted(text io.Reader) (map[string]float64, error) {
	found := map[string]float64{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line := lines.Text()
		name := line[:max(strings.IndexAny(line, "{ "), 0)]
		for i := range exported {
			if exported[i].Name == name {
				found[name] += db.ParseValue(line[strings.LastIndexByte(line, ' ')+1:])
			}
		}
	}
	return found, lines.Err()
}

func (m *monitor) Close() {
	for _, n := range m.nodes {
		_ = n.close() // no data that could be lost was sent over it
	}
	m.http.CloseIdleConnections()
}
