# Runs a command where a node of Kubernetes can be started without a change to the machine: in
# namespaces of its own for mounts, the network, processes and control groups. kubetest starts it
# twice: outside with the name of the control groups, which it makes, and inside, as the first
# process of them all, at whose end the kernel ends all others.
#
#   node.sh outside GROUP NODE COMMAND…
#   node.sh inside NODE COMMAND…        NODE is the node's address
set -eu
where=$1
shift

if [ "$where" = outside ]; then
	group=$1
	shift
	for c in /sys/fs/cgroup/*/; do
		mkdir "$c$group"
		for file in cpuset.cpus cpuset.mems; do # without which a group takes no process
			[ ! -e "$c$file" ] || cat "$c$file" >"$c$group/$file"
		done
		echo $$ >"$c$group/cgroup.procs"
	done
	exec unshare --mount --propagation private --net --pid --cgroup --fork --kill-child --mount-proc \
		sh "$0" inside "$@"
fi

node=$1
shift

# All that is written to the machine's folders is in this memory.
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /dev/shm/tmp /dev/shm/over
chmod 1777 /dev/shm/tmp
export TMPDIR=/dev/shm/tmp
for folder in etc usr/local var; do
	over=/dev/shm/over/$folder
	mkdir -p "$over/up" "$over/work"
	mount -t overlay -o "lowerdir=/$folder,upperdir=$over/up,workdir=$over/work" overlay "/$folder"
done

# The control groups as seen from this one.
for c in /sys/fs/cgroup/*/; do
	name=$(basename "$c")
	case $name in
	unified) continue ;;
	systemd) name=none,name=systemd ;;
	esac
	umount "$c"
	mount -t cgroup -o "$name" cgroup "$c"
done

# kubelet sets these of the whole machine. They are in a file system of their own: kubelet takes a
# mount of the one with its folder for the place where it is mounted.
mkdir /dev/shm/over/sys
mount -t tmpfs tmpfs /dev/shm/over/sys
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
	[ -e "/proc/sys/$setting" ] || continue
	copy=/dev/shm/over/sys/$(basename "$setting")
	cat "/proc/sys/$setting" >"$copy"
	mount --bind "$copy" "/proc/sys/$setting"
done

# Chaos Mesh enters the namespaces of a pod by a program of its own with these flags. With -l what
# is run there is of this machine, and so are its libraries: they are opened here and read there.
cat >/usr/local/bin/nsexec <<'END'
#!/bin/bash
entered= local=
while [ $# -gt 0 ]; do
	case $1 in
	-l) local=yes && shift && continue ;;
	-n) entered="$entered --net=$2" ;;
	-m) entered="$entered --mount=$2" ;;
	-p) entered="$entered --pid=$2" ;;
	-i) entered="$entered --ipc=$2" ;;
	--) shift && break ;;
	*) echo "nsexec: there is no flag $1" >&2 && exit 2 ;;
	esac
	shift 2
done
[ "$local" ] || exec nsenter $entered -- setpriv --pdeathsig TERM -- "$@" # which ends when nsenter is ended
program=$1
shift
exec {p}<"$program" {l}<"$(ldd "$program" | sed -n 's/^\t\(\/[^ ]*\) (0x.*/\1/p')"
libraries=
for file in $(ldd "$program" | sed -n 's/.* => \(\/[^ ]*\) (0x.*/\1/p'); do
	exec {n}<"$file"
	libraries="$libraries /proc/self/fd/$n"
done
nsenter $entered -- /proc/self/fd/$l --preload "$libraries" /proc/self/fd/$p "$@" <&0 &
enters=$!
# It is to end as it does by itself, in good order, and takes its time.
trap 'kill $(cat /proc/$enters/task/$enters/children)' TERM INT
until wait $enters; [ ! -e /proc/$enters ]; do :; done
END
chmod 755 /usr/local/bin/nsexec

ip link set lo up
ip link add node0 type bridge
ip address add "$node/24" dev node0
ip address add 10.0.0.1/32 dev node0 # the service kubernetes, for pods that ask the API server
ip link set node0 up
ip route add default dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward
mount --make-rshared /

# Not by exec: the first process has to wait for those whose parents have ended.
status=0
"$@" || status=$?
exit $status
