package etcd

import (
	"context"
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

var _ db.Surveyed = (*Database)(nil)

// quotaShare is the share of its quota from which on a database is nearly full.
const quotaShare = 0.9

// Survey implements db.Surveyed. etcd shows no clock.
func (d *Database) Survey(ctx context.Context, info db.Info) (s db.Survey, err error) {
	l, err := connectAny(ctx, d.nodes, 0)
	if err != nil {
		return s, err
	}
	statuses := d.statuses(ctx)
	if len(statuses) == 0 {
		return s, d.silent("ask for the status")
	}
	s.Judge("nodes that answer", fmt.Sprintf("%d of %d in the URL", len(statuses), len(d.nodes)), len(statuses) < len(d.nodes), db.Warning,
		"start the others, or take them out of the URL")
	members := info.Setting("members")
	s.Judge("members", members, strings.HasPrefix(members, "1:"), db.Note, "the cluster does not survive the loss of its only member; three members survive the loss of one")
	leader := "none"
	for _, status := range statuses {
		if status.GetLeader() != 0 {
			leader = fmt.Sprintf("%x, term %d", status.GetLeader(), status.GetRaftTerm())
		}
	}
	s.Judge("leader", leader, leader == "none", db.Warning, "no write is accepted; start a majority of the members")
	size, quota := statuses[0].GetDbSize(), statuses[0].GetDbSizeQuota()
	if quota > 0 { // reported from 3.6 on
		s.Judge("database file", fmt.Sprintf("%d of %d bytes", size, quota), float64(size) > quotaShare*float64(quota), db.Warning,
			"etcd refuses writes when its quota is used up; compact and defragment it, or raise quota-backend-bytes")
	} else {
		s.Add("database file", "%d bytes", size)
	}
	d.surveyAlarms(ctx, l, &s)
	encryption := wire.Encryption{Verified: !d.config.insecure}
	if d.config.tls {
		encryption.Protocol = "on"
	}
	encryption.Judge(&s, wire.Elsewhere(d.config.nodes...), "tls=true to the URL, and ca=FILE if the authority is private")
	return s, nil
}

// surveyAlarms adds alarms, under which members refuse writes. A user without the right to see them gets no fact.
func (d *Database) surveyAlarms(ctx context.Context, l *link, s *db.Survey) {
	ctx, cancel := context.WithTimeout(ctx, d.config.timeout)
	defer cancel()
	answer, err := pb.NewMaintenanceClient(l.conn).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET})
	if err != nil {
		return
	}
	var names []string
	for _, alarm := range answer.GetAlarms() {
		names = append(names, alarm.GetAlarm().String())
	}
	value := "none"
	if len(names) > 0 {
		value = strings.Join(names, ", ")
	}
	s.Judge("alarms", value, len(names) > 0, db.Warning, "members refuse writes; remove the cause, then run etcdctl alarm disarm")
}
