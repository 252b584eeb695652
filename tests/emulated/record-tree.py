#!/usr/bin/env python3
"""Record the kernel and engine files of running containers as a fixture tree.

    record-tree.py OUTDIR CONTAINER...

Writes OUTDIR/root/<absolute path> for the /proc and /sys/fs/cgroup files of
each container and of its cgroup's ancestors, and OUTDIR/{inspect,containers,
info,version}.json from the engine. Needs root and Python's own library only.
Settings: NODE_NAME replaces the host name in info.json. Left out: files over
64 KiB, links, and the hugetlb, rdma and misc controllers' files.
"""

import http.client
import json
import os
import socket
import stat
import sys
import time

LIMIT = 64 * 1024
SOCKET = "/var/run/docker.sock"
V1_WANTED = {"cpu", "cpuacct", "cpuset", "memory", "freezer", "blkio", "pids"}
NAMES_LEFT_OUT = ("hugetlb.", "rdma.", "misc.")
INFO_DROPPED = (
    "HttpProxy",
    "HttpsProxy",
    "NoProxy",
    "RegistryConfig",
    "Swarm",
    "Labels",
    "IndexServerAddress",
)


class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(SOCKET)


def engine(path):
    connection = UnixConnection("x")
    connection.request("GET", path)
    reply = connection.getresponse()
    body = reply.read()
    if reply.status != 200:
        raise SystemExit(f"{path}: {reply.status} {body!r}")
    return json.loads(body)


def read_into(files, path, expected=False):
    """Put the file's bytes in `files`, unless it cannot be read or is big."""
    try:
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode) or not mode & 0o444:
            return
        with open(path, "rb") as source:
            data = source.read(LIMIT + 1)
    except OSError as error:
        if expected:
            print(f"not recorded: {path}: {error}", file=sys.stderr)
        return
    if len(data) > LIMIT:
        print(f"not recorded, over {LIMIT} bytes: {path}", file=sys.stderr)
        return
    files[path] = data


def hierarchies(pid):
    """(mount point, path under it) for each hierarchy worth recording."""
    mounts = {}
    with open("/proc/self/mountinfo") as lines:
        for line in lines:
            before, after = line.rstrip("\n").split(" - ", 1)
            point = before.split()[4]
            kind, _, options = after.split(None, 2)
            if kind == "cgroup2":
                mounts.setdefault("", point)
            elif kind == "cgroup":
                for option in options.split(","):
                    mounts.setdefault(option, point)
    with open(f"/proc/{pid}/cgroup") as lines:
        for line in lines:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for name in controllers.split(","):
                if name in mounts and (name == "" or name in V1_WANTED):
                    yield mounts[name], path


def main():
    out, names = sys.argv[1], sys.argv[2:]
    inspect = [engine(f"/containers/{name}/json") for name in names]
    containers = engine("/containers/json")
    info, version = engine("/info"), engine("/version")
    for key in INFO_DROPPED:
        info.pop(key, None)
    if os.environ.get("NODE_NAME"):
        info["Name"] = os.environ["NODE_NAME"]

    pids = [c["State"]["Pid"] for c in inspect]
    directories = set()
    for pid in ["self"] + pids:
        for point, path in hierarchies(pid):
            parts = [p for p in path.split("/") if p]
            for depth in range(len(parts) + 1):
                directories.add("/".join([point] + parts[:depth]))

    # Read all before writing any, ahead of the busy containers, so that the
    # files are of nearly one moment.
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError as error:
        print(f"no real-time priority: {error}", file=sys.stderr)
    began = time.monotonic()
    files = {}
    for directory in sorted(directories):
        for name in sorted(os.listdir(directory)):
            if not name.startswith(NAMES_LEFT_OUT):
                read_into(files, f"{directory}/{name}")
    for pid in pids:
        for name in ("cgroup", "mountinfo", "status", "stat", "net/dev"):
            read_into(files, f"/proc/{pid}/{name}", True)
    for name in (
        "self/cgroup",
        "self/mountinfo",
        "stat",
        "meminfo",
        "loadavg",
        "uptime",
        "pressure/cpu",
        "pressure/memory",
        "pressure/io",
    ):
        read_into(files, f"/proc/{name}", True)
    read_into(files, "/sys/devices/system/cpu/online", True)
    print(f"{len(files)} files read in {time.monotonic() - began:.2f} s")

    for path, data in files.items():
        target = f"{out}/root{path}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as sink:
            sink.write(data)
    for name, value in (
        ("inspect", inspect),
        ("containers", containers),
        ("info", info),
        ("version", version),
    ):
        with open(f"{out}/{name}.json", "w") as sink:
            json.dump(value, sink, indent=1)
            sink.write("\n")


main()
