#!/bin/sh
# Shows two faults of InfiniSQL 0.1.2-alpha, without Stroppy but for the server, which has just
# been started by
#
#   stroppy cluster up 'infinisql:1?procedures=DIR'
#
# and whose address this takes:
#
#   scripts/infinisql-shows-faults.sh URL
#
# First psql reads a row and then updates it in one transaction, which commits. Then the procedure
# PgbenchNoinsert adds 10 to three rows, before and after one of its statements is compiled a
# second time. The exit code is 1 where the update was lost or that statement did its work twice,
# 0 where neither was so, 2 where the URL is not one of such a server, and 3 where that cannot be
# said. It needs python3 and psql.
set -eu
exec python3 - "$@" <<'END'
import os
import socket
import struct
import subprocess
import sys
import time
import urllib.parse


def unable(kind, error, trace):
    sys.stdout.flush()
    print("it could not be tried: %s: %s" % (kind.__name__, error), file=sys.stderr, flush=True)
    os._exit(3)


sys.excepthook = unable
if len(sys.argv) != 2:
    print("name the URL of the server alone", file=sys.stderr)
    sys.exit(2)
url = urllib.parse.urlsplit(sys.argv[1])
query = dict(urllib.parse.parse_qsl(url.query))
if not url.hostname or not url.port or "procedures" not in query:
    print("name the URL that stroppy cluster up 'infinisql:1?procedures=DIR' prints, with its port and procedures=DIR", file=sys.stderr)
    sys.exit(2)
domain = url.path.strip("/")


def sql(*statements):
    """Sends statements one by one in one session, and returns the lines that psql prints."""
    env = dict(os.environ, PGPASSWORD=url.password, PGSSLMODE="disable", PGGSSENCMODE="disable", PGCONNECT_TIMEOUT="5")
    args = ["psql", "-XAt", "-h", url.hostname, "-p", str(url.port), "-U", url.username, "-d", domain]
    done = subprocess.run(args + [part for s in statements for part in ("-c", s)], env=env, capture_output=True, text=True, timeout=30)
    if done.stderr:
        print(done.stderr.strip())
    return done.stdout.split("\n")[:-1]


def read(n):
    return int(sql("SELECT n FROM %s WHERE id = %d" % (table, n))[0])


def short(text):
    """The head of a text of at most 255 bytes in msgpack."""
    return bytes([0xA0 + len(text)]) if len(text) < 32 else bytes([0xD9, len(text)])


class Admin:
    """The administration port: lengths in eight bytes, and msgpack arrays of texts."""

    def __init__(self):
        self.conn = socket.create_connection((url.hostname, int(query.get("admin_port", 11521))), timeout=10)
        self.call("login", domain, url.username, url.password)

    def take(self, n):
        taken = b""
        while len(taken) < n:
            more = self.conn.recv(n - len(taken))
            if not more:
                print("the server ended the connection to its administration port")
                sys.exit(3)
            taken += more
        return taken

    def call(self, operation, *args):
        packed = bytes([0x90 + len(args)]) + b"".join(short(a) + a.encode() for a in args)
        name = operation.encode()
        self.conn.sendall(struct.pack(">Q", 1 + len(name) + len(packed)) + bytes([len(name)]) + name + packed)
        length, status = struct.unpack(">QQ", self.take(16))
        said = self.take(length - 16)
        if status != 0:
            print("%s %s: refused" % (operation, args[:1]))
            sys.exit(3)
        return said


admin = Admin()
table = "fault%d" % os.getpid()
number = admin.call("createtable", table)[2:].decode()  # an array of one short text
admin.call("addcolumn", number, "int", "0", "id", "uniquenotnull")
admin.call("addcolumn", number, "int", "0", "n", "none")
for n in 1, 2, 3:
    sql("INSERT INTO %s VALUES (%d, 100)" % (table, n))
update = "UPDATE %s SET n = n + 10 WHERE id = 1" % table
sql("BEGIN", update, "COMMIT")
print("a transaction adds 10 to 100: it is", read(1))
said = sql("BEGIN", "SELECT n FROM %s WHERE id = 1" % table, update, "COMMIT")
got = read(1)
print("one that has read the row before adds 10: the server said %s, and it is %d" % (", ".join(said), got))
lost = got == 110 and said[-1] == "COMMIT"

statements = {
    "pgbench_updateaccounts": "UPDATE %s SET n = n + :0 WHERE id = :1" % table,
    "pgbench_selectaccounts": "SELECT n FROM %s WHERE id = :0" % table,
}
statements["pgbench_updatetellers"] = statements["pgbench_updatebranches"] = statements["pgbench_updateaccounts"]
for name, statement in statements.items():
    admin.call("compile", name, statement)
admin.call("loadprocedure", query["procedures"] + "/PgbenchNoinsertProc.so", "PgbenchNoinsert")
time.sleep(1)  # the server answers before it has loaded it


def called():
    """Calls the procedure, which adds 10 to rows 1, 2 and 3, and returns what was added to each."""
    before = [read(n) for n in (1, 2, 3)]
    sql("SELECT PgbenchNoinsert (10, 1, 2, 3)")
    return [read(n) - was for n, was in zip((1, 2, 3), before)]


once = called()
print("the procedure adds", once)
if once != [10, 10, 10]:
    sys.exit(3)
admin.call("compile", "pgbench_updatetellers", statements["pgbench_updatetellers"])
twice = called()
print("after the statement of the second row was compiled once more it adds", twice)
sys.exit(1 if lost or twice != [10, 10, 10] else 0)
END
