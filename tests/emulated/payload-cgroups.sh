#!/bin/bash
# Cgroups of version 2 without an engine: run in the emulated machine by boot-v2.sh, with the folders dltools
# and site. Two processes in cgroups made by hand, and a service of systemd, are probed, limited in each mode
# and put back; exits 1 where something is not as it should be.
set -u
export PYTHONPATH=$PWD/site:$PWD HOME=/root
top=/sys/fs/cgroup
hosts='cgroup:/jobs/*,/system.slice/train*.service'
tool() {
    local name=$1
    shift
    python3 -c "import sys; sys.argv[0]='dl-$name'; from dltools.cli.$name import main; main()" "$@"
}
bad=0
check() {
    echo "-- $*"
    "$@" || { echo "FAILED: $*"; bad=1; }
}
kernel() {
    local folder
    for folder in $top/jobs/a $top/jobs/b $top/system.slice/train.service; do
        (cd "$folder" && grep -H . cpu.max cpu.max.burst cpu.weight cgroup.freeze | sed "s|^|${folder##*/} |"
            echo "${folder##*/} cpuset.cpus:$(cat cpuset.cpus)")
    done
}
changed() { ! cmp -s "$OUT/start" <(kernel); }
as_before() { diff "$OUT/start" <(kernel); }
pipe() { tool probe --host "$hosts" -i 3 -c 3 | tool plan "$@" | tool apply --host "$hosts"; }
undo() { tool apply --host "$hosts" --undo; }

cat >job.sh <<'JOB'
i=0; while :; do i=$((i+1)); [ $((i%20000)) = 0 ] && echo "step $i loss: 0.$((900000 - i/20000))"; done
JOB
mkdir -p $top/jobs/a $top/jobs/b
echo '+cpu +cpuset +memory +pids' >$top/cgroup.subtree_control
echo '+cpu +cpuset +memory +pids' >$top/jobs/cgroup.subtree_control
for name in a b; do
    sh -c "echo \$\$ >$top/jobs/$name/cgroup.procs; exec sh $PWD/job.sh >/tmp/$name.log 2>&1" &
done
systemd-run --quiet --unit train -p CPUWeight=50 -p AllowedCPUs=0-1 sh -c "exec sh $PWD/job.sh >/tmp/train.log 2>&1"
echo '30000 60000' >$top/jobs/b/cpu.max
sleep 5
kernel >"$OUT/start"
cat "$OUT/start"
check tool probe --host "$hosts" --format table
for mode in quota weight cores; do
    policy=fair
    check pipe --policy $policy --realize $mode
    kernel >"$OUT/$mode"
    undo
    check as_before
done
cmp -s "$OUT/start" "$OUT/quota" && { echo 'FAILED: quotas changed nothing'; bad=1; }
echo '-- turns, killed'
tool probe --host "$hosts" -i 3 | tool plan --policy fair --realize rotate --quantum 3 |
    tool apply --host "$hosts" >"$OUT/rotate" &
for _ in $(seq 90); do kernel | grep -q 'freeze:1' && break; sleep 1; done
check grep -q . "$OUT/rotate"
kernel | grep freeze
changed || { echo 'FAILED: nothing was frozen'; bad=1; }
pkill -9 -f "argv.0.='dl-"
for _ in $(seq 90); do as_before >/dev/null && break; sleep 1; done
check as_before
echo '-- daemon-reload'
tool probe --host "$hosts" -i 3 -c 2 | tool plan --policy fair --realize quota | tool apply --host "$hosts" --lease 0
kernel | grep train
systemctl daemon-reload
sleep 1
kernel | grep train
undo
kernel >"$OUT/end"
diff "$OUT/start" "$OUT/end"
exit $bad
