#!/bin/bash
# The whole pipe on cgroup v2: run in the emulated machine by boot-v2.sh, see pipe-v2.sh.
# Containers started in five ways are probed, held against the engine's own stats, limited by
# quota, by weight and from a stream, and put back; exits 1 where something is not as it should be.
set -u
export PYTHONPATH=$PWD/site:$PWD HOME=/root
tool() {
    local name=$1
    shift
    python3 -c "import sys; sys.argv[0]='dl-$name'; from dltools.cli.$name import main; main()" "$@"
}
burn='i=0; while :; do i=$((i+1)); [ $((i%2000)) = 0 ] && echo "step $i loss: 0.$((9000 - i/2000*K % 9000))"; done'
# The emulated CPUs are slow: the tools come before the jobs.
printf '[Slice]\nCPUWeight=5\n' >/etc/systemd/system/jobs.slice
systemctl daemon-reload
run() {
    local name=$1 slope=$2
    shift 2
    docker run -d --name "$name" --cgroup-parent jobs.slice "$@" bb sh -c "K=$slope; $burn" >/dev/null
}
kernel() {
    for name in plain cpus quota shares cpuset; do
        pid=$(docker inspect -f '{{.State.Pid}}' $name)
        place=/sys/fs/cgroup$(sed 's/^0:://' "/proc/$pid/cgroup")
        echo "$name max=$(cat "$place/cpu.max") weight=$(cat "$place/cpu.weight")" \
            "cpuset=$(cat "$place/cpuset.cpus.effective") burst=$(cat "$place/cpu.max.burst")"
    done
}
bad=0
check() {
    echo "-- $*"
    "$@" || { echo "FAILED: $*"; bad=1; }
}

docker info 2>/dev/null | grep -i cgroup
run plain 3
run cpus 1 --cpus 0.5
run quota 2 --cpu-period 50000 --cpu-quota 60000
run shares 1 --cpu-shares 512
run cpuset 0 --cpuset-cpus 1 --memory 64m
sleep 20
kernel >"$OUT/start"
cat "$OUT/start"
tool probe --format table --window 1
check python3 compare.py
pipe() { tool probe | tool plan "$@" | tool apply; }
check pipe --policy fair --realize quota
kernel >"$OUT/quota"
cmp -s "$OUT/start" "$OUT/quota" && { echo "FAILED: quotas changed nothing"; bad=1; }
check pipe --policy fair --realize weight
echo "-- stream"
tool probe -i 3 -c 3 | tool plan --realize quota --set itval=3 | tool apply
echo "-- a CPU list"
host=$(docker info -f '{{.Name}}')
id=$(docker inspect -f '{{.Id}}' plain)
{
    echo '{"kind":"plan","v":1,"policy":"hand","at":"","params":{},"input":{},"next_s":null}'
    echo '{"kind":"action","id":1,"op":"update","host":"'"$host"'","container":{"id":"'"$id"'",
        "name":"plain"},"set":{"cpuset":"0"},"expect":{},"reason":""}' | tr -d '\n'
    echo
    echo '{"kind":"end","actions":1,"state":{}}'
} | check tool apply
kernel >"$OUT/list"
grep -q '^plain .*cpuset=0 ' "$OUT/list" || { echo "FAILED: no CPU list"; bad=1; }
echo "-- turns"
tool probe | tool plan --policy fair --realize rotate --quantum 3 | tool apply --hold 20s &
waiting() { docker ps --format '{{.State}}' | grep -q paused; }
for _ in $(seq 180); do waiting && break; sleep 1; done
docker ps --format '{{.State}}' | sort | uniq -c
waiting || { echo "FAILED: nobody waits"; bad=1; }
wait
waiting && { echo "FAILED: left paused"; bad=1; }
check tool apply --undo
kernel >"$OUT/end"
check cmp "$OUT/start" "$OUT/end"
exit $bad
