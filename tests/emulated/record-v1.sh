#!/bin/bash
# Record the fixtures of this machine's own Docker engine (cgroup v1 or v2).
#
#   record-v1.sh OUTDIR
#
# Makes an image fx-bb from the machine's static busybox, runs the containers of
# record-fixtures.sh with the prefix fx-, and removes both. The host name in
# info.json becomes $NODE_NAME (default node-v1).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
busybox=$(command -v busybox) || {
    echo "record-v1: install busybox: apt-get install busybox-static" >&2
    exit 2
}
root=$(mktemp -d "${TMPDIR:-/tmp}/fx-bb.XXXXXX")
trap 'rm -rf "$root"; docker rmi fx-bb >/dev/null 2>&1 || true' EXIT
mkdir "$root"/{bin,etc,tmp,proc,sys,dev}
cp "$busybox" "$root/bin/busybox"
"$busybox" --list | while read -r applet; do
    [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
tar -c -C "$root" . | docker import - fx-bb >/dev/null
NODE_NAME=${NODE_NAME:-node-v1} IMAGE=fx-bb "$here/record-fixtures.sh" "$1" fx-
