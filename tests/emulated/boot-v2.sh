#!/bin/bash
# Boot an emulated Debian machine (systemd, cgroup v2, Docker) and run a
# payload script in it as root.
#
#   boot-v2.sh [-w WORKDIR] [-o OUTDIR] [-t SECONDS] PAYLOAD [FILE|DIR ...]
#
# PAYLOAD and the further files are copied into the machine. There the payload
# runs as root, with Docker up, in the directory that holds those files; what
# it writes under $OUT comes back in OUTDIR, whose name is the one line printed
# on stdout. The exit status is the payload's own (2: used wrongly or a tool is
# missing; 3: the machine could not be built; 4: the machine did not finish).
#
#   -w WORKDIR  where the machine is kept (vmlinuz, initrd.img, root.img). It is
#               built there when it is not there yet, and reused when it is.
#               Default: a new directory under ${TMPDIR:-/tmp}.
#   -o OUTDIR   where the results go: what the payload left in $OUT, and its
#               own output as payload.log. It must be empty or not there yet.
#               Default: WORKDIR/out, which is emptied first.
#   -t SECONDS  give up on the booted machine after this long (default 600).
#
# Building needs root and a Debian mirror ($MIRROR, else debootstrap's own);
# booting a machine already built needs neither. No KVM is used. The machine
# has no network card; a Docker image named `bb` (static busybox) is loaded.
# The machine's disk is thrown back to its built state at each boot.
#
# Settings from the environment: for the build MIRROR, SUITE (bookworm),
# GUEST_NAME (node-v2) and MORE_PACKAGES (a,b: installed too); for each boot GUEST_CPUS (2), GUEST_MB (4096) and
# KERNEL_ARGS (added to the kernel command line). As of Debian 12 a build takes
# about a minute and needs 1.5 GB while it runs, 0.7 GB after; a boot with an
# empty payload takes about 40 s on two cores.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

MIRROR=${MIRROR:-}
SUITE=${SUITE:-bookworm}
GUEST_NAME=${GUEST_NAME:-node-v2}
GUEST_CPUS=${GUEST_CPUS:-2}
GUEST_MB=${GUEST_MB:-4096}
KERNEL_ARGS=${KERNEL_ARGS:-}
PACKAGES=systemd,systemd-sysv,dbus,kmod,udev,linux-image-cloud-amd64,docker.io
PACKAGES=$PACKAGES,iptables,iproute2,procps,python3,curl,busybox-static${MORE_PACKAGES:+,$MORE_PACKAGES}

say() { echo "boot-v2: $*" >&2; }
usage() { sed -n '2,/^set -euo/{/^set -euo/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }

# --- arguments ---------------------------------------------------------------
work= out= limit=600
while getopts w:o:t:h opt; do
    case $opt in
        w) work=$OPTARG ;;
        o) out=$OPTARG ;;
        t) limit=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
payload=$1
for f in "$@"; do
    [ -e "$f" ] || { say "no such file: $f"; exit 2; }
done
[ -f "$payload" ] || { say "not a file: $payload"; exit 2; }

# --- tools -------------------------------------------------------------------
# One line that names all that is missing.
need_tools() {
    local missing= tool package
    for tool in "$@"; do
        command -v "$tool" >/dev/null && continue
        case $tool in
            qemu-system-x86_64) package=qemu-system-x86 ;;
            mkfs.ext4 | debugfs) package=e2fsprogs ;;
            debootstrap) package=debootstrap ;;
            *) package=coreutils ;;
        esac
        case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
    done
    [ -z "$missing" ] || {
        say "missing tools; install them with: apt-get install --no-install-recommends$missing"
        exit 2
    }
}
need_tools qemu-system-x86_64 mkfs.ext4 debugfs timeout truncate

if [ -z "$work" ]; then
    work=$(mktemp -d "${TMPDIR:-/tmp}/boot-v2.XXXXXX")
    say "work directory: $work"
fi
mkdir -p "$work"
work=$(cd "$work" && pwd)
if [ -z "$out" ]; then
    out=$work/out
    rm -rf "$out"
elif [ -n "$(ls -A "$out" 2>/dev/null)" ]; then
    say "not empty: $out"
    exit 2
fi

# --- the machine's root disk -------------------------------------------------
# Fills directory $1 with a Debian system that runs the payload at boot.
fill_root() {
    local root=$1
    debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$root" ${MIRROR:+"$MIRROR"}
    rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* \
        "$root"/usr/share/{doc,man,locale,info}/*

    echo "$GUEST_NAME" >"$root/etc/hostname"
    printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$GUEST_NAME" >"$root/etc/hosts"
    echo '/dev/vda / ext4 defaults 0 0' >"$root/etc/fstab"
    : >"$root/etc/resolv.conf"
    tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
    ln -sf /dev/null "$root/etc/systemd/system/apt-daily.timer"
    ln -sf /dev/null "$root/etc/systemd/system/apt-daily-upgrade.timer"
    ln -sf /dev/null "$root/etc/systemd/system/serial-getty@ttyS0.service"
    ln -sf /dev/null "$root/etc/systemd/system/getty@tty1.service"

    # The contents of the `bb` image: busybox and a link for each applet.
    local bb=$root/usr/local/share/bb applet
    mkdir -p "$bb"/{bin,etc,tmp,proc,sys,dev}
    cp "$root/bin/busybox" "$bb/bin/busybox"
    "$root/bin/busybox" --list | while read -r applet; do
        [ "$applet" = busybox ] || ln -s busybox "$bb/bin/$applet"
    done
    echo 'root:x:0:0:root:/:/bin/sh' >"$bb/etc/passwd"

    # The job: mount the job disk, load `bb`, run the payload, power off.
    cat >"$root/usr/local/sbin/run-job" <<'JOB'
#!/bin/bash
echo "run-job: start, up $(cut -d' ' -f1 /proc/uptime) s"
mkdir -p /job
mount /dev/vdb /job
cd /job/in || systemctl poweroff --force
tar -c -C /usr/local/share/bb . | docker import - bb >/dev/null
export OUT=/job/out HOME=/root LC_ALL=C.UTF-8
"./$(cat /job/payload)" 2>&1 | tee /job/out/payload.log
echo "${PIPESTATUS[0]}" >/job/status
cd /
umount /job
echo "run-job: end, up $(cut -d' ' -f1 /proc/uptime) s"
sync
systemctl poweroff --force
JOB
    chmod 755 "$root/usr/local/sbin/run-job"
    cat >"$root/etc/systemd/system/job.service" <<'UNIT'
[Unit]
Description=Run the payload, then power off
Wants=docker.service
After=docker.service

[Service]
Type=oneshot
ExecStart=/usr/local/sbin/run-job
StandardOutput=journal+console
StandardError=journal+console
TimeoutStartSec=infinity

[Install]
WantedBy=multi-user.target
UNIT
    ln -sf /etc/systemd/system/job.service \
        "$root/etc/systemd/system/multi-user.target.wants/job.service"
}

# Builds vmlinuz, initrd.img and root.img in $work.
build_machine() {
    need_tools debootstrap
    [ "$(id -u)" = 0 ] || { say "building the machine needs root"; exit 3; }
    local root=$work/root.dir
    # A build that was killed has left this machine's /proc mounted there.
    umount "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$root"
    say "building the machine in $work (log: build.log)"
    # A subshell of its own shell: `set -e` holds in it, which it would not in
    # a function called under `if`.
    if ! PACKAGES=$PACKAGES SUITE=$SUITE MIRROR=$MIRROR GUEST_NAME=$GUEST_NAME \
        bash -euc "$(declare -f fill_root); fill_root \"\$1\"" _ "$root" \
        >"$work/build.log" 2>&1; then
        say "could not build the root system; see $work/build.log"
        exit 3
    fi
    cp "$root"/boot/vmlinuz-* "$work/vmlinuz"
    cp "$root"/boot/initrd.img-* "$work/initrd.img"
    rm -f "$root"/boot/vmlinuz-* "$root"/boot/initrd.img-*
    truncate -s 3G "$work/root.img.part"
    mkfs.ext4 -q -F -L root -d "$root" "$work/root.img.part" >>"$work/build.log" 2>&1
    rm -rf "$root"
    mv "$work/root.img.part" "$work/root.img" # last: its presence says "built"
}

[ -f "$work/root.img" ] || build_machine

# --- the job disk ------------------------------------------------------------
job=$(mktemp -d "$work/job.XXXXXX")
qemu=
trap '[ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true; rm -rf "$job"' EXIT
trap 'exit 130' INT TERM
mkdir "$job/disk" "$job/disk/in" "$job/disk/out"
cp -RL "$@" "$job/disk/in/"
chmod 755 "$job/disk/in/$(basename "$payload")"
basename "$payload" >"$job/disk/payload"
# Room for the files brought in, as much again, and 512 MB for the results.
truncate -s "$(($(du -sm "$job/disk" | cut -f1) * 2 + 512))M" "$job/job.img"
mkfs.ext4 -q -F -d "$job/disk" "$job/job.img"

# --- boot --------------------------------------------------------------------
began=$SECONDS
say "booting (console: $work/console.log)"
timeout "$limit" qemu-system-x86_64 \
    -accel tcg,thread=multi -cpu max -m "$GUEST_MB" -smp "$GUEST_CPUS" \
    -display none -monitor none -serial "file:$work/console.log" \
    -no-reboot -nic none \
    -kernel "$work/vmlinuz" -initrd "$work/initrd.img" \
    -append "root=/dev/vda rw console=ttyS0 panic=1 apparmor=0 systemd.unified_cgroup_hierarchy=1 $KERNEL_ARGS" \
    -drive "file=$work/root.img,format=raw,if=virtio,snapshot=on" \
    -drive "file=$job/job.img,format=raw,if=virtio,cache=unsafe" \
    </dev/null >&2 &
qemu=$!
status=0
wait "$qemu" || status=$?
qemu=
case $status in
    0) ;;
    124) say "the machine did not finish in $limit s; see $work/console.log"; exit 4 ;;
    *) say "qemu ended with status $status; see $work/console.log"; exit 4 ;;
esac

# --- results -----------------------------------------------------------------
debugfs -R "cat /status" "$job/job.img" 2>/dev/null >"$job/status"
[ -s "$job/status" ] || { say "the payload did not end; see $work/console.log"; exit 4; }
mkdir -p "$out"
debugfs -R "rdump /out $job" "$job/job.img" >/dev/null 2>&1
cp -R "$job/out/." "$out/"
say "payload ended with status $(cat "$job/status") after $((SECONDS - began)) s"
(cd "$out" && pwd)
exit "$(cat "$job/status")"
