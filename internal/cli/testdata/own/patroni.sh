#!/bin/sh
# Three PostgreSQL servers under Patroni and their etcd, each in a network namespace, as somebody runs them without
# stroppy. The file DIR/net has a number from 1 to 254, which is a part of all names and addresses.
# Usage: patroni.sh DIR up|ready|down|kill|stop|start|pause|resume|isolate|join|isolated|switchover [NODE]
# The servers end with the process that has called up.
set -eu
dir=$1 what=$2 node=${3:-}
net=$(cat "$dir/net")
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
all="etcd pg0 pg1 pg2"

space() { echo "own$net-$1"; }
address() {
	case $1 in
	etcd) echo "10.213.$net.10" ;;
	*) echo "10.213.$net.2${1#pg}" ;;
	esac
}
inside() {
	of=$1
	shift
	ip netns exec "$(space "$of")" "$@"
}
pids() { ip netns pids "$(space "$1")"; }
background() {
	of=$1
	shift
	ip netns exec "$(space "$of")" setsid setpriv --reuid postgres --regid postgres --init-groups -- "$@" >>"$dir/$of.log" 2>&1 </dev/null &
}
others() { for n in $all; do [ "$n" = "$1" ] || address "$n"; done; }
start() { background "$1" patroni "$dir/$1.yml"; }

configure() {
	cat >"$dir/$1.yml" <<END
scope: own
name: $1
restapi: {listen: "$(address "$1"):8008", connect_address: "$(address "$1"):8008"}
etcd3: {hosts: "$(address etcd):2379"}
bootstrap:
  dcs:
    ttl: 3
    loop_wait: 1
    retry_timeout: 2
    primary_start_timeout: 0
    synchronous_mode: true
    synchronous_node_count: 2
    postgresql:
      use_pg_rewind: true
      use_slots: true
      remove_data_directory_on_rewind_failure: true
      remove_data_directory_on_diverged_timelines: true
      parameters: {max_connections: 200, wal_receiver_timeout: 3s, wal_sender_timeout: 3s, wal_log_hints: "on", dynamic_shared_memory_type: mmap}
  initdb: [{encoding: UTF8}, {locale: C}, {auth: trust}, data-checksums, no-sync]
postgresql:
  listen: "$(address "$1"):5432"
  connect_address: "$(address "$1"):5432"
  data_dir: $dir/$1
  bin_dir: $bin
  pgpass: $dir/$1.pgpass
  parameters: {unix_socket_directories: "", wal_retrieve_retry_interval: 100ms}
  pg_hba: [host all all all trust, host replication all all trust]
  authentication: {superuser: {username: postgres}, replication: {username: postgres}, rewind: {username: postgres}}
  basebackup: [{checkpoint: fast}, no-sync]
END
}

case $what in
until)
	while kill -0 "$node" 2>/dev/null; do sleep 1; done
	[ ! -d "$dir" ] || exec "$0" "$dir" down
	;;
up)
	setsid "$0" "$dir" until "$PPID" >/dev/null 2>&1 </dev/null &
	ip link add "own$net" type bridge
	ip address add "10.213.$net.1/24" dev "own$net"
	ip link set "own$net" up
	for n in $all; do
		ip netns add "$(space "$n")"
		ip link add "o$net-$n" type veth peer name eth0 netns "$(space "$n")"
		ip link set "o$net-$n" master "own$net" up
		inside "$n" ip address add "$(address "$n")/24" dev eth0
		inside "$n" ip link set eth0 up
		inside "$n" ip link set lo up
	done
	chown postgres "$dir"
	background etcd etcd --name etcd --data-dir "$dir/etcd" --unsafe-no-fsync --log-level warn \
		--listen-client-urls "http://$(address etcd):2379" --advertise-client-urls "http://$(address etcd):2379" \
		--listen-peer-urls "http://$(address etcd):2380" --initial-advertise-peer-urls "http://$(address etcd):2380" \
		--initial-cluster "etcd=http://$(address etcd):2380"
	for n in pg0 pg1 pg2; do
		configure "$n"
		start "$n"
	done
	;;
ready) # until a server leads and two follow it
	for i in $(seq 1200); do
		for n in pg0 pg1 pg2; do
			follow=$(PGCONNECT_TIMEOUT=1 "$bin/psql" -h "$(address "$n")" -U postgres -Atc \
				"SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'" 2>&1) || true
			[ "$follow" != 2 ] || exit 0
		done
		sleep 0.1
	done
	echo "no server has two that follow it: $follow" >&2
	exit 1
	;;
down)
	for n in $all; do pids "$n" | xargs -r kill -CONT 2>/dev/null || true; done
	for n in pg0 pg1 pg2; do # a postmaster that ends by itself leaves no shared memory
		[ ! -f "$dir/$n/postmaster.pid" ] || kill -QUIT "$(head -1 "$dir/$n/postmaster.pid")" 2>/dev/null || true
		for p in $(pids "$n"); do cat "/proc/$p/cmdline" 2>/dev/null | tr '\0' ' ' | grep -q "$n.yml" && kill -9 "$p" || true; done
	done
	sleep 1
	for n in $all; do
		pids "$n" | xargs -r kill -9 2>/dev/null || true
		ip netns del "$(space "$n")" 2>/dev/null || true
	done
	ip link del "own$net" 2>/dev/null || true
	;;
kill) pids "$node" | xargs kill -9 ;;
stop)
	for p in $(pids "$node"); do
		cat "/proc/$p/cmdline" 2>/dev/null | tr '\0' ' ' | grep -q "patroni.*$node.yml" && kill -TERM "$p" || true
	done
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		[ -n "$(pids "$node")" ] || exit 0
		sleep 0.5
	done
	pids "$node" | xargs -r kill -9
	;;
start) start "$node" ;;
pause) pids "$node" | xargs kill -STOP ;;
resume) pids "$node" | xargs kill -CONT ;;
isolate) for a in $(others "$node"); do inside "$node" ip route add blackhole "$a/32"; done ;;
join) for a in $(others "$node"); do inside "$node" ip route del blackhole "$a/32"; done ;;
isolated) ! inside "$node" timeout 1 bash -c "</dev/tcp/$(address etcd)/2379" ;;
switchover) # patronictl ends with exit code 0 if Patroni refuses, as it does while no standby is synchronous
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		said=$(patronictl -c "$dir/pg0.yml" switchover own ${node:+--candidate "$node"} --force 2>&1) || true
		case $said in *"Successfully switched over"*) exit 0 ;; esac
		sleep 1
	done
	echo "$said" >&2
	exit 1
	;;
*) echo "$what is no command" >&2 && exit 2 ;;
esac
