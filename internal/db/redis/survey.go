package redis

import (
	"cmp"
	"context"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
	"stroppy/internal/db/wire"
)

var _ db.Surveyed = (*Database)(nil)

// Survey implements db.Surveyed.
func (d *Database) Survey(ctx context.Context, info db.Info) (s db.Survey, err error) {
	const op = "ask for the state"
	_, server, err := d.ask(ctx, op)
	if err != nil {
		return s, err
	}
	l, err := d.primary(ctx)
	if err != nil {
		return s, err
	}
	defer l.close()
	s.Clock, err = db.ReadClock(func() (time.Time, error) {
		now := goredis.NewTimeCmd(ctx, "time")
		err := cmp.Or(l.run(ctx, now), now.Err())
		return now.Val(), err
	})
	if err != nil && !answered(err) {
		return s, failure(op, l.node, err, optimistic.Reading)
	}
	wire.EncryptionOf(l.wire.Conn, false).Judge(&s, wire.Elsewhere(l.node), "TLS with rediss:// in place of redis://")
	role := map[string]string{"master": "primary", "slave": "replica"}[server["role"]]
	s.Judge("role", role, role == "replica", db.Warning, "a run writes; name the primary, or the Sentinels")
	policy, _, _ := strings.Cut(info.Setting("maxmemory-policy"), ":")
	s.Judge("maxmemory-policy", policy, policy != "noeviction", db.Warning, "the server deletes data when its memory is full; set it to noeviction")
	s.Judge("last snapshot", server["rdb_last_bgsave_status"], server["rdb_last_bgsave_status"] == "err", db.Warning,
		"it failed, and the server may refuse writes (stop-writes-on-bgsave-error); see its log, and free space on its disk")
	if server["aof_enabled"] == "1" {
		s.Judge("last write of the append-only file", server["aof_last_write_status"], server["aof_last_write_status"] == "err", db.Warning,
			"it failed, and the server refuses writes; see its log, and free space on its disk")
	}
	s.Judge("loading", map[string]string{"0": "no", "1": "yes"}[server["loading"]], server["loading"] == "1", db.Warning, "the server reads its data after a start; wait until it is ready")
	return s, d.surveyRights(ctx, l, &s)
}

// surveyRights asks, without executing them, for commands that a run uses. ACL needs Redis 7 and a right of its own.
func (d *Database) surveyRights(ctx context.Context, l *link, s *db.Survey) error {
	user := goredis.NewStringCmd(ctx, "acl", "whoami")
	if err := l.run(ctx, user); err != nil || user.Err() != nil {
		return nil // it is not known
	}
	s.Add("user", "%s", user.Val())
	var missing []string
	for _, command := range [][]any{{"get", "k"}, {"set", "k", "v"}, {"del", "k"}, {"mget", "k"}, {"eval", "return 1", 0}, {"script", "load", "return 1"}} {
		try := goredis.NewStringCmd(ctx, append([]any{"acl", "dryrun", user.Val()}, command...)...)
		if err := l.run(ctx, try); err != nil || try.Err() != nil {
			return nil
		}
		if strings.Contains(try.Val(), "command") { // other texts are about keys, which are not a run's own
			missing = append(missing, strings.ToUpper(command[0].(string)))
		}
	}
	value := "all that a run needs"
	if len(missing) > 0 {
		value = "missing: " + strings.Join(missing, ", ")
	}
	s.Judge("rights", value, len(missing) > 0, db.Warning, "a run reads and writes its own keys by scripts; run ACL SETUSER "+user.Val()+" +@read +@write +@scripting")
	return nil
}
