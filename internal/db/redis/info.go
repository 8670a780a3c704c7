package redis

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"stroppy/internal/db"
	"stroppy/internal/db/optimistic"
)

// configured lists the server's settings that a report shows.
var configured = []any{
	"appendonly", "appendfsync", "save", "min-replicas-to-write", "min-replicas-max-lag", "repl-diskless-sync", "maxmemory", "maxmemory-policy",
}

// Info describes the primary by its own answers.
func (d *Database) Info(ctx context.Context) (db.Info, error) {
	const op = "ask for the settings"
	settings := goredis.NewMapStringStringCmd(ctx, append([]any{"config", "get"}, configured...)...)
	l, server, err := d.ask(ctx, op, settings)
	if err != nil {
		return db.Info{}, err
	}
	info := db.Info{Name: "Redis", Version: server["redis_version"]}
	if version := server["valkey_version"]; version != "" {
		info.Name, info.Version = "Valkey", version
	}
	if settings.Err() != nil { // many hosting providers refuse CONFIG
		info.Add("configuration", "not known: the server refuses CONFIG GET")
		info.Add("appendonly", "%s", map[string]string{"1": "yes", "0": "no"}[server["aof_enabled"]])
		info.Add("maxmemory-policy", "%s", server["maxmemory_policy"])
	}
	for _, name := range configured {
		if value, ok := settings.Val()[name.(string)]; ok {
			info.Add(name.(string), "%s", remark(name.(string), value))
		}
	}
	if d.sentinels != nil {
		info.Add("servers", "%d Sentinels in the URL, the primary is %s", len(d.config.nodes), l.node)
		info.Add("fail-over", "%s", d.describe(ctx))
		if server["connected_slaves"] == "0" {
			info.Warn("No replica follows the Redis server %s, which the Sentinels watch as %s, so that none can take over from it: %s.",
				l.node, d.config.sentinel, attachReplicas)
		}
	} else {
		info.Add("servers", "%d in the URL, the primary is %s", len(d.config.nodes), l.node)
	}
	info.Add("replicas", "%s", replicas(server))
	info.Add("commit", "%s", map[bool]string{false: "one script", true: "WATCH, MULTI … EXEC"}[d.config.watch])
	if d.config.wait == 0 {
		info.Add("wait", "a commit is acknowledged by the primary alone")
	} else {
		info.Add("wait", "a commit is acknowledged by %d replicas, which have %v", d.config.wait, d.config.waitFor)
	}
	info.Add("timeout of a call", "%v", d.config.timeout)
	d.durability(&info, d.sentinels != nil || len(d.config.nodes) > 1 || server["connected_slaves"] != "0")
	return info, nil
}

// ask sends INFO and the other commands to the primary, and returns the answer to INFO.
func (d *Database) ask(ctx context.Context, op string, more ...goredis.Cmder) (*link, map[string]string, error) {
	l, err := d.primary(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer l.close()
	about := goredis.NewStringCmd(ctx, "info")
	if err := cmp.Or(l.run(ctx, append(more, about)...), about.Err()); err != nil {
		return nil, nil, failure(op, l.node, err, optimistic.Reading)
	}
	return l, fields(about.Val()), nil
}

// remark adds to a setting the consequence for money.
func remark(name, value string) string {
	switch {
	case name == "save" && value == "":
		return "no snapshots"
	case name == "appendonly" && value == "no":
		return "no: a crash loses all that was written since the last snapshot"
	case name == "appendfsync" && value != "always":
		return value + ": a power cut may lose acknowledged writes, also with appendonly yes"
	case name == "maxmemory" && value == "0":
		return "no limit"
	case name == "maxmemory-policy" && value != "noeviction":
		return value + ": when memory runs out the server deletes data, and money with it"
	}
	return value
}

// replicas describes the connected replicas: slave0:ip=…,port=…,state=….
func replicas(server map[string]string) string {
	count, err := strconv.Atoi(server["connected_slaves"])
	if err != nil || count == 0 {
		return "none is connected"
	}
	var names []string
	for i := range count {
		fields := map[string]string{}
		for field := range strings.SplitSeq(server[fmt.Sprintf("slave%d", i)], ",") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		names = append(names, fmt.Sprintf("%s:%s %s", fields["ip"], fields["port"], fields["state"]))
	}
	return fmt.Sprintf("%d: %s", count, strings.Join(names, ", "))
}

// Footprint returns the size of the append-only file. Redis does not report the size of a snapshot.
func (d *Database) Footprint(ctx context.Context) (int64, error) {
	const op = "ask for the size on disk"
	l, server, err := d.ask(ctx, op)
	if err != nil {
		return 0, err
	}
	if server["aof_enabled"] != "1" {
		return 0, db.Fatalf(op, "the Redis server %s writes no append-only file, and does not report the size of its snapshots", l.node)
	}
	size, err := strconv.ParseInt(server["aof_current_size"], 10, 64)
	if err != nil {
		return 0, db.Fatalf(op, "the Redis server %s reports no size of its append-only file: %w", l.node, err)
	}
	return size, nil
}
