#!/bin/sh
# Shows with Patroni's own code and an etcd, and nothing else, whether a leader that was
# stopped for longer than its ttl overwrites the leader key of the node that was promoted
# meanwhile. Patroni 3.0.2 does: exit code 1. Version 3.1.0 does not: exit code 0. Where that
# cannot be said it is 3. It needs the Debian packages patroni, python3-etcd and etcd-server.
# PYTHONPATH may name another version.
set -eu
folder=$(mktemp -d)
etcd=
trap 'code=$?; [ -e "$folder/judged" ] || code=3; [ ! "$etcd" ] || { kill $etcd; wait $etcd; } 2>/dev/null || true; rm -rf "$folder"; exit $code' EXIT
trap 'exit 3' INT TERM
# Two ports that nobody has.
ports=$(/usr/bin/python3 -c 'import socket
both = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in both))')
client=http://127.0.0.1:${ports% *}
etcd --data-dir "$folder/data" --listen-client-urls "$client" --advertise-client-urls "$client" \
	--listen-peer-urls "http://127.0.0.1:${ports#* }" >"$folder/log" 2>&1 &
etcd=$!
/usr/bin/python3 - "${ports% *}" "$folder/judged" <<'END'
import socket
import sys
import time
from patroni.dcs.etcd3 import Etcd3
from patroni.version import __version__

for tries in range(100):  # until etcd listens
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=1).close()
        break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit("etcd does not listen after 10 s")


def node(name):
    # As patronictl, without the thread that keeps a copy of the keys: each look is a read.
    dcs = Etcd3({"hosts": ["127.0.0.1:" + sys.argv[1]], "scope": "overwrite", "namespace": "/service/", "name": name,
                 "ttl": 3, "loop_wait": 1, "retry_timeout": 2, "patronictl": True})
    dcs._ctl = True
    dcs.create_lease()
    return dcs


old, new = node("n0"), node("n1")
if not old.attempt_to_acquire_leader():
    sys.exit("n0 did not get the leader key")
seen = old.get_cluster()  # n0 leads
time.sleep(6)  # n0 is stopped: its lease of 3 s ends
new.get_cluster()
if not new.attempt_to_acquire_leader():
    sys.exit("n1 did not get the leader key, which had expired")
before = new.get_cluster().leader.name
if [int(part) for part in __version__.split(".")[:2]] < [3, 1]:
    led = old._update_leader()
else:
    led = old._update_leader(seen.leader)
after = new.get_cluster().leader.name
print("Patroni %s: the leader key is of %s; n0 goes on and updates its lock: %s; the key is of %s" % (__version__, before, led, after))
open(sys.argv[2], "w").close()
sys.exit(after != before)
END
