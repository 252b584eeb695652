#!/bin/bash
# Start the seven containers of the fixtures, let them run, and record them.
#
#   record-fixtures.sh OUTDIR [PREFIX]
#
# Needs root, a running Docker and its image $IMAGE (default bb, with a busybox
# shell); record-tree.py lies next to this script. The containers are named
# PREFIX followed by plain, cpus05, quota150, shares512, cpuset1, mem256 and
# paused, and are removed at the end. RUN_FOR (default 10) is how many seconds
# they run before they are recorded.
set -euo pipefail
out=$1 prefix=${2:-} image=${IMAGE:-bb} run_for=${RUN_FOR:-10}
here=$(cd "$(dirname "$0")" && pwd)

# Each container waits for a signal, so that all start to work at one moment
# and the first ones do not slow the start of the others.
wait='go=; trap "go=1" USR1; while [ -z "$go" ]; do sleep 0.2; done; '
# Burns one CPU and prints a line of training output now and then.
burn='i=0; while :; do i=$((i+1)); [ $((i % 20000)) = 0 ] && echo "Loss: 0.5 Time: 1.0"; done'
# Holds 32 MiB of shared memory and prints a line each second.
hold='dd if=/dev/zero of=/dev/shm/held bs=1M count=32 2>/dev/null; while sleep 1; do echo "Loss: 0.5 Time: 1.0"; done'

names=()
trap 'docker rm -f "${names[@]}" >/dev/null 2>&1 || true' EXIT
start() { # NAME COMMAND [docker run option ...]
    local name=$prefix$1 command=$2
    shift 2
    names+=("$name")
    docker run -d --name "$name" "$@" "$image" sh -c "$wait$command" >/dev/null
}
start plain "$burn"
start cpus05 "$burn" --cpus 0.5
start quota150 "($burn) & $burn" --cpu-period 100000 --cpu-quota 150000
start shares512 "$burn" --cpu-shares 512
start cpuset1 "$burn" --cpuset-cpus 1
start mem256 "$hold" --memory 256m
start paused "$burn"
docker kill --signal USR1 "${names[@]}" >/dev/null
sleep "$run_for"
docker pause "${prefix}paused" >/dev/null
sleep 2
mkdir -p "$out"
python3 "$here/record-tree.py" "$out" "${names[@]}"

# What this was recorded on, and what each container is.
driver=$(docker info --format '{{.CgroupDriver}}')
engine_version=$(docker version --format '{{.Server.Version}}')
cgroup=$(docker info --format '{{.CgroupVersion}}')
cat >"$out/README" <<README
Linux $(uname -r), Docker Engine $engine_version, cgroup v$cgroup, cgroup driver $driver, $(nproc) CPUs.
root/ mirrors the absolute paths of the files recorded (files over 64 KiB and those of hugetlb, rdma, misc, devices and name=systemd are left out); /proc/self is a root process of the host, outside any container.
Containers (names start with "$prefix"): plain: no limits; cpus05: --cpus 0.5; quota150: --cpu-period 100000 --cpu-quota 150000 (two busy processes);
shares512: --cpu-shares 512; cpuset1: --cpuset-cpus 1; mem256: --memory 256m, holds 32 MiB in /dev/shm, mostly idle; paused: no limits, paused 2 s before recording.
All but mem256 burn CPU in a busybox shell; each prints lines "Loss: 0.5 Time: 1.0" and had worked for about $((run_for + 2)) s.
README
[ -n "$prefix" ] || sed -i 's/ (names start with "")//' "$out/README"
