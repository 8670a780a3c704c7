#!/bin/sh
# Shows without Stroppy that Galera can commit a part of a transaction whose statements come in
# one packet, BEGIN and COMMIT among them, and acknowledge one of which nothing is there. It
# starts three nodes of MariaDB and takes 1 from one account for another, while another session
# adds 100 to the first: in one packet with the other session on another node, the same with
# nothing but COMMIT left to do, one statement at a time, and in one packet with the other session
# on the same node. DO SLEEP keeps the transaction open until the other session comes; it is cut
# short then. Where a number is given, six clients also transfer money between four accounts
# without such a rest: in packets over all nodes, in packets on one node, and one statement at a
# time over all nodes. The exit code is 1 where a packet over several nodes was neither whole and
# acknowledged nor refused and not there, 0 where each was, and 3 where that cannot be said, or
# where it was so in one of the other ways too.
#
#   scripts/galera-halves-packet.sh [PACKETS [FLAG...]]
#
# PACKETS are those of each client, 0 if it is not given; FLAG is one of the servers', such as
# --wsrep-retry-autocommit=0. It needs the Debian packages mariadb-server, galera-4 and rsync.
set -eu

packets=${1-0}
[ $# = 0 ] || shift
folder=$(mktemp -d)
pids= judged=
# What fails before all was tried, shows nothing.
trap 'code=$?; [ $judged ] || code=3; kill -9 $pids 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"; exit $code' EXIT
trap 'exit 3' INT TERM
as=
if [ "$(id -u)" = 0 ]; then # the server refuses root
	chown mysql "$folder"
	as="setpriv --reuid=mysql --regid=mysql --clear-groups"
fi

# The first of twelve ports in a row that nobody has, below those that the kernel gives to clients.
ports=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v seed=$$ '
	{ sub(".*:", "", $2); taken[$2] }
	END {
		srand(seed)
		for (i = 0; i < 1000; i++) {
			first = 20000 + 12 * int(rand() * 1000)
			for (n = 0; n < 12 && !(sprintf("%04X", first + n) in taken); n++);
			if (n == 12) { print first; exit }
		}
	}')
[ "$ports" ] || { echo "no twelve ports in a row are free: end what listens on those from 20000 to 32000" >&2; exit 3; }

client() { # node, and what is asked
	socket=$folder/$1.sock
	shift
	mariadb --no-defaults --user=root --socket="$socket" --batch --skip-column-names "$@"
}

# start starts a node and waits until it has the data of the others.
start() { # node, and further flags
	node=$1
	shift
	$as mkdir "$folder/$node.tmp"
	address=127.0.0.1:$((ports + node))
	$as mariadbd --no-defaults --datadir="$folder/$node" --tmpdir="$folder/$node.tmp" --socket="$folder/$node.sock" \
		--pid-file="$folder/$node.pid" --bind-address=127.0.0.1 --port=$((ports + 3 + node)) --innodb-log-file-size=16M \
		--binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON --wsrep-provider=/usr/lib/galera/libgalera_smm.so \
		--wsrep-cluster-address=gcomm://127.0.0.1:$ports,127.0.0.1:$((ports + 1)),127.0.0.1:$((ports + 2)) --wsrep-node-address=$address \
		--wsrep-sst-method=rsync --wsrep-sst-receive-address=127.0.0.1:$((ports + 6 + node)) \
		--wsrep-provider-options="gmcast.listen_addr=tcp://$address;ist.recv_addr=127.0.0.1:$((ports + 9 + node));gcache.size=64M" \
		"$@" >"$folder/$node.log" 2>&1 &
	pid=$!
	pids="$pids $pid"
	tries=0
	until client "$node" -e "SHOW STATUS LIKE 'wsrep_local_state_comment'" 2>/dev/null | grep -q Synced; do
		if [ $((tries += 1)) = 300 ] || ! kill -0 $pid 2>/dev/null; then
			tail -n 5 "$folder/$node.log" >&2
			exit 3
		fi
		sleep 0.2
	done
}

# play has a session on node 0 transfer 1 from account 1 to account 2 and another add 100 to
# account 1, and counts in $shown or $others where the first is neither whole nor refused.
play() { # what it is, whether it should show something, the other session's node, and the file of the statements
	client 0 -e "CREATE DATABASE IF NOT EXISTS test; USE test; DROP TABLE IF EXISTS account
		; CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL) ENGINE=InnoDB; INSERT INTO account VALUES (1, 0), (2, 0)"
	client "$3" -e "SET wsrep_sync_wait = 1; SELECT * FROM test.account" >/dev/null # it has the table
	client 0 test <"$4" >"$folder/said" 2>&1 &
	one=$!
	tries=0
	until [ "$(client 0 -e "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'DO SLEEP%'")" != 0 ]; do
		[ $((tries += 1)) != 100 ] || { cat "$folder/said" >&2; exit 3; }
		sleep 0.05
	done
	client "$3" -e 'UPDATE test.account SET balance = balance + 100 WHERE id = 1'
	wait $one || true
	said=$(tail -n 1 "$folder/said" | sed 's/ at line .*//')
	balances=$(client 0 -e "SET wsrep_sync_wait = 1; SELECT GROUP_CONCAT(balance ORDER BY id SEPARATOR ' and ') FROM test.account")
	case "$said: $balances" in
	"acknowledged: 99 and 1" | "ERROR"*": 100 and 0") ;;
	*) [ "$2" = shows ] && shown=$((shown + 1)) || others=$((others + 1)) ;;
	esac
	echo "$1: $said, and the balances are $balances"
}

# transfers prints what a client sends: the statements of a transfer in one line, which is one
# packet, or each in a line of its own.
transfers() { # client, and packets or statements
	awk -v client="$1" -v n="$packets" -v way="$2" 'BEGIN {
		srand(client)
		end = way == "packets" ? "; " : ";\n"
		if (way == "packets") print "delimiter //"
		for (i = 0; i < n; i++) {
			from = 1 + int(rand() * 4)
			to = 1 + (from + int(rand() * 3)) % 4
			id = "\047" client "-" i "\047"
			printf "%s", "BEGIN" end \
				"UPDATE account SET balance = balance - 1 WHERE id = " from end "INSERT INTO ledger (id, leg) VALUES (" id ", \047debit\047)" end \
				"UPDATE account SET balance = balance + 1 WHERE id = " to end "INSERT INTO ledger (id, leg) VALUES (" id ", \047credit\047)" end \
				"COMMIT" end "SELECT " id ", \047acknowledged\047"
			print way == "packets" ? "\n//\nROLLBACK\n//" : ";"
		}
	}'
}

# send has one client carry out its transfers, and writes down which were acknowledged.
send() { # client, node, and packets or statements
	if [ "$3" = packets ]; then
		transfers "$1" packets | client "$2" --force test >"$folder/said.$1" 2>"$folder/errors.$1" || true
		return
	fi
	transfers "$1" statements >"$folder/sent.$1"
	line=1 each=7 # lines of a transfer
	: >"$folder/said.$1"
	: >"$folder/errors.$1"
	until tail -n +$line "$folder/sent.$1" | client "$2" test >>"$folder/said.$1" 2>"$folder/error.$1"; do
		cat "$folder/error.$1" >>"$folder/errors.$1"
		failed=$(sed -n 's/.* at line \([0-9]*\).*/\1/p' "$folder/error.$1" | tail -n 1)
		line=$(((line + ${failed:?"$(cat "$folder/error.$1")"} - 2) / each * each + each + 1))
	done
}

# load has all clients carry out their transfers, and says in $wrong how many are neither whole
# and acknowledged nor refused and not there.
load() { # nodes, and packets or statements
	client 0 -e "CREATE DATABASE IF NOT EXISTS test; USE test; DROP TABLE IF EXISTS account, ledger
		; CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL) ENGINE=InnoDB
		; CREATE TABLE ledger (n bigint AUTO_INCREMENT PRIMARY KEY, id varchar(20), leg varchar(6)) ENGINE=InnoDB
		; INSERT INTO account VALUES (1, 0), (2, 0), (3, 0), (4, 0)"
	clients=
	for c in 0 1 2 3 4 5; do
		send $c $((c % $1)) "$2" &
		clients="$clients $!"
	done
	for pid in $clients; do wait "$pid"; done
	client 0 -e "SET wsrep_sync_wait = 1; SELECT id, GROUP_CONCAT(leg ORDER BY leg DESC SEPARATOR '+') FROM test.ledger GROUP BY id" >"$folder/ledger"
	echo "$((6 * packets)) transfers in $2, on $1 of 3 nodes: $(cat "$folder"/errors.? | grep -c '^ERROR') errors," \
		"$(cat "$folder"/errors.? | grep -c '^ERROR 1213 ') of them 1213; the sum of all balances, which should be 0, is" \
		"$(client 0 -e 'SELECT SUM(balance) FROM test.account')"
	cat "$folder"/said.? | awk -v n="$packets" -v wrong="$folder/wrong" '
		FILENAME != "-" { legs[$1] = $2; next }
		{ said[$1] = $2 }
		END {
			for (c = 0; c < 6; c++) for (i = 0; i < n; i++) {
				id = c "-" i
				count[(id in said ? "acknowledged" : "refused") ", in the ledger: " (id in legs ? legs[id] : "nothing")]++
			}
			bad = 6 * n - count["acknowledged, in the ledger: debit+credit"] - count["refused, in the ledger: nothing"]
			for (k in count) if (count[k]) printf "%8d %s\n", count[k], k
			print bad >wrong
		}' "$folder/ledger" - | sort -k2
	wrong=$(cat "$folder/wrong")
}

# shellcheck disable=SC2086 # a command or none
$as mariadb-install-db --no-defaults --datadir="$folder/0" --auth-root-authentication-method=normal --skip-test-db >"$folder/install.log" 2>&1 ||
	{ cat "$folder/install.log" >&2; exit 3; }
$as mkdir "$folder/1" "$folder/2"
start 0 --wsrep-new-cluster "$@"
start 1 "$@"
start 2 "$@"
client 0 -e "SELECT CONCAT('MariaDB ', VERSION()), CONCAT('wsrep_retry_autocommit = ', @@wsrep_retry_autocommit); SHOW STATUS LIKE 'wsrep_provider_version'"

shown=0 others=0
debit="UPDATE account SET balance = balance - 1 WHERE id = 1" credit="UPDATE account SET balance = balance + 1 WHERE id = 2"
end="COMMIT; SELECT 'acknowledged'"
echo "BEGIN; $debit; DO SLEEP(10); $credit; $end;" >"$folder/statements"
(echo "delimiter //"; cat "$folder/statements"; echo "//") >"$folder/packet"
printf '%s\n' "delimiter //" "BEGIN; $debit; $credit; DO SLEEP(10); $end" // >"$folder/rest"
play "in one packet" shows 1 "$folder/packet"
play "in one packet, with COMMIT alone left" shows 1 "$folder/rest"
play "one statement at a time" "" 1 "$folder/statements"
play "in one packet, with the other session on the same node" "" 0 "$folder/packet"
if [ "$packets" != 0 ]; then
	load 3 packets
	shown=$((shown + wrong))
	load 1 packets
	others=$((others + wrong))
	load 3 statements
	others=$((others + wrong))
fi
judged=yes
[ "$others" = 0 ] || exit 3
[ "$shown" = 0 ] || exit 1
