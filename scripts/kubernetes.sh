#!/bin/sh
# Builds parts of Kubernetes for the tests, from the Go modules that tools/k8s pins, into a
# folder of the user's cache, and prints that folder's path. Nothing of them is run here.
#
#   scripts/kubernetes.sh [control]  kube-apiserver and etcd, which need no rights: the first
#                                    time 5 minutes of two processors, later nothing
#   scripts/kubernetes.sh node       and kubelet, kube-controller-manager, kube-scheduler, CoreDNS,
#                                    and Chaos Mesh's controller-manager and daemon: 10 minutes more
#
# In the folder are bin/ and crds/, which has the custom resource definitions of Chaos Mesh and of
# the operators whose modules bring them, a folder each. It is in stroppy/kubernetes in the user's
# cache, or for root in /var/cache, and named after the sums of the modules and the version of Go.
# The exit code is 3 if something could not be had.
set -eu
cd "$(dirname "$0")/.."

say() { echo "kubernetes.sh: $*" >&2; }

part=${1-control}
case $part in
control | node) ;;
*) say "there is no $part: say control or node"; exit 2 ;;
esac
command -v go >/dev/null || { say "install Go first: there is no go on PATH"; exit 3; }

# What the environment says of builds would be in no name.
export GOFLAGS=-buildvcs=false CGO_ENABLED=0 GOWORK=off
cache=${XDG_CACHE_HOME-$HOME/.cache}
[ "$(id -u)" != 0 ] || cache=/var/cache
sums=$({
	cat tools/k8s/go.* tools/k8s/*/go.*
	go version
} | cksum | tr -c '0-9\n' -)
folder=$cache/stroppy/kubernetes/$sums
mkdir -p "$folder/bin"
if command -v flock >/dev/null; then # two builds at once would each take twice as long
	exec 9>"$folder/lock"
	flock 9
fi
work=$(mktemp -d "$folder/.part-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# build builds a program of a module: the module's folder, the program's name, its package, and
# flags. What is there already is not built again.
build() {
	where=$1 name=$2 package=$3
	shift 3
	[ ! -x "$folder/bin/$name" ] || return 0
	say "building $name"
	nice -n 5 go -C "$where" build -trimpath "$@" -o "$work/$name" "$package" >"$work/said" 2>&1 ||
		{ say "$name could not be built: $(grep -v '^go: downloading' "$work/said" | tail -n 1)"; return 1; }
	mv "$work/$name" "$folder/bin/$name"
}

# definitions copies YAML files of a module: a name, the module, and a pattern of their names in it.
definitions() {
	[ ! -e "$folder/crds/$1" ] || return 0
	sources=$(go -C tools/k8s/crds mod download -json "$2" 2>"$work/said" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p') || true
	[ "$sources" ] || { say "the definitions of $1 could not be had: $(tail -n 1 "$work/said")"; return 1; }
	mkdir -p "$work/$1" "$folder/crds"
	cp "$sources"/$3 "$work/$1" && chmod 644 "$work/$1"/*.yaml && mv "$work/$1" "$folder/crds/$1"
}

# daemon builds Chaos Mesh's daemon, which asks the kernel through C, and has in itself what it
# writes into processes to put their clocks: that is compiled first, as its own Makefile does, in a
# copy of the module, whose folder is not to be changed.
daemon() {
	# One that an earlier version of this script has built cannot put clocks.
	grep -qs fakeclock/fake_clock_gettime.o "$folder/bin/chaos-daemon" && return 0
	rm -f "$folder/bin/chaos-daemon"
	module=github.com/chaos-mesh/chaos-mesh
	cp -r "$(go -C tools/k8s/chaos list -m -f '{{.Dir}}' $module)" "$work/chaos-mesh"
	chmod -R u+w "$work/chaos-mesh"
	model=
	[ "$(uname -m)" != aarch64 ] || model=-mcmodel=tiny
	for name in fake_clock_gettime fake_gettimeofday; do
		object=$work/chaos-mesh/pkg/time/fakeclock/$name
		gcc -c $model -fPIE -O2 -o "$object.o" "$object.c" >"$work/said" 2>&1 ||
			{ say "$name could not be compiled: $(tail -n 1 "$work/said")"; return 1; }
	done
	cp tools/k8s/chaos/go.mod tools/k8s/chaos/go.sum "$work"
	echo "replace $module => $work/chaos-mesh" >>"$work/go.mod"
	CGO_ENABLED=1 build tools/k8s/chaos chaos-daemon $module/cmd/chaos-daemon -ldflags='-s -w' -modfile="$work/go.mod"
}

# A test that needs definitions says so where they are not there.
definitions chaos-mesh github.com/chaos-mesh/chaos-mesh 'config/crd/bases/*.yaml' || true
definitions mongodb github.com/mongodb/mongodb-kubernetes-operator 'config/crd/bases/*.yaml' || true
definitions percona github.com/percona/percona-server-mongodb-operator deploy/crd.yaml || true
definitions cockroachdb github.com/cockroachdb/helm-charts 'cockroachdb-parent/charts/operator/manifests/crds/*.yaml' || true

failed=
# A build of Kubernetes without its version says that it is v0.0.0-master, and clients believe it.
version=$(sed -n 's/^\tk8s.io\/kubernetes v\([0-9.]*\).*/\1/p' tools/k8s/go.mod)
minor=${version#*.} stamp=k8s.io/component-base/version
stamp="-s -w -X $stamp.gitVersion=v$version -X $stamp.gitMajor=${version%%.*} -X $stamp.gitMinor=${minor%%.*}"
build tools/k8s etcd go.etcd.io/etcd/server/v3 -ldflags='-s -w' || failed=yes
build tools/k8s kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver -ldflags="$stamp" || failed=yes
if [ "$part" = node ]; then
	for name in kubelet kube-controller-manager kube-scheduler; do
		build tools/k8s "$name" "k8s.io/kubernetes/cmd/$name" -ldflags="$stamp" || failed=yes
	done
	if [ ! -x "$folder/bin/pause" ]; then # the process that keeps a pod's namespaces
		source=$(go -C tools/k8s list -m -f '{{.Dir}}' k8s.io/kubernetes)/build/pause/linux/pause.c
		if gcc -Os -static -DVERSION=3.10 -o "$work/pause" "$source" >"$work/said" 2>&1; then
			mv "$work/pause" "$folder/bin/pause"
		else
			say "pause could not be built: $(tail -n 1 "$work/said")"
			failed=yes
		fi
	fi
	build tools/k8s/dns coredns . -ldflags='-s -w' || failed=yes
	chaos=github.com/chaos-mesh/chaos-mesh/cmd
	build tools/k8s/chaos chaos-controller-manager $chaos/chaos-controller-manager -ldflags='-s -w' || failed=yes
	daemon || failed=yes
	if [ ! -x "$folder/bin/chaos-pause" ]; then # which the daemon starts stress-ng by
		source=$(go -C tools/k8s/chaos list -m -f '{{.Dir}}' github.com/chaos-mesh/chaos-mesh)/hack/pause.c
		if gcc -Os -static -o "$work/chaos-pause" "$source" >"$work/said" 2>&1; then
			mv "$work/chaos-pause" "$folder/bin/chaos-pause"
		else
			say "Chaos Mesh's pause could not be built: $(tail -n 1 "$work/said")"
			failed=yes
		fi
	fi
fi
[ -z "$failed" ] || exit 3
echo "$folder"
