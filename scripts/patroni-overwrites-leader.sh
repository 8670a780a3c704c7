#!/bin/sh
# Shows with Patroni's own code and an etcd, and nothing else, whether a leader that was
# stopped for longer than its ttl overwrites the leader key of the node that was promoted
# meanwhile. Patroni 3.0.2 does: exit code 1. Version 3.1.0 does not: exit code 0. It needs
# the Debian packages patroni, python3-etcd and etcd-server. PYTHONPATH may name another
# version.
set -eu
client=http://127.0.0.1:23790
folder=$(mktemp -d)
etcd --data-dir "$folder" --listen-client-urls $client --advertise-client-urls $client \
	--listen-peer-urls http://127.0.0.1:23791 >"$folder.log" 2>&1 &
etcd=$!
trap 'kill $etcd; wait $etcd 2>/dev/null || true; rm -rf "$folder" "$folder.log"' EXIT
sleep 2
/usr/bin/python3 - <<'END'
import sys
import time
from patroni.dcs.etcd3 import Etcd3
from patroni.version import __version__


def node(name):
    # As patronictl, without the thread that keeps a copy of the keys: each look is a read.
    dcs = Etcd3({"hosts": ["127.0.0.1:23790"], "scope": "overwrite", "namespace": "/service/", "name": name,
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
sys.exit(after != before)
END
