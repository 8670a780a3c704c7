#!/bin/sh
# Tests the project with real database servers, which the tests start themselves.
#
#   scripts/test.sh            what CI runs: installs missing packages, then runs the linters, all
#                              tests, and the tests of concurrent code under the race detector
#   scripts/test.sh quick      gofmt, go vet and the short tests; installs nothing
#   scripts/test.sh race       the short tests of concurrent code under the race detector
#   scripts/test.sh lint       gofmt, go vet, staticcheck and govulncheck
#   scripts/test.sh seeds      seeded runs with random faults, whose table is docs/tables/seeds.md, then the
#                              tests with all cells, faults and seeds; arguments go to tools/seeds
#   scripts/test.sh verified   everything, then writes the table of verified databases
#   scripts/test.sh kubernetes the tests in pods, on a node that it builds; as root
#   scripts/test.sh versions   the matrix on every server version that scripts/versions.sh can fetch
#                              or STROPPY_TEST_WHOLE_VERSIONS names; writes the table of versions
#
# Further arguments go to go test, such as -run TestName. The tests decide by -short and by the
# variables STROPPY_TEST_* below whether they run. At the end the script lists the tests that
# needed a second attempt, which are bugs, and the engines that were skipped.
set -eu
cd "$(dirname "$0")/.."
command -v go >/dev/null || { echo "test.sh: install Go 1.26 or newer: go is not on PATH" >&2; exit 3; }

STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOTESTSUM=gotest.tools/gotestsum@v1.13.0

# The packages with concurrent code, the slowest first.
concurrent="./internal/dbtest ./internal/workload/... ./internal/history ./internal/stats ./internal/db/...
	./internal/workers ./internal/nemesis ./internal/cluster ./internal/cluster/host ./internal/cluster/netem
	./internal/cluster/wait ./internal/run ./internal/live ./internal/load ./internal/resource"
# Of these, the packages whose tests are all short: in the full tier they run under the race detector alone,
# except for the tests that call tier.SkipUnderRace.
short="db db/address db/cockroach db/mysql db/noop db/optimistic db/pgwire db/postgres db/sqlite db/wire workers nemesis
	run live load resource workload/bank workload/dataset workload/events workload/kv workload/recording
	workload/sampling workload/tpcb"
# Packages that wait for servers come before those that compute, so that no processor is idle at the end.
slowest="./internal/dbtest ./internal/cli ./internal/cluster/postgres/patroni ./internal ./internal/cluster/redis
	./internal/cluster/mysql ./internal/cluster/..."

# Modules of their own beside the program's.
modules="tools/bench tools/dist tools/chart"

# Less garbage collection in bounded memory, no C compiler, and no paths or symbols in test binaries.
export GOGC="${GOGC-400}" GOMEMLIMIT="${GOMEMLIMIT-2GiB}" CGO_ENABLED=0 GOFLAGS="${GOFLAGS-} -trimpath -ldflags=-s"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0 reruns=0

# tests runs go test on the packages in $1 with the other arguments, and sets $status if a test fails.
tests() {
	packages=$1
	shift
	log=$(mktemp "$scratch/log.XXXXXX")
	go run "$GOTESTSUM" --format pkgname --format-hide-empty-pkg --hide-summary=skipped --jsonfile "$log" \
		--rerun-fails="$reruns" --rerun-fails-max-failures=12 --rerun-fails-abort-on-data-race \
		--rerun-fails-report "$log.again" --packages "$packages" -- -vet=off -timeout 25m "$@" || status=1
}

# with_c allows C, and sets $tags for dqlite if its headers are there.
with_c() {
	tags=
	[ ! -e /usr/include/dqlite.h ] || [ ! -e /usr/include/raft.h ] || tags='dqlite libsqlite3'
	export CGO_ENABLED=1 CGO_LDFLAGS_ALLOW=-Wl,-z,now
}

# watched runs tests under the race detector, which does not watch SQLite's own code, because that
# code is translated from C.
watched() {
	packages=$1
	shift
	command -v gcc >/dev/null || { echo "skipped engine: race detector: install the Debian package gcc"; return 0; }
	with_c
	tests "$packages" -race -tags "$tags" -count 1 -p 3 -parallel 4 -gcflags='modernc.org/...=-d=checkptr=0' \
		-gcflags='modernc.org/sqlite/lib=-d=checkptr=0 -race=false' "$@"
	export CGO_ENABLED=0
}

race() {
	echo "== tests of concurrent code under the race detector"
	watched "$concurrent" -short "$@"
}

# each_module runs a command in the folder of each module whose dependencies can be downloaded.
each_module() {
	for module in $modules; do
		if go -C "$module" mod download 2>"$scratch/download"; then
			(cd "$module" && "$@") || return 1
		else
			echo "skipped engine: $module: its dependencies cannot be downloaded: $(tail -n 1 "$scratch/download")"
		fi
	done
}

vet() {
	echo "== gofmt and go vet"
	unformatted=$(gofmt -l cmd internal tools)
	[ -z "$unformatted" ] || { echo "gofmt would change: $unformatted" >&2; exit 1; }
	go vet ./...
	go -C tools/bench vet ./...
}

lint() {
	vet
	echo "== staticcheck"
	go run "$STATICCHECK" ./...
	each_module sh -c "go vet ./... && go run $STATICCHECK ./..."
	echo "== govulncheck"
	# The scan of one package's modules shows whether the data can be reached, before all packages are loaded.
	go run "$GOVULNCHECK" -C cmd/stroppy -scan module >"$scratch/reachable" 2>&1 || true
	if grep -q 'fetching vulnerabilities' "$scratch/reachable"; then
		echo "skipped: govulncheck cannot reach its data"
	else
		go run "$GOVULNCHECK" ./...
	fi
}

install() {
	./scripts/install.sh gcc:gcc initdb:postgresql etcd:etcd-server patroni:patroni redis-server:redis-server \
		/usr/lib/python3/dist-packages/etcd:python3-etcd mariadbd:mariadb-server pgbouncer:pgbouncer rsync:rsync \
		prometheus:prometheus chromium:chromium /usr/sbin/sshd:openssh-server /usr/lib/galera/libgalera_smm.so:galera-4 \
		'/usr/lib/*/faketime/libfaketimeMT.so.1:faketime' /usr/include/dqlite.h:libdqlite-dev \
		/usr/include/raft.h:libraft-dev /usr/include/uv.h:libuv1-dev /usr/include/sqlite3.h:libsqlite3-dev
}

# site builds the documents, in which a dead link is an error.
site() {
	code=0
	./tools/site/build.sh || code=$?
	[ $code -ne 3 ] || { echo "skipped engine: documentation site: its generator cannot be installed"; return 0; }
	return $code
}

# versions fetches the named servers, or all, and kubernetes builds an API server ("control") or a node.
# Tests that need one are skipped if that fails.
versions() { if STROPPY_TEST_VERSIONS=$(./scripts/versions.sh "$@"); then export STROPPY_TEST_VERSIONS; else unset STROPPY_TEST_VERSIONS; fi; }
kubernetes() { if STROPPY_TEST_KUBERNETES=$(./scripts/kubernetes.sh "$1"); then export STROPPY_TEST_KUBERNETES; else unset STROPPY_TEST_KUBERNETES; fi; }

full() {
	install
	# A part of the matrix runs on these; internal/dbtest/versions_test.go has the same list.
	versions postgres-14.0.0 postgres-18.6.0 mariadb-10.2.11 mariadb-11.8 mysql-9.7 etcd-3.7.3 redis-8.0 valkey-8.1 valkey-9.1
	kubernetes control
	lint
	echo "== all tests"
	reruns=2
	export STROPPY_TEST_DOCUMENTS="${STROPPY_TEST_DOCUMENTS-on}"
	if [ $# -gt 0 ]; then
		tests "$slowest ./..." -count 1 -p 5 -parallel 3 "$@"
		return 0
	fi
	all=$(go list ./... | grep -v -x -F "$(for p in $short; do echo "stroppy/internal/$p"; done)")
	tests "$slowest $all" -count 1 -p 5 -parallel 3
	# These run beside the race detector's tests, which leave one processor idle.
	each_module go test -vet=off -count 1 ./... >"$scratch/modules" 2>&1 &
	background=$!
	(watched "./internal/cluster/dqlite ./internal/dbtest" -run 'TestSingleNodeRestarts|TestClusterKeepsPaymentsUnderAllFaults|TestMatrix/^dqlite$'; exit $status) >"$scratch/dqlite" 2>&1 &
	dqlite=$!
	site >"$scratch/site" 2>&1 &
	site=$!
	race
	unwatched=$(awk '/^func Test/ { split($2, name, "("); test = name[1] } /tier\.SkipUnderRace\(/ { print test }' \
		$(git ls-files 'internal/*_test.go') | sort -u | paste -s -d '|' -)
	tests "$(for p in $short; do echo "./internal/$p"; done)" -count 1 -run "^($unwatched)\$"
	wait $background || status=1
	wait $dqlite || status=1
	wait $site || status=1
	echo "== documentation site"
	cat "$scratch/site"
	echo "== tests of dqlite, in a program with C"
	cat "$scratch/dqlite"
	echo "== tests of what makes releases, of what is deployed, and of the benchmarks"
	cat "$scratch/modules"
}

tier=full
case ${1-} in quick | race | lint | seeds | verified | kubernetes | versions) tier=$1; shift ;; esac
case $tier in
full) full "$@" ;;
quick) vet; tests "./internal/cli ./internal/dbtest ./..." -short -p 3 "$@" ;;
race) race "$@" ;;
lint) lint; exit ;;
seeds)
	install
	versions mysql-9.7
	go build -o "$scratch/stroppy" ./cmd/stroppy
	mysql=
	[ -z "${STROPPY_TEST_VERSIONS-}" ] || mysql="-mysql=$STROPPY_TEST_VERSIONS/mysql-9.7/bin"
	go run ./tools/seeds -stroppy "$scratch/stroppy" ${mysql:+"$mysql"} "$@" || status=1
	export STROPPY_TEST_FAULTS=all STROPPY_TEST_ROUNDS=1 STROPPY_TEST_DOCUMENTS=seeds
	tests "./internal ./internal/dbtest ./internal/check/... ./internal/script ./internal/cluster/mysql" -count 1 -timeout 2h
	tests ./internal/cli -count 1 -run '^TestNothingLeft$'
	;;
verified)
	export STROPPY_TEST_FAULTS=all STROPPY_TEST_DOCUMENTS=all
	full "$@"
	;;
kubernetes)
	./scripts/install.sh gcc:gcc ip:iproute2 containerd:containerd runc:runc \
		/usr/lib/cni/bridge:containernetworking-plugins ipset:ipset iptables:iptables stress-ng:stress-ng
	kubernetes node
	export STROPPY_TEST_KUBERNETES_NODE=on
	tests ./internal/cluster/kubernetes/... -count 1 -p 1 "$@"
	[ $# -gt 0 ] || set -- -run 'Kubernetes|Chart'
	tests ./internal/cli -count 1 "$@"
	;;
versions)
	install
	whole=${STROPPY_TEST_WHOLE_VERSIONS-all}
	# shellcheck disable=SC2046 # a list
	versions $(echo "$whole" | tr , '\n' | grep -v -e '-installed$' -e '^all$')
	export STROPPY_TEST_WHOLE_VERSIONS="$whole" STROPPY_TEST_DOCUMENTS=versions
	reruns=2
	with_c
	tests ./internal/dbtest -tags "$tags" -count 1 -run '^TestVersions$' -timeout 3h "$@"
	tests ./internal -count 1 -run '^TestDocuments$' "$@"
	;;
esac

echo "== engines skipped"
# In JSON, a script that is only printed has > before such a line.
skipped=$(cat "$scratch"/log.?????? 2>/dev/null | grep 'skipped engine: ' | grep -v 'u003e' | sed 's/.*skipped engine: //; s/[\"].*//' | sort | uniq -c)
echo "${skipped:-none}"
echo "== tests that ran again because they failed"
cat "$scratch"/*.again 2>/dev/null | grep . || echo none
case $tier in verified | versions) go run ./tools/verified "$scratch"/log.?????? ;; esac
exit $status
