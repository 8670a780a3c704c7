package redis

import (
	"fmt"
	"strings"

	"stroppy/internal/db"
)

// manual is the address of the documentation of Redis.
const manual = "https://redis.io/docs/latest/operate/oss_and_stack/management/"

// durability adds to an Info the settings with which Redis may lose acknowledged writes. replicated is true if there
// are replicas or Sentinels.
func (d *Database) durability(info *db.Info, replicated bool) {
	switch {
	case replicated && d.config.wait == 0:
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "asynchronous replication (wait=0)", Source: manual + "sentinel/", Cure: "wait=1 and min-replicas-to-write=1, which make a loss less likely",
			Quote: "Sentinel + Redis distributed system does not guarantee that acknowledged writes are retained during failures, " +
				"since Redis uses asynchronous replication.",
		})
	case replicated:
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: fmt.Sprintf("wait=%d", d.config.wait), Source: "https://redis.io/docs/latest/commands/wait/", Cure: "a database with consensus, if no loss is acceptable",
			Quote: "WAIT does not make Redis a strongly consistent store",
		})
	}
	value := func(name string) string { // without the remark
		text, _, _ := strings.Cut(info.Setting(name), ":")
		return text
	}
	if value("appendonly") == "no" {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "appendonly=no", Source: manual + "persistence/", Cure: "appendonly=yes",
			Quote: "RDB is NOT good if you need to minimize the chance of data loss in case Redis stops working",
		})
	} else if fsync := value("appendfsync"); fsync == "everysec" || fsync == "no" {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "appendfsync=" + fsync, Source: manual + "persistence/", Cure: "appendfsync=always",
			Quote: "you may lose 1 second of data if there is a disaster",
		})
	}
}
