// Package redis speaks to Redis 7.0 or later, or to Valkey, as an ordered
// key-value store with optimistic transactions.
//
// Redis executes one command after another, and a script or a MULTI … EXEC as one of
// them. A transaction of package db becomes one MGET that reads, and one script or EXEC
// that compares and writes: see commit.lua and commit.go.
//
// The value of a key is the string of that name. Redis does not order its keys, so a
// sorted set keeps them all, with equal scores, and changes with them. Beside it a number
// counts the commits: a scan of pages whose count has changed was not of one snapshot.
package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
	"stroppy/internal/db/wire"
	"stroppy/internal/isolation"
)

// The names that the driver needs for itself in its database.
const (
	indexKey = "stroppy:index"
	countKey = "stroppy:commits"
)

const (
	// maxWrites keeps a commit at about a millisecond of the server, and what
	// commit.lua unpacks below Lua's 8000 values (LUAI_MAXCSTACK of luaconf.h).
	maxWrites = 1000
	// maxReads and, of keys to be watched, maxWatched keep one Read at a few milliseconds, in
	// which the server does nothing else: it compares each key that it is to watch with all
	// that the connection watches already (watchForKey of multi.c, 7.0).
	maxReads, maxWatched = 10_000, 1000
)

// Isolations has the only one there is. Its name is not Redis's own word,
// which has none: it is what Redis's documentation describes.
var Isolations = db.Isolations{
	Product: "Redis",
	Levels:  []db.NamedLevel{{Name: "serializable", Level: isolation.StrictSerializable}},
}

// Database is a Redis server, a primary and its replicas, or those that Sentinels watch. It satisfies db.KV,
// db.Multiplexer[db.KVSession], db.Footprinter, db.Monitored and db.FailsOver.
type Database struct {
	config       config
	commit, scan script

	mu      sync.Mutex
	current string // the server that last was found to be the primary
	closed  bool

	sentinels *sentinels // nil where there are none
}

var (
	_ db.KV          = (*Database)(nil)
	_ db.Footprinter = (*Database)(nil)
	_ db.Monitored   = (*Database)(nil)

	_ db.ConnectionLimited = (*Database)(nil)
	_ db.FailsOver         = (*Database)(nil)
)

// Open opens a server by its URL,
//
//	redis://[[user]:password@]h1[:6379],h2/DB[?commit=script|watch][&wait=N][&wait_timeout=1s][&timeout=5s][&read=any][&sentinel=NAME]
//
// and returns when all servers that answer have been asked what they are and one of them
// is the primary. rediss:// is the same over TLS, with ca=FILE for the certificates to
// trust. With wait a commit is a success only when so many replicas have acknowledged it, and
// fewer that follow the primary are refused.
// timeout is of each call, to which a commit adds wait_timeout. With read=any the one
// server is read whatever its role is, and nothing is written. With sentinel=NAME the
// servers in the URL are Sentinels, which are asked for the primary: see sentinels.go. A context that is
// cancelled is noticed before a call, its deadline also during one.
func Open(ctx context.Context, url string) (*Database, error) {
	c, err := readURL(url)
	if err != nil {
		return nil, err
	}
	d := &Database{config: c, commit: script{commitSource, goredis.NewScript(commitSource).Hash()}, scan: script{scanSource, goredis.NewScript(scanSource).Hash()}}
	var l *link
	if c.sentinel == "" {
		l, err = d.survey(ctx, "", nil)
	} else {
		l, err = d.openSentinels(ctx)
	}
	switch {
	case err == nil || c.sentinel != "":
	case c.tls:
		err = c.lacksTLS(ctx, err)
	default:
		err = wire.DemandsTLS(ctx, "open Redis", err, "rediss:// in place of redis://", c.nodes...)
	}
	if err != nil {
		return nil, err
	}
	l.close()
	if err := d.awaitReplicas(ctx, l); err != nil {
		_ = d.Close() // which has nothing to report
		return nil, err
	}
	return d, nil
}

// A replica whose connection has ended comes back within replicaGrace, and is looked for
// every replicaPoll.
const replicaGrace, replicaPoll = 3 * time.Second, 100 * time.Millisecond

// awaitReplicas returns when as many replicas follow the primary as each commit waits for, as
// they did on a link to it or do soon.
func (d *Database) awaitReplicas(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, replicaGrace)
	defer cancel()
	for l.replicas < d.config.wait {
		select {
		case <-ctx.Done():
			return db.Fatalf(opConnect, "%d replicas follow the Redis server %s, and wait=%d asks for more, so that each commit would wait in vain: %s, or lower wait",
				l.replicas, l.node, d.config.wait, attachReplicas)
		case <-time.After(replicaPoll):
		}
		if now, err := d.primary(ctx); err == nil {
			now.close()
			l = now
		}
	}
	return nil
}

// Close lets no session be opened or reset any more. Those that are open have
// connections of their own, which their Close closes.
func (d *Database) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	if d.sentinels != nil {
		d.sentinels.stop()
	}
	return nil
}

func (d *Database) Limits() db.Limits {
	if d.config.watch {
		return db.Limits{Writes: maxWrites, Reads: maxWatched}
	}
	return db.Limits{Writes: maxWrites, Reads: maxReads}
}

// IsolationNames implements db.Isolated.
func (*Database) IsolationNames() []string { return Isolations.IsolationNames() }

// Claim implements db.Database.
//
// One server executes scripts and EXECs one after another, each only if what the
// transaction had read is still so: as if all of it had happened at that moment, which
// lies within its time. What only reads does it by one MGET, or by one script. So on one
// primary the order exists and agrees with real time. Redis promises no more: a fail-over
// may lose what was acknowledged, with wait=N too, and what a crash of the primary loses
// is a question of appendfsync. A replica executes what its primary did, in the same
// order and each as one, so what read=any reads was true together, some time ago.
func (d *Database) Claim(name string) (db.Claim, error) {
	claim, err := Isolations.Claim(name)
	if err != nil {
		return db.Claim{}, err
	}
	if d.config.any {
		claim.Level = isolation.Serializable
		claim.Source = "a replica executes what its primary did in the same order, and is behind it, https://redis.io/docs/latest/operate/oss_and_stack/management/replication/"
		return claim, nil
	}
	how := "a script is executed as one, https://redis.io/docs/latest/develop/programmability/eval-intro/"
	if d.config.watch {
		how = "EXEC is executed as one and only if no watched key was changed, https://redis.io/docs/latest/develop/using-commands/transactions/"
	}
	warning := "; replication is asynchronous, and a fail-over may lose acknowledged writes, https://redis.io/docs/latest/operate/oss_and_stack/management/replication/"
	if d.config.wait > 0 {
		warning = fmt.Sprintf("; %d replicas acknowledge each commit, which makes the loss of one at a fail-over less likely and no more, https://redis.io/docs/latest/commands/wait/", d.config.wait)
	}
	claim.Source = how + ", on one primary" + warning +
		"; what a crash loses is a question of appendonly and appendfsync, https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/"
	return claim, nil
}

// primary returns a link to the primary: to the server that was it the last time
// for any session, if it still is, so that all sessions agree where two servers
// say that they are; and otherwise to the only other one.
func (d *Database) primary(ctx context.Context) (*link, error) {
	d.mu.Lock()
	current, closed := d.current, d.closed
	d.mu.Unlock()
	if closed {
		return nil, db.Fatalf(opConnect, "the database is closed")
	}
	if d.sentinels != nil {
		return d.dialNamed(ctx, current)
	}
	l, err := dial(ctx, &d.config, current)
	if err == nil || db.ClassOf(err) == db.Fatal || len(d.config.nodes) == 1 {
		return l, err
	}
	return d.survey(ctx, current, err)
}

// survey asks all servers, except one of which it is known why it is not the
// primary, what they are, all at the same time, and returns a link to the
// primary. Two primaries are an error: half of the money would be on each.
func (d *Database) survey(ctx context.Context, except string, why error) (*link, error) {
	links := make([]*link, len(d.config.nodes))
	errs := make([]error, len(d.config.nodes))
	var group sync.WaitGroup
	for i, node := range d.config.nodes {
		if errs[i] = why; node != except {
			group.Go(func() { links[i], errs[i] = dial(ctx, &d.config, node) })
		}
	}
	group.Wait()
	var primaries, texts []string
	var found *link
	for i, l := range links {
		if l == nil {
			texts = append(texts, errs[i].Error())
			continue
		}
		found, primaries = l, append(primaries, l.node)
	}
	switch len(primaries) {
	case 1:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.current = found.node
		return found, nil
	case 0:
		for _, err := range errs { // one that no new try can help stands for all
			if len(errs) == 1 || db.ClassOf(err) == db.Fatal {
				return nil, err
			}
		}
		return nil, unavailable(opConnect, "none of the %d Redis servers is a primary that answers: %w", len(errs),
			db.MessageError{Text: strings.Join(texts, "; "), Cause: errors.Join(errs...)})
	}
	for _, l := range links {
		if l != nil {
			l.close()
		}
	}
	return nil, unavailable(opConnect, "the Redis servers %s each say that they are the primary: make all but one of them its replicas", strings.Join(primaries, " and "))
}
