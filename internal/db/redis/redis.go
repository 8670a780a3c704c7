// Package redis is the driver for Redis 7.0 or later, and for Valkey. It uses the server as an ordered key-value store
// with optimistic transactions.
//
// Redis executes one command after another. A script or a MULTI … EXEC counts as one command. A transaction of package
// db becomes one MGET that reads, and one script or EXEC that compares and writes: see commit.lua and commit.go.
//
// The value of a key is the string with that name. Redis does not order its keys. So a sorted set holds all of them,
// with equal scores, and changes with them. A number counts the commits. If the count changes between the pages of a
// scan, the pages are not of one snapshot.
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

// The names of the driver's own keys in its database.
const (
	indexKey = "stroppy:index"
	countKey = "stroppy:commits"
)

const (
	// maxWrites limits a commit to about a millisecond of the server. It also keeps the values that commit.lua unpacks
	// below Lua's limit of 8000 (LUAI_MAXCSTACK of luaconf.h).
	maxWrites = 1000
	// maxReads and maxWatched limit one Read to a few milliseconds, in which the server does nothing else. maxWatched
	// limits the keys to watch. The server compares each of them with all keys that the connection already watches
	// (watchForKey of multi.c, 7.0).
	maxReads, maxWatched = 10_000, 1000
)

// Isolations has one isolation. Redis has no word for it, so the name describes the behavior in Redis's documentation.
var Isolations = db.Isolations{
	Product: "Redis",
	Levels:  []db.NamedLevel{{Name: "serializable", Level: isolation.StrictSerializable}},
}

// Database is a Redis server, a primary and its replicas, or the servers that Sentinels watch. It satisfies db.KV,
// db.Multiplexer[db.KVSession], db.Footprinter, db.Monitored and db.FailsOver.
type Database struct {
	config       config
	commit, scan script

	mu      sync.Mutex
	current string // the last server that was found to be the primary
	closed  bool

	sentinels *sentinels // nil if there are none
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
// and returns when all servers that answer have reported their roles and one of them is the primary. rediss:// is the
// same over TLS. ca=FILE names the certificates to trust.
//
// With wait=N a commit succeeds only after N replicas have acknowledged it. Open returns an error if fewer replicas
// follow the primary. timeout limits each call. A commit has wait_timeout in addition.
//
// With read=any the one server is read whatever its role is, and nothing is written. With sentinel=NAME the servers in
// the URL are Sentinels, which are asked for the primary: see sentinels.go.
//
// A cancelled context is noticed before a call, its deadline also during a call.
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
		_ = d.Close() // it has nothing to report
		return nil, err
	}
	return d, nil
}

// A replica whose connection has ended returns within replicaGrace. The driver looks for it every replicaPoll.
const replicaGrace, replicaPoll = 3 * time.Second, 100 * time.Millisecond

// awaitReplicas returns when the primary has as many replicas as each commit waits for. It counts the replicas at the
// time when l was opened, and then on new links.
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

// Close ends the use of the database: sessions can no longer be opened or reset. Open sessions have their own
// connections, which their Close closes.
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
// One server executes scripts and EXECs one after another. Each takes effect only if the data that the transaction read
// has not changed. So the transaction behaves as if it happened at that moment, which lies within its time. A
// transaction that only reads is one MGET or one script. So on one primary the order exists and agrees with real time.
//
// Redis promises no more. A fail-over may lose acknowledged writes, with wait=N too. The loss after a crash of the
// primary depends on appendfsync. A replica executes the commands of its primary in the same order, and each as one. So
// the values that read=any returns were true together, some time ago.
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

// primary returns a link to the primary. It prefers the server that any session last found to be the primary, if the
// server still is. So all sessions agree if two servers claim to be the primary. Otherwise the link is to the only
// other primary.
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

// survey asks all servers for their roles at the same time, and returns a link to the primary. It does not ask the
// server except, whose error is why. Two primaries are an error: each would have half of the money.
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
		for _, err := range errs { // a permanent error stands for all
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
	return nil, unavailable(opConnect, "the Redis servers %s each claim to be the primary: make all but one of them its replicas", strings.Join(primaries, " and "))
}
