#!/bin/sh
# Shows without Stroppy that PostgreSQL's serializable level can miss an anomaly of a
# transaction that only reads (Fekete, O'Neil and O'Neil, "A Read-Only Transaction Anomaly
# Under Snapshot Isolation", 2004). It starts a server of its own and plays the same three
# transactions twice. The second time gdb holds T3 where others see already what it wrote and
# it has not come to ReleasePredicateLocks (src/backend/storage/lmgr/predicate.c), where a
# busy processor may leave it by chance. The exit code is 1 where the anomaly was missed, and 0
# where the server refused it both times.
#
#   scripts/postgres-misses-anomaly.sh [BIN]   the folder of initdb, postgres and pg_ctl
#
# It needs the Debian packages postgresql, python3-psycopg2 and gdb.
set -eu

bin=${1-$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)}
folder=$(mktemp -d)
server() { "$@" >/dev/null; }
if [ "$(id -u)" = 0 ]; then # the server refuses root
	chown postgres "$folder"
	server() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@" >/dev/null; }
fi
trap 'server "$bin/pg_ctl" -D "$folder/data" -m immediate stop || true; rm -rf "$folder"' EXIT
cd "$folder"
server "$bin/initdb" -D "$folder/data" -A trust -U stroppy
server "$bin/pg_ctl" -D "$folder/data" -o "-k $folder -c listen_addresses=" -l "$folder/log" -w start
"$bin/postgres" --version
/usr/bin/python3 - "$folder" <<'END'
import subprocess
import sys
import threading
import time
import psycopg2


def session():
    conn = psycopg2.connect(host=sys.argv[1], user="stroppy", dbname="postgres")
    conn.autocommit = True
    return conn.cursor()


def read(cursor, account):
    cursor.execute("SELECT n FROM account WHERE id = %s", (account,))
    return cursor.fetchone()[0]


def until(seen, what):
    limit = time.time() + 20
    while not seen():
        if time.time() > limit:
            sys.exit("not seen within 20 s: " + what)
        time.sleep(0.01)


def hold(cursor):
    """Has gdb stop the session at its next commit for five seconds."""
    cursor.execute("SELECT pg_backend_pid()")
    gdb = subprocess.Popen(["gdb", "-q", "-batch", "-p", str(cursor.fetchone()[0]), "-ex", "break ReleasePredicateLocks",
                            "-ex", "continue", "-ex", "shell sleep 5", "-ex", "delete", "-ex", "detach"],
                           stdout=open("gdb.out", "w"), stderr=subprocess.STDOUT)
    until(lambda: "Breakpoint 1 at" in open("gdb.out").read(), "gdb's breakpoint")
    time.sleep(1)  # it goes on
    return gdb


def missed(held):
    t1, t2, t3, other = session(), session(), session(), session()
    other.execute("DROP TABLE IF EXISTS account; CREATE TABLE account (id text PRIMARY KEY, n int);"
                  "INSERT INTO account VALUES ('x', 0), ('y', 0)")
    t2.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    print("  T2 reads x %d, y %d" % (read(t2, "x"), read(t2, "y")))
    t3.execute("BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE account SET n = n + 20 WHERE id = 'y'")
    gdb = hold(t3) if held else None
    commit = threading.Thread(target=t3.execute, args=("COMMIT",))
    commit.start()
    until(lambda: read(other, "y") == 20, "what T3 wrote")
    if not held:
        commit.join()
    print("  T3 adds 20 to y, and others see it: its COMMIT", "is under way" if commit.is_alive() else "has answered")
    try:
        t2.execute("UPDATE account SET n = n - 11 WHERE id = 'x'")
        t1.execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY")
        print("  T1 reads y %d" % read(t1, "y"))
        t2.execute("COMMIT")
        print("  T2 takes 11 off x and commits")
        print("  T1 reads x %d" % read(t1, "x"))
        t1.execute("COMMIT")
        print("  T1 commits. Not serializable: T2 before T3, whose y it did not see; T3 before T1,")
        print("  which saw it; T1 before T2, whose x it did not see")
        return True
    except psycopg2.Error as e:
        print("  refused: %s %s" % (e.pgcode, str(e).split("\n")[0]))
        return False
    finally:
        commit.join()
        if gdb:
            gdb.wait()


print("nothing is held:")
first = missed(False)
print("T3 is held before it releases its predicate locks:")
sys.exit(1 if missed(True) or first else 0)
END
