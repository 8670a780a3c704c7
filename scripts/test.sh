#!/bin/sh
# Tests the project with real database servers, which the tests start themselves.
#
#   scripts/test.sh          everything, as CI runs it: installs what is missing, runs
#                            the linters and all tests, those of what is concurrent
#                            under the race detector, but for calculations in one goroutine
#   scripts/test.sh quick    between two edits: gofmt, go vet and the short tests,
#                            which install nothing and start PostgreSQL alone
#   scripts/test.sh race     the short tests of what is concurrent, under the race detector
#   scripts/test.sh lint     the linters alone
#   scripts/test.sh seeds    120 short runs with random faults over clusters that fail over,
#                            twenty on a MySQL that it fetches, and writes docs/seeds.md; then
#                            commits and clusters that meet each fault, the whole matrix, and the
#                            checkers with all seeds, of which everything takes a part.
#                            What follows goes to go run ./tools/seeds, such as -from 7 -count 1
#   scripts/test.sh verified everything, and writes what was verified on which database
#                            into README.md
#   scripts/test.sh kubernetes
#                            what runs in Kubernetes, on a node with Chaos Mesh, which it builds;
#                            as root. It changes nothing of the machine but for Debian packages
#   scripts/test.sh versions the whole matrix and a fail-over on each server that
#                            scripts/versions.sh can fetch, which are many hundred MB, or on
#                            those that STROPPY_TEST_WHOLE_VERSIONS names with commas, the same
#                            on dqlite where libdqlite-dev and libsqlite3-dev are installed, and
#                            writes the table of versions into docs/databases.md
#
# Further arguments go to go test, such as -run TestName. A server that cannot be
# had is listed at the end as skipped. Without arguments, a test that fails is run
# again at most twice; one that then passes is listed at the end as flaky, which is
# a bug to be fixed.
set -eu
cd "$(dirname "$0")/.."

# Compilers, linters and tests spend less of the processors on collecting garbage, in bounded memory.
export GOGC="${GOGC-400}" GOMEMLIMIT="${GOMEMLIMIT-2GiB}"

GOTESTSUM=gotest.tools/gotestsum@v1.13.0
STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck@v1.9.0

# The commands of the documents run for minutes, so go test alone does not run them.
export STROPPY_TEST_DOCUMENTS="${STROPPY_TEST_DOCUMENTS-on}"

tier=full verified=
case ${1-} in
verified)
	verified=yes
	export STROPPY_TEST_FAULTS=all
	shift
	;;
quick | lint | race | versions | seeds | kubernetes)
	tier=$1
	shift
	;;
esac

# What runs in several goroutines: the race detector watches its short tests, the
# servers of other tests it would only slow down. All tests of the second list are
# short, so that everything runs them under the race detector alone, but for those of
# $sequential. The longest of both come first.
racy="./internal/dbtest ./internal/workload/appends ./internal/history ./internal/stats ./internal/db/etcd ./internal/db/memory ./internal/db/redis"
watched="./internal/db/mysql ./internal/db/pgwire ./internal/workers ./internal/nemesis ./internal/cluster ./internal/run ./internal/live ./internal/load
	./internal/resource ./internal/workload/bank ./internal/workload/dataset ./internal/workload/events
	./internal/workload/kv ./internal/workload/recording ./internal/workload/sampling ./internal/workload/tpcb ./internal/db ./internal/db/address ./internal/db/dqlite ./internal/db/noop ./internal/db/optimistic
	./internal/db/postgres ./internal/db/sqlite ./internal/db/wire"

# Calculations in one goroutine, in which that detector can find nothing, runs whose code others
# run under it, and allocations, of which it makes more. Everything runs them without it, those of $watched by themselves.
sequential='^(TestFitScalingCoverage|TestCompareCoverage|TestMeanIntervalCoverage|TestNaiveIntervalFails'
sequential="$sequential|TestSteadinessFalseAlarms|TestLongestGapOfLongRuns|TestOnlyAnHourIsKept|TestKeyOrder"
sequential="$sequential|TestAppendClaims|TestCarelessDocuments|TestTPCBMutants|TestTPCBMutantsOfAdds|TestReference"
sequential="$sequential|TestKeysDoNotCollideAndInvert|TestZipfAgainstExactProbabilities|TestInterruptedCheckDirs"
sequential="$sequential|TestTailFindsDamage|TestEveryFlippedBitIsFound|TestAFlippedBitOfAnIncompleteHistoryIsFound"
sequential="$sequential|TestACutOrAlteredEndStateIsAnError|TestAnotherReaderReadsTheSame|TestBreakdown|TestCompareShowsDifference"
sequential="$sequential|TestManyClientsTakeLittleMemory|TestTransactionsAllocateNothing"
sequential="$sequential|TestAppendAllocatesNothing|TestBackIsRobust|TestNoiseIsNoPeak|TestPhysicalBounds|TestNoAllocations)\$"

command -v go >/dev/null || { echo "test.sh: install Go 1.26 or newer first: there is no go on PATH" >&2; exit 3; }

# install installs a Debian package for each program that is missing.
install() {
	missing=
	need gcc gcc
	need initdb postgresql
	need etcd etcd-server
	need patroni patroni
	[ -e /usr/lib/python3/dist-packages/etcd ] || missing="$missing python3-etcd"
	need redis-server redis-server
	need mariadbd mariadb-server
	need pgbouncer pgbouncer
	need rsync rsync
	need prometheus prometheus
	need chromium chromium
	[ -e /usr/lib/galera/libgalera_smm.so ] || missing="$missing galera-4"
	[ -e /usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1 ] || [ "$(uname -m)" != x86_64 ] || missing="$missing faketime"
	fetch
}

# fetch installs the packages of $missing.
fetch() {
	if [ -n "$missing" ]; then
		sudo=
		[ "$(id -u)" = 0 ] || sudo=sudo
		if command -v apt-get >/dev/null && { [ -z "$sudo" ] || command -v sudo >/dev/null; }; then
			echo "installing:$missing"
			# A Debian package of a server starts it; nothing here wants that.
			$sudo apt-get -qq update || echo "test.sh: the package lists could not be refreshed" >&2
			for package in $missing; do
				$sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq install -y --no-install-recommends "$package" >/dev/null ||
					echo "test.sh: $package could not be installed; what needs it is skipped" >&2
			done
		else
			echo "test.sh: not installed, so what needs it is skipped:$missing" >&2
		fi
	fi
}

# need notes the package of a program that is missing. PostgreSQL's programs are
# not on PATH in Debian.
need() { # program package
	for place in $(command -v "$1" || true) /usr/lib/postgresql/*/bin/"$1"; do
		[ ! -x "$place" ] || return 0
	done
	missing="$missing $2"
}

# versions fetches servers of other versions, those of the given names or all, and says in
# STROPPY_TEST_VERSIONS where they are. What cannot be had is skipped.
versions() {
	if STROPPY_TEST_VERSIONS=$(./scripts/versions.sh "$@"); then
		export STROPPY_TEST_VERSIONS
	else
		unset STROPPY_TEST_VERSIONS
	fi
}

# kubernetes builds an API server, or a node too, and says in STROPPY_TEST_KUBERNETES where. What
# needs it is skipped where it cannot be had.
kubernetes() { # control or node
	echo "== Kubernetes"
	if STROPPY_TEST_KUBERNETES=$(./scripts/kubernetes.sh "$1"); then
		export STROPPY_TEST_KUBERNETES
	else
		unset STROPPY_TEST_KUBERNETES
	fi
}

# releases says whether tools/dist can be built, which is a module of its own with libraries
# that nothing else needs.
releases() {
	go -C tools/dist mod download 2>"$scratch/modules" || { echo "skipped: the modules of tools/dist could not be had: $(tail -n 1 "$scratch/modules")"; return 1; }
}

# charts says the same of tools/chart, which renders the Helm chart for tests.
charts() {
	go -C tools/chart mod download 2>"$scratch/modules" || { echo "skipped: the modules of tools/chart could not be had: $(tail -n 1 "$scratch/modules")"; return 1; }
}

# lint runs what takes longer than gofmt and go vet.
lint() {
	echo "== staticcheck"
	go run "$STATICCHECK" ./...
	if releases; then
		go -C tools/dist vet ./...
		(cd tools/dist && go run "$STATICCHECK" ./...)
	fi
	go -C tools/bench vet ./...
	(cd tools/bench && go run "$STATICCHECK" ./...)
	if charts; then
		go -C tools/chart vet ./...
		(cd tools/chart && go run "$STATICCHECK" ./...)
	fi
	echo "== govulncheck"
	vulnerabilities=$scratch/vulnerabilities
	# The modules alone are asked for first, from a folder with a package: without the data, all
	# packages were loaded for nothing.
	go run "$GOVULNCHECK" -C cmd/stroppy -scan module >"$vulnerabilities" 2>&1 || true
	if ! grep -q 'fetching vulnerabilities' "$vulnerabilities" && go run "$GOVULNCHECK" ./... >"$vulnerabilities" 2>&1; then
		tail -n 1 "$vulnerabilities"
	elif grep -q 'Vulnerability #' "$vulnerabilities"; then
		cat "$vulnerabilities"
		exit 1
	else
		echo "skipped: govulncheck could not reach its data"
	fi
}

# deployed tests what makes releases, and what is deployed.
deployed() {
	failed=0
	go -C tools/bench test -vet=off -count 1 ./... || failed=1
	if releases; then
		go -C tools/dist test -vet=off -count 1 ./... || failed=1
	fi
	if charts; then
		go -C tools/chart test -vet=off -count 1 ./... || failed=1
	fi
	return $failed
}

# tests runs go test on the packages named in $1, with the arguments after it, and
# notes in $status whether all passed in the end. Tests that failed are run again
# once all others are done, unless many did or one has a data race. A failed
# subtest counts as a failure of the test above it too.
tests() {
	packages=$1
	shift
	go run "$GOTESTSUM" --format pkgname --format-hide-empty-pkg --hide-summary=skipped --jsonfile "$scratch/log" \
		--rerun-fails="$reruns" --rerun-fails-max-failures=12 $root \
		--rerun-fails-abort-on-data-race --packages "$packages" -- -vet=off -timeout 25m "$@" || status=1
	sed -nE 's/.*"Action":"(pass|fail)","Package":"([^"]*)"(,"Test":"([^"]*)")?,"Elapsed".*/\1 \2 \4/p' "$scratch/log" | flaky >>"$scratch/flaky"
	cat "$scratch/log" >>"$scratch/all"
	rm -f "$scratch/log"
}

# flaky reads lines of outcome, package and test, and prints the tests that failed
# and then passed. A package without a test is one whose tests passed and which
# failed all the same.
flaky() {
	awk '
		{ key = $2 " " $3; last[key] = $1 }
		$1 == "fail" { failed[key] = $2; if ($3 != "") tested[$2] = 1 }
		END {
			for (key in failed)
				if (last[key] == "pass" && (key != failed[key] " " || !(failed[key] in tested)))
					print "  " key
		}'
}

# race runs the short tests of what is concurrent, with the arguments of go test. SQLite's
# own code, translated from C, is neither watched nor has its pointers checked.
race() {
	echo "== tests of what is concurrent, under the race detector"
	export CGO_ENABLED=1
	tests "./internal/dbtest $watched $racy" -race -count 1 -short -p 3 -parallel 4 -skip "$sequential" \
		-gcflags='modernc.org/...=-d=checkptr=0' -gcflags='modernc.org/sqlite/lib=-d=checkptr=0 -race=false' "$@"
}

# Pure Go, as the program is built by default. What one checkout has compiled serves
# another, because no path is in it. Programs are linked without what a debugger
# needs, and collect garbage less often: both take time alone.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS-} -trimpath -ldflags=-s" GOGC="${GOGC-400}"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
touch "$scratch/all" "$scratch/flaky"
status=0 reruns=0 root=--rerun-fails-run-root-test

# The servers of other versions that a part of the matrix runs on are those in
# internal/dbtest/versions_test.go.
case $tier in
seeds)
	install
	versions mysql-9.7
	;;
full)
	install
	versions postgres-14.0.0 postgres-18.6.0 mariadb-10.2.11 mariadb-11.8 mysql-9.7 etcd-3.7.3 redis-8.0 valkey-8.1 valkey-9.1
	kubernetes control
	;;
kubernetes)
	missing=
	need gcc gcc
	need ip iproute2
	need containerd containerd
	need runc runc
	need /usr/lib/cni/bridge containernetworking-plugins
	need ipset ipset
	need iptables iptables
	need stress-ng stress-ng
	fetch
	kubernetes node
	export STROPPY_TEST_KUBERNETES_NODE=on
	;;
versions)
	install
	# shellcheck disable=SC2046 # a list
	versions $(echo "${STROPPY_TEST_WHOLE_VERSIONS-}" | tr , '\n' | grep -v -e '-installed$' -e '^all$')
	export STROPPY_TEST_WHOLE_VERSIONS="${STROPPY_TEST_WHOLE_VERSIONS-all}"
	;;
esac
if [ $tier != race ] && [ $tier != versions ] && [ $tier != kubernetes ]; then
	echo "== gofmt"
	unformatted=$(gofmt -l cmd internal tools)
	[ -z "$unformatted" ] || { echo "gofmt would change: $unformatted" >&2; exit 1; }
	echo "== go vet"
	go vet ./...
	go -C tools/bench vet ./...
fi
if [ $tier = full ] || [ $tier = lint ]; then
	lint
fi
[ $tier != lint ] || exit 0

if [ $tier = seeds ]; then
	echo "== seeded runs with random faults"
	go build -o "$scratch/stroppy" ./cmd/stroppy
	mysql=
	[ -z "${STROPPY_TEST_VERSIONS-}" ] || mysql="-mysql=$STROPPY_TEST_VERSIONS/mysql-9.7/bin"
	go run ./tools/seeds -stroppy "$scratch/stroppy" ${mysql:+"$mysql"} "$@" || status=1
	echo "== commits that meet a fault"
	export STROPPY_TEST_FAULTS=all STROPPY_TEST_ROUNDS=1
	tests ./internal/dbtest -run '^(TestCommitsMeetFailOver|TestNemesis)$'
	tests ./internal/cli -run '^TestNothingLeft$'
	tests ./internal/cluster/mariadb -run '^(TestGroup|TestMultiPrimary)$'
	tests ./internal -run '^TestDocuments$/^scenarios$/^(patroni-async|patroni-failsafe)'
	echo "== every cell of the matrix, checkers against brute force, and planted faults, with all seeds"
	tests "./internal/dbtest ./internal/check/..." -run 'Matrix|Mutants|Reference|Oracle|Window|Atomic|Pieces|Values|Interval|Proof|Definitions'
elif [ $tier = quick ]; then
	echo "== short tests"
	# The clusters have few tests without a server.
	tests "./internal/cli ./internal/dbtest $(go list ./... | grep -v /cluster | tr '\n' ' ')" -short -p 3 "$@"
elif [ $tier = race ]; then
	race "$@"
elif [ $tier = kubernetes ]; then
	echo "== tests in Kubernetes"
	if [ $# -gt 0 ]; then
		tests "./internal/cluster/kubernetes/... ./internal/cli" -count 1 -p 1 "$@"
	else
		tests "./internal/cluster/kubernetes/..." -count 1 -p 1
		tests ./internal/cli -count 1 -run 'Kubernetes|Chart'
	fi
elif [ $tier = versions ]; then
	verified=yes
	# Cells that failed are run again, and not the whole matrix.
	reruns=2 root=
	tests ./internal/dbtest -count 1 -run '^TestVersions$' -timeout 3h "$@"
	if [ -e /usr/include/dqlite.h ]; then # a library, which other builds have not
		(export CGO_ENABLED=1 CGO_LDFLAGS_ALLOW=-Wl,-z,now && go test -tags 'dqlite libsqlite3' -vet=off -json -count 1 -run '^TestVersions$/^dqlite' ./internal/dbtest) >>"$scratch/all" || { status=1; echo "TestVersions of dqlite failed" >&2; }
	fi
	tests ./internal -count 1 -run '^TestDocuments$/^scenarios$/^(etcd-inconsistent|mariadb-mapped-log|mysql-torn-reads)' "$@"
elif [ $# -gt 0 ]; then # somebody asks for other tests
	echo "== go test"
	tests "./..." "$@"
else
	reruns=2
	unwatched=./...
	if command -v gcc >/dev/null; then
		# shellcheck disable=SC2086 # two lists
		unwatched=$(go list ./... | grep -vxF "$(go list $watched)" | tr '\n' ' ')
	fi
	echo "== all tests but those that the race detector watches below"
	# The longest come first, and those that wait for servers before those that compute, so that no
	# processor waits for them in the end. Waiting leaves processors idle, hence -p and -parallel.
	longest="./internal/dbtest ./internal/cli ./internal/cluster/patroni ./internal ./internal/cluster/mariadb ./internal/cluster/redis ./internal/cluster/postgres"
	longest="$longest ./internal/cluster/etcd ./internal/cluster/kubernetes ./internal/cluster/clustertest ./internal/cluster/disk ./internal/cluster/pgbouncer ./internal/cluster/kubernetes/..."
	tests "$longest $unwatched" -count 1 -p 4 -parallel 4
	deployed >"$scratch/deployed" 2>&1 & # which leaves one processor idle
	deployed=$!
	if command -v gcc >/dev/null; then
		race
		echo "== what the race detector does not watch of that"
		export CGO_ENABLED=0
		tests "$watched" -count 1 -run "$sequential"
	else
		echo "test.sh: no gcc, so the race detector is off" >&2
	fi
	wait $deployed || status=1
	echo "== tests of what makes releases, and of what is deployed"
	cat "$scratch/deployed"
fi

echo "== engines skipped"
# A line of a script that is only printed has > before it, which is u003e in JSON.
skipped=$(grep -h 'skipped engine: ' "$scratch/all" | grep -v 'u003e' | sed 's/.*skipped engine: //; s/[\"].*//' | sort | uniq -c)
echo "${skipped:-none}"
echo "== flaky (failed, then passed)"
if [ -s "$scratch/flaky" ]; then sort -u "$scratch/flaky"; else echo none; fi
[ -z "$verified" ] || go run ./tools/verified "$scratch/all"
exit $status
