# What the programs of this folder share: packages in a private root, processes that are found again,
# and the way back. Sourced by them, after `engine` (the name) is set.
#
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
#
# Nothing is installed: packages are unpacked into a cache folder, and mounts are made only in a
# mount namespace that ends with its last process. So a crash leaves processes, cgroups of containers
# and one folder, and `stop` finds all three without any record of what was going on.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/dltools-engines
homes=${ENGINES_HOME:-/var/lib/dltools-engines}
home=$homes/$engine
mark=DLTOOLS_TEST_ENGINE=$home
image=dltools-test-busybox
cgroups=/sys/fs/cgroup

fail() { echo "engines/$engine: $*" >&2; exit 1; }
usage() { sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 2; }

# One line that names all that this machine lacks.
need() {
    [ "$(id -u)" = 0 ] || fail "only root can start and stop engines"
    local tool missing=
    for tool in apt-get dpkg-deb flock mount nsenter setsid tar unshare; do
        command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing="$missing debian-archive-keyring"
    [ -z "$missing" ] || fail "missing:$missing (Debian: apt, dpkg, util-linux, mount, tar)"
}

# Two of these programs at once would unpack into one folder, or start one engine twice. The lock is
# on descriptor 9, which no daemon may inherit: it would hold the lock for its life.
lock() {
    mkdir -p "$cache"
    exec 9>"$cache/$engine.lock"
    flock 9
}
unlock() { exec 9>&-; }

# --- packages ----------------------------------------------------------------
# private_apt FOLDER KIND SUITE STATUS: read the lists of a Debian release (KIND is deb or deb-src) into a
# folder. `options` are apt-get's for it. The machine's proxy settings are read as ever; its sources, lists and
# packages are not.
private_apt() {
    local apt=$1 kind=$2 suite=$3 status=$4
    mkdir -p "$apt"/{lists,archives}/partial
    : >"$apt/none"
    echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "${MIRROR:-http://deb.debian.org/debian} $suite main" >"$apt/sources.list"
    options=(-qq -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=-
        -o "Dir::State::Lists=$apt/lists" -o "Dir::State::status=${status:-$apt/none}" -o "Dir::Cache=$apt"
        -o "Dir::Cache::archives=$apt/archives" -o APT::Sandbox::User=root -o Acquire::Languages=none
        -o Debug::NoLocking=1)
    apt-get "${options[@]}" update
}

# unpack TREE SUITE STATUS PACKAGE...: unpack packages and all that they depend on, but for what STATUS
# (a dpkg status file) lists, into the cache. Their scripts do not run. Afterwards no network is needed.
unpack() {
    local tree=$cache/$1 suite=$2 status=$3 apt options file
    shift 3
    [ ! -e "$tree/.complete" ] || return 0
    echo "engines/$engine: unpacking $* of Debian $suite into $tree" >&2
    apt=$tree.apt
    rm -rf "$tree" "$apt"
    mkdir -p "$apt" "$tree/usr"/{bin,sbin,lib,lib64}
    { private_apt "$apt" deb "$suite" "$status" &&
        apt-get "${options[@]}" install -y --download-only --no-install-recommends "$@"; } >"$apt/log" 2>&1 ||
        fail "cannot download $*: $(grep -m1 '^[EW]:' "$apt/log" || echo "see $apt/log")"
    # Debian 12 ships files under /lib that belong under /usr/lib: the links come first, and tar keeps them.
    for file in bin sbin lib lib64; do ln -s "usr/$file" "$tree/$file"; done
    for file in "$apt"/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$file" | tar -x --keep-directory-symlink -C "$tree" \
            --exclude ./usr/share/doc --exclude ./usr/share/man --exclude ./usr/share/locale ||
            fail "cannot unpack $file"
    done
    rm -rf "$apt"
    touch "$tree/.complete"
}

# --- the private root --------------------------------------------------------
# Mount a tree of packages as a root at $home/root, in this process's own mount namespace.
#
# An overlay, since runc's pivot_root wants a root that is a mount point, and the tree stays as it was.
# What a container or a log of the engine is called must be the same inside and outside, since dltools reads those
# files from outside: hence $home and the machine's own folders stand at their own places.
mount_root() {
    local tree=$1 home=$2 root=$2/root place
    mount -t overlay overlay -o "lowerdir=$tree,upperdir=$home/upper,workdir=$home/work" "$root"
    for place in /dev /proc /sys; do
        mkdir -p "$root$place"
        mount --rbind "$place" "$root$place"
        mount --make-rslave "$root$place"
    done
    for place in /*; do
        case $place in /bin | /boot | /dev | /etc | /lib* | /lost+found | /proc | /run | /sbin | /sys | /usr | /var) continue ;; esac
        if [ -d "$place" ] && [ ! -L "$place" ]; then
            mkdir -p "$root$place"
            mount --bind "$place" "$root$place"
        fi
    done
    mkdir -p "$root$home" "$root/run" "$root/var/tmp"
    mount --bind "$home" "$root$home"
}

# Files that the scripts of packages or this machine's owner would have written; engines copy some of them
# into containers.
write_etc() {
    mkdir -p "$home/upper/etc"
    echo root:x:0:0:root:/root:/bin/sh >"$home/upper/etc/passwd"
    echo root:x:0: >"$home/upper/etc/group"
    echo 127.0.0.1 localhost >"$home/upper/etc/hosts"
    : >"$home/upper/etc/resolv.conf"
    if [ -e /etc/machine-id ]; then cp /etc/machine-id "$home/upper/etc/machine-id"; fi
}

# spawn_in_root TREE CMD...: start a daemon in a private root; its process id goes to $home/pid.
spawn_in_root() {
    local tree=$cache/$1
    shift
    mkdir -p "$home"/{root,upper,work}
    # setsid: a signal to the terminal's group must not end the engine before `run` has ended.
    setsid unshare --mount --propagation slave bash -euc \
        "$(declare -f mount_root)"'
        mount_root "$1" "$2"; echo $$ >"$2/pid"; root=$2/root mark=$3; shift 3
        exec env -i "$mark" PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" "$@"' \
        bash "$tree" "$home" "$mark" "$@" </dev/null >>"$home/log" 2>&1 9>&- &
    started
}

# What was started last is `daemon`; disown, so that bash says nothing when it is killed.
started() { daemon=$!; disown; }

# Run a client of the engine in the daemon's own root and mounts.
inside() { env "$mark" nsenter --target "$(cat "$home/pid")" --mount --root --wd -- "$@" 9>&-; }

# wait_until CMD...: until the engine answers; says the last line of its log if it does not.
wait_until() {
    local _
    for _ in $(seq 300); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
        kill -0 "$daemon" 2>/dev/null || break
    done
    fail "the engine does not answer: $(tail -1 "$home/log")"
}

# --- an image ----------------------------------------------------------------
# write_image TREE NAME [CMD...]: an image of busybox and its applets, as `docker save` writes one, to
# standard output. Podman and containerd both load that.
write_image() {
    local tree=$cache/$1 name=$2 folder applet sum command=
    shift 2
    folder=$home/image
    mkdir -p "$folder/root/bin" "$folder/root/tmp"
    cp "$tree/bin/busybox" "$folder/root/bin/busybox"
    for applet in $("$tree/bin/busybox" --list); do
        [ "$applet" = busybox ] || ln -s busybox "$folder/root/bin/$applet"
    done
    # The same bytes each time, so that an image has the same id each time.
    tar -c --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$folder/root" -f "$folder/layer.tar" .
    sum=$(sha256sum "$folder/layer.tar" | cut -d' ' -f1)
    if [ $# -gt 0 ]; then command='"Entrypoint":['$(printf '"%s",' "$@" | sed 's/,$//')'],'; fi
    printf '{"architecture":"%s","os":"linux","config":{%s"Env":["PATH=/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"1970-01-01T00:00:00Z"}]}' \
        "$(dpkg --print-architecture)" "$command" "$sum" >"$folder/config.json"
    printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$name" >"$folder/manifest.json"
    tar -c -C "$folder" manifest.json config.json layer.tar
    rm -rf "$folder"
}

# --- the end -----------------------------------------------------------------
# The processes of the engine: daemons and all that they started, but for containers, carry a mark in their
# environment. No process id is trusted: after a crash it may be another program's.
marked() { grep -lszxF -e "$mark" /proc/[0-9]*/environ | cut -d/ -f3 || true; }

# The folders of a cgroup in all hierarchies (version 1) or in the only one (version 2).
folders_of() {
    local top
    for top in "$cgroups" "$cgroups"/*/; do
        if [ -d "${top%/}$1" ]; then echo "${top%/}$1"; fi
    done
}

# Remove a cgroup with all in it, and its parents as far as they are empty then: others may live beside it.
remove_empty() {
    local path=$1 folder
    for folder in $(folders_of "$path"); do
        find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    while path=$(dirname "$path"); [ "$path" != / ]; do
        for folder in $(folders_of "$path"); do rmdir "$folder" 2>/dev/null || true; done
    done
}

# end_cgroup PATH: kill what runs in the cgroup of a container, and remove it and what it leaves empty.
end_cgroup() {
    local folders pids file _
    [ "$1" != / ] || return 0
    folders=$(folders_of "$1")
    [ -n "$folders" ] || return 0
    for _ in $(seq 100); do
        # shellcheck disable=SC2086
        pids=$(find $folders -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u)
        [ -n "$pids" ] || break
        # What is frozen takes no signal, in whichever hierarchy the freezer is.
        # shellcheck disable=SC2086
        find $folders -name freezer.state -o -name cgroup.freeze 2>/dev/null | while read -r file; do
            case $file in
            */freezer.state) echo THAWED >"$file" ;;
            *) echo 0 >"$file" ;;
            esac
        done 2>/dev/null || true
        # shellcheck disable=SC2086
        kill -KILL $pids 2>/dev/null || true
        sleep 0.02
    done
    remove_empty "$1"
}

# end [PATH...]: end all processes of the engine, and remove the cgroups at PATH, those of its containers, and its folder.
end() {
    local path pids _
    for _ in $(seq 100); do
        pids=$(marked)
        [ -n "$pids" ] || break
        # shellcheck disable=SC2086
        kill -KILL $pids 2>/dev/null || true
        sleep 0.05
    done
    [ -z "$pids" ] || fail "processes do not end: $pids"
    [ -d "$home" ] || return 0
    # Each OCI runtime is told the cgroup of a container in the file config.json.
    for path in "$@" $(find "$home" -path "$home/root" -prune -o -path "$home/upper" -prune -o \
        -name config.json -exec sed -n 's/.*"cgroupsPath": *"\(\/[^"]*\)".*/\1/p' {} + | sort -u); do
        end_cgroup "$path"
    done
    rm -rf --one-file-system "$home"
    rmdir "$homes" 2>/dev/null || true
}

# --- the words that each program knows ---------------------------------------
# Each program defines begin (start the engine), answers (does it), leave (stop it), address and version (print
# them), settings (the environment of CMD) and, where CMD is to run elsewhere, within.
# An engine whose start was cut short may answer, but has no image.
ready() { [ -e "$home/ready" ] && answers; }
main() {
    case ${1-} in
    start)
        need; lock
        if ! ready; then
            trap leave EXIT
            leave; begin
            touch "$home/ready"
            trap - EXIT
        fi
        address
        ;;
    stop) need; lock; leave ;;
    version) need; version ;;
    run)
        shift
        [ $# -gt 0 ] || usage
        need; lock
        if ! ready; then
            # Whatever ends CMD, the engine ends too. One that was up before stays up.
            trap 'lock; leave' EXIT
            trap 'exit 143' TERM HUP
            leave; begin
            touch "$home/ready"
        fi
        unlock
        settings
        within "$@"
        ;;
    *) usage ;;
    esac
}
within() { "$@"; }
