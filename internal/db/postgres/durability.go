package postgres

import "stroppy/internal/db"

// manual is the address of PostgreSQL's documentation.
const manual = "https://www.postgresql.org/docs/current/"

// durability adds to an Info what PostgreSQL promises about acknowledged commits.
func durability(info *db.Info, several bool) {
	info.Durable = manual + "wal-reliability.html"
	if info.Setting("fsync") == "off" {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "fsync=off", Source: manual + "runtime-config-wal.html", Cure: "fsync=on",
			Quote: "this can result in unrecoverable data corruption in the event of a power failure or system crash",
		})
	}
	if info.Setting("synchronous_commit") == "off" {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "synchronous_commit=off", Source: manual + "wal-async-commit.html", Cure: "synchronous_commit=on",
			Quote: "the most recent transactions may be lost if the database should crash",
		})
	}
	if several && info.Setting("synchronous_standby_names") == "" {
		info.Caveats = append(info.Caveats, db.Caveat{
			Setting: "synchronous_standby_names=''", Source: manual + "warm-standby.html#SYNCHRONOUS-REPLICATION",
			Cure: "synchronous_standby_names (with Patroni: synchronous_mode and synchronous_mode_strict)",
			Quote: "If the primary server crashes then some transactions that were committed may not have been replicated " +
				"to the standby server, causing data loss.",
		})
	}
}
