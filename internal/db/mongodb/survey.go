package mongodb

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
)

var _ db.Surveyed = (*Database)(nil)

// Survey implements db.Surveyed.
func (d *Database) Survey(ctx context.Context, _ db.Info) (s db.Survey, err error) {
	const op = "ask MongoDB for its state"
	admin := d.client.Database("admin")
	command := func(ctx context.Context, name string, more ...bson.E) (bson.Raw, error) {
		return admin.RunCommand(ctx, append(bson.D{{Key: name, Value: 1}}, more...), d.readOptions).Raw()
	}
	s.Ping = func(ctx context.Context) error {
		_, err := command(ctx, "ping")
		return err
	}
	var hello bson.Raw
	s.Clock, err = db.ReadClock(func() (time.Time, error) {
		var err error
		if hello, err = command(ctx, "isMaster"); err != nil {
			return time.Time{}, err
		}
		now, _ := hello.Lookup("localTime").TimeOK()
		return now, nil
	})
	if err != nil {
		return s, d.failure(op, err, before)
	}
	if !d.sharded {
		writes, _ := hello.Lookup("ismaster").BooleanOK()
		s.Judge("role", map[bool]string{true: "primary", false: "secondary"}[writes], !writes, db.Warning, "a run writes; name all members, and leave directConnection out")
	}
	if config, err := command(ctx, "replSetGetConfig"); err == nil {
		members := elements(documentOf(config, "config", "members"))
		s.Judge("members", fmt.Sprint(members), members == 1, db.Note, "the set does not survive the loss of its only member; three members survive the loss of one")
		setting, _ := lookUp(config, "config", "writeConcernMajorityJournalDefault")
		journal, known := setting.BooleanOK()
		s.Judge("writeConcernMajorityJournalDefault", fmt.Sprint(journal || !known), known && !journal, db.Warning,
			"members acknowledge before their journal is on disk, so a crash can lose acknowledged writes; set it to true")
	}
	if limit, err := command(ctx, "getParameter", bson.E{Key: "transactionLifetimeLimitSeconds", Value: 1}); err == nil {
		s.Add("transactionLifetimeLimitSeconds", "%d", numberAt(limit, "transactionLifetimeLimitSeconds"))
	}
	if status, err := command(ctx, "connectionStatus"); err == nil {
		s.Add("user", "%s", textAt(status, "authInfo", "authenticatedUsers", "0", "user"))
	}
	encryption := wire.Encryption{Verified: d.config.tls.Get("tlsInsecure") != "true"}
	if len(d.config.tls) > 0 && d.config.tls.Get("tls") != "false" && d.config.tls.Get("ssl") != "false" {
		encryption.Protocol = "on"
	}
	encryption.Judge(&s, wire.Elsewhere(d.config.servers...), "tls=true to the URL")
	return s, nil
}
