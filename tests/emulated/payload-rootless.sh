#!/bin/bash
# Podman without root, in a systemd and cgroups of version 2: run in the emulated machine by boot-v2.sh, with the
# folders dltools and site. The machine needs MORE_PACKAGES=podman,netavark,uidmap,dbus-user-session,crun,passwd.
# Two containers of a user are probed; quotas are set and undone with what systemd delegates by itself, and with
# all that it can delegate. crun sets a weight where it competes with nobody: none is set, and auto gives turns.
# Exits 1 where something is not as it should be.
set -u
bad=0
fail() { echo "FAILED: $*"; bad=1; }
useradd -m -s /bin/bash lab
loginctl enable-linger lab
uid=$(id -u lab)
run=/run/user/$uid
cp -r dltools site /home/lab/
chown -R lab: /home/lab
socket=unix://$run/podman/podman.sock
as() {
    runuser -u lab -- env HOME=/home/lab XDG_RUNTIME_DIR="$run" DBUS_SESSION_BUS_ADDRESS="unix:path=$run/bus" \
        PYTHONPATH=/home/lab/site:/home/lab LC_ALL=C.UTF-8 "$@"
}
tool() {
    local name=$1
    shift
    (cd /home/lab && as python3 -c "import sys; sys.argv[0]='dl-$name'; from dltools.cli.$name import main; main()" "$@")
}
start() {
    for _ in $(seq 60); do [ -S "$run/bus" ] && break; sleep 1; done
    cat "/sys/fs/cgroup/user.slice/user-$uid.slice/user@$uid.service/cgroup.controllers"
    (cd /home/lab && as systemctl --user start podman.socket)
    for name in a b; do
        (cd /home/lab && as podman run -d --name $name --network none bb sh -c \
            '(while :; do :; done) & i=0; while :; do i=$((i+1)); [ $((i%20000)) = 0 ] && echo "step $i loss: 0.$((900000 - i/20000))"; done')
    done
    sleep 5
}
kernel() {
    find "/sys/fs/cgroup/user.slice/user-$uid.slice" -path '*libpod-*' -name cpu.max -o -path '*libpod-*' \
        -name cpu.weight | sort | while read -r file; do echo "${file#/sys/fs/cgroup/user.slice/} $(cat "$file")"; done
}
pipe() {
    tool probe --host "$socket" -i 3 -c 6 | tool plan "$@" | tee "$OUT/plans" |
        tool apply --host "$socket" 2>&1 | tee "$OUT/applied"
}
tar -c -C /usr/local/share/bb . >/tmp/bb.tar
chmod 644 /tmp/bb.tar
(cd /home/lab && as podman import /tmp/bb.tar bb >/dev/null)
podman --version

echo '-- what systemd delegates to a user by itself'
start
tool probe --host "$socket" --format table
tool probe --host "$socket" --doctor
pipe --policy fair --realize quota
echo "exit status ${PIPESTATUS[*]}"
kernel
(cd /home/lab && as podman rm -f -t 0 a b)

echo '-- with the cpu controllers delegated'
mkdir -p /etc/systemd/system/user@.service.d
printf '[Service]\nDelegate=cpu cpuset io memory pids\n' >/etc/systemd/system/user@.service.d/delegate.conf
systemctl daemon-reload
systemctl restart "user@$uid.service"
start
kernel >"$OUT/start"
for mode in quota weight; do
    pipe --policy fair --realize $mode
    kernel >"$OUT/$mode"
    tool apply --host "$socket" --status
    tool apply --host "$socket" --undo || fail "--undo after $mode"
    kernel >"$OUT/end"
    diff "$OUT/start" "$OUT/end" || fail "$mode was not undone"
done
diff "$OUT/start" "$OUT/weight" || fail 'a weight was set'
grep -q -- '--realize weight is not possible' "$OUT/applied" || fail 'a weight was not refused'
echo '-- auto'
pipe --policy srtf
grep -o '"realize":"[a-z]*","realize_why":"[^"]*"' "$OUT/plans" | sort | uniq -c
grep -q '"realize":"rotate"' "$OUT/plans" || fail 'auto gave no turns'
grep -q '"cpu_weight"' "$OUT/applied" && fail 'auto has set a weight'
tool apply --host "$socket" --undo
(cd /home/lab && as podman ps --format '{{.Names}} {{.Status}}')
kernel >"$OUT/end"
diff "$OUT/start" "$OUT/end" || fail 'auto was not undone'
diff "$OUT/start" "$OUT/quota" >/dev/null && fail "quotas changed nothing"
cat "$OUT/quota"
exit $bad
