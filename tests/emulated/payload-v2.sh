#!/bin/bash
# Payload for boot-v2.sh: record the fixtures under both cgroup drivers.
#   boot-v2.sh payload-v2.sh record-fixtures.sh record-tree.py
set -euo pipefail
for driver in systemd cgroupfs; do
    if [ "$driver" = cgroupfs ]; then # the default on this machine is systemd
        echo '{"exec-opts": ["native.cgroupdriver=cgroupfs"]}' >/etc/docker/daemon.json
        systemctl restart docker
    fi
    docker info --format 'driver {{.CgroupDriver}}, cgroup v{{.CgroupVersion}}'
    bash ./record-fixtures.sh "$OUT/v2-$driver"
done
