#!/bin/sh
# Installs what the tests need and passes them: linters, then every test under
# the race detector, with real database servers that the tests start themselves.
# A server that cannot be had is listed by name at the end as skipped.
#
# Arguments go to go test, such as -run TestName.
set -eu
cd "$(dirname "$0")/.."

GOTESTSUM=gotest.tools/gotestsum@v1.13.0
STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck@v1.9.0

command -v go >/dev/null || { echo "test.sh: install Go 1.26 or newer first: there is no go on PATH" >&2; exit 3; }

# A Debian package for each program that is missing.
missing=
need() { # program package; PostgreSQL's programs are not on PATH in Debian
	for place in $(command -v "$1" || true) /usr/lib/postgresql/*/bin/"$1"; do
		[ ! -x "$place" ] || return 0
	done
	missing="$missing $2"
}
need gcc gcc
need initdb postgresql
need etcd etcd-server
need redis-server redis-server
need mariadbd mariadb-server
need pgbouncer pgbouncer
need rsync rsync
need prometheus prometheus
need chromium chromium
[ -e /usr/lib/galera/libgalera_smm.so ] || missing="$missing galera-4"
[ -e /usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1 ] || [ "$(uname -m)" != x86_64 ] || missing="$missing faketime"
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

echo "== gofmt"
unformatted=$(gofmt -l cmd internal tools)
[ -z "$unformatted" ] || { echo "gofmt would change: $unformatted" >&2; exit 1; }
echo "== go vet"
go vet ./...
echo "== staticcheck"
go run "$STATICCHECK" ./...
echo "== govulncheck"
vulnerabilities=$(mktemp)
if go run "$GOVULNCHECK" ./... >"$vulnerabilities" 2>&1; then
	tail -n 1 "$vulnerabilities"
elif grep -q 'Vulnerability #' "$vulnerabilities"; then
	cat "$vulnerabilities"
	rm -f "$vulnerabilities"
	exit 1
else
	echo "skipped: govulncheck could not reach its data"
fi
rm -f "$vulnerabilities"
echo "== go build without a C compiler"
CGO_ENABLED=0 go build -o /dev/null ./cmd/stroppy

echo "== go test"
race=-race
command -v gcc >/dev/null || { race=; echo "test.sh: no gcc, so the race detector is off" >&2; }
log=$(mktemp)
status=0
# The longest come first, so that no processor waits for them in the end.
# shellcheck disable=SC2086
go run "$GOTESTSUM" --format pkgname --format-hide-empty-pkg --jsonfile "$log" -- $race -timeout 25m "$@" ./internal/dbtest ./internal ./... || status=$?
# With arguments, somebody asks for other tests.
if [ $# = 0 ] && [ -n "$race" ]; then
	echo "== go test: every seed of the mutants and of the reference"
	go run "$GOTESTSUM" --format pkgname --jsonfile "$log.seeds" -- -timeout 20m -run '^(TestMutants|TestReference)' ./internal/dbtest ./internal/db/memory || status=$?
	cat "$log.seeds" >>"$log"
	rm -f "$log.seeds"
fi
echo "== engines skipped"
# A line of a script that is only printed has > before it, which is u003e in JSON.
skipped=$(grep -h 'skipped engine: ' "$log" | grep -v 'u003e' | sed 's/.*skipped engine: //; s/[\"].*//' | sort | uniq -c)
echo "${skipped:-none}"
rm -f "$log"
exit $status
