#!/bin/sh
# Installs Debian packages whose programs are missing: scripts/install.sh PROGRAM:PACKAGE...
# A PROGRAM is a name on PATH or a file, which may have wildcards. If a package cannot be
# installed, the tests that need it are skipped.
set -eu

missing=
for entry in "$@"; do
	program=${entry%%:*} package=${entry#*:} found=
	for place in $(command -v "$program" || true) $program /usr/lib/postgresql/*/bin/"$program"; do
		case $place in /*) [ ! -e "$place" ] || found=yes ;; esac
	done
	[ "$found" ] || missing="$missing $package"
done
[ "$missing" ] || exit 0

sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
if ! command -v apt-get >/dev/null || { [ "$sudo" ] && ! command -v sudo >/dev/null; }; then
	echo "install.sh: these packages are missing, so tests that need them are skipped:$missing" >&2
	exit 0
fi
echo "installing:$missing"
$sudo apt-get -qq update || echo "install.sh: the package lists could not be refreshed" >&2
for package in $missing; do
	# RUNLEVEL=1 keeps the package of a server from starting it.
	$sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get -qq install -y --no-install-recommends "$package" >/dev/null ||
		echo "install.sh: $package cannot be installed, so tests that need it are skipped" >&2
done
