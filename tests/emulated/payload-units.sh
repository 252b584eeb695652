#!/bin/bash
# The shipped systemd units under a real systemd: run in the emulated machine by boot-v2.sh, see
# units-v2.sh. The timer's round, the stream and SpeCon's unit run confined as they are shipped;
# what they set is put back whatever ends them. Exits 1 where something is not as it should be.
set -u
export HOME=/root PATH=/opt/dltools/bin:$PATH
here=$PWD
mkdir -p /opt/dltools/bin
for name in probe plan apply; do
    cat >"/opt/dltools/bin/dl-$name" <<TOOL
#!/bin/sh
export PYTHONPATH=$here/site:$here
exec python3 -c "import sys; sys.argv[0] = 'dl-$name'; from dltools.cli.$name import main; main()" "\$@"
TOOL
    chmod 755 "/opt/dltools/bin/dl-$name"
done
cp systemd/* /etc/systemd/system/
# The emulated CPUs are slow: the tools come before the jobs.
printf '[Slice]\nCPUWeight=5\n' >/etc/systemd/system/jobs.slice
systemctl daemon-reload

bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
check() {
    echo "-- $*"
    "$@" || fail "$*"
}
# One learns, one hardly, one not at all, with two busy threads each, of which one counts.
train='(while :; do :; done) & i=0; while :; do i=$((i+1)); [ $((i%2000)) = 0 ] && echo "step $((i/2000)) loss: 0.$((5000 + 4000*K/(K + i/2000*R)))"; done'
declare -A place
run() {
    local name=$1 rate=$2
    shift 2
    docker run -d --name "$name" --cgroup-parent jobs.slice "$@" bb sh -c "K=100; R=$rate; $train" >/dev/null
    place[$name]=/sys/fs/cgroup$(sed 's/^0:://' "/proc/$(docker inspect -f '{{.State.Pid}}' "$name")/cgroup")
}
kernel() {
    for name in fast mid slow guarded; do
        echo "$name max=$(cat "${place[$name]}/cpu.max") weight=$(cat "${place[$name]}/cpu.weight")" \
            "cpuset=$(cat "${place[$name]}/cpuset.cpus.effective") frozen=$(cat "${place[$name]}/cgroup.freeze")"
    done
}
differs() { kernel >"$OUT/now" && ! cmp -s "$OUT/start" "$OUT/now"; }
restored() { kernel >"$OUT/now" && cmp -s "$OUT/start" "$OUT/now"; }
within() { # SECONDS COMMAND...: wait until it holds
    local seconds=$1
    shift
    for _ in $(seq "$seconds"); do "$@" && return; sleep 1; done
    cat "$OUT/now"
    said dltools-stream
    return 1
}
said() { journalctl -q -u "$1" -o cat --no-pager | tail -20; }
guarded_stays() { [ "$(grep '^guarded' "$OUT/start")" = "$(kernel | grep '^guarded')" ]; }

run fast 20
run mid 1
run slow 0
run guarded 20 --label dltools.protect=true
kernel | tee "$OUT/start"
systemd-analyze security dltools dltools-stream dltools-cluster --no-pager 2>&1 | grep Overall

echo "== the timer's rounds"
for _ in 1 2 3 4 5 6; do
    systemctl start dltools.service || { fail "a round"; said dltools.service; }
    differs && break
    sleep 20
done
check differs
said dltools.service
cat "$OUT/now"
check guarded_stays
check test "$(stat -c %a /var/lib/dltools)" = 700
check test -s /var/lib/dltools/flowcon.state
dl-apply --undo
check restored
systemctl start dltools.timer
check systemctl is-active dltools.timer
systemctl stop dltools.timer

echo "== the stream"
check systemctl start dltools-stream
check within 240 differs
cat "$OUT/now"
check guarded_stays
echo "-- killed"
systemctl kill --signal=KILL dltools-stream
check within 120 restored
check within 240 differs # it is started again
check systemctl is-active dltools-stream
echo "-- only dl-plan is killed"
pids() { systemctl show -p ControlGroup --value dltools-stream; }
plan=$(grep -lz 'dltools.cli.plan' $(sed 's#.*#/proc/&/cmdline#' "/sys/fs/cgroup$(pids)/cgroup.procs") | cut -d/ -f3 | tail -1)
check kill -9 "$plan"
check within 120 restored
check within 240 differs
echo "-- stopped"
check systemctl stop dltools-stream
check restored
said dltools-stream

echo "== SpeCon's unit"
ip link add d0 type dummy && ip addr add 10.99.0.1/24 dev d0 && ip link set d0 up
if docker swarm init --advertise-addr 10.99.0.1 >/dev/null; then
    check systemctl start dltools-cluster
    sleep 60
    check systemctl is-active dltools-cluster
    check test "$(systemctl show -p NRestarts --value dltools-cluster)" = 0
    check systemctl stop dltools-cluster
    check restored
    said dltools-cluster
else
    fail "no Swarm here"
fi
echo "== the service in one command"
rm -f /etc/systemd/system/dltools*
systemctl daemon-reload
rm -rf /var/lib/dltools
check dl-apply --install-service --policy flowcon
check within 240 differs
check guarded_stays
check systemctl is-enabled dltools-stream
check test "$(systemctl show -p NRestarts --value dltools-stream)" = 0
dl-probe --doctor
said dltools-stream
check test "$(journalctl -q -u dltools-stream -o cat --no-pager | grep -vc '^{')" -le 12
check dl-apply --remove-service
check restored
check test -z "$(systemctl list-unit-files --no-legend 'dltools*')"
check test ! -e /var/lib/dltools
check test ! -e /etc/systemd/system/dltools-stream.service
dl-probe --doctor

echo "denied: $(journalctl -q -k --no-pager | grep -c 'type=1326')"
exit $bad
