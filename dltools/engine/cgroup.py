"""A container's counters and limits, read from the kernel's cgroup files, versions 1 and 2.

The directories are found through /proc/PID/cgroup and the cgroup mounts of /proc/self/mountinfo;
no path is guessed, so every driver (cgroupfs, systemd) and every --cgroup-parent is served. Each
controller is looked up by itself, for hosts that mix both versions.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dltools.engine.weight import weight_from_v2

ROOT = Path("/")
_UNLIMITED_V1 = 1 << 62
"""Version 1 writes "no memory limit" as the largest multiple of a page; none real comes near."""

_LARGEST = 1 << 16

Read = Callable[["Path | str"], str]
"""How a file is read: `read_text`, or a cgroup's own `read`."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A cgroup mount: its directory, which cgroup it shows there, and its controllers.

    `controllers` is empty for version 2.
    """

    directory: Path
    root: str
    controllers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a cgroup's files say; None where there is no such file. Seconds, bytes, cores.

    `cpu_limit` and `memory_limit` are None for no limit too: look into `known` for the difference.
    """

    cpu_seconds: float | None = None
    throttled_seconds: float | None = None
    cpu_limit: float | None = None
    cpu_weight: float | None = None
    cpuset: str | None = None
    threads: int | None = None
    memory_usage: int | None = None
    memory_working_set: int | None = None
    memory_anon: int | None = None
    memory_file: int | None = None
    memory_shmem: int | None = None
    memory_limit: int | None = None
    io_read: int | None = None
    io_write: int | None = None
    pressure: Mapping[str, float] = field(default_factory=dict)
    known: frozenset[str] = frozenset()


class Cgroup:
    """The cgroup of one process: the directory of each controller, and its version."""

    def __init__(self, directories: Mapping[str, Path], unified: Path | None) -> None:
        """`directories` maps version 1 controllers, `unified` is version 2's directory."""
        self._v1 = directories
        self.unified = unified
        self._held: dict[Path | str, int] = {}

    def __del__(self) -> None:
        """Close the files that were held open."""
        self.release()

    def read(self, path: Path | str) -> str:
        """Return the text of one of the cgroup's files; once `hold_files` was called it stays open,
        since opening takes five times as long as reading (measured)."""
        handle = self._held.get(path)
        if handle is None:
            if Cgroup._holding >= Cgroup._most:
                return read_text(path)
            try:
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                handle = -1  # a file that this kernel does not have
            except OSError:
                return ""
            self._held[path] = handle
            Cgroup._holding += handle >= 0
        if handle < 0:
            return ""
        try:
            return os.pread(handle, _LARGEST, 0).decode()
        except (OSError, UnicodeDecodeError):
            return ""

    def release(self) -> None:
        """Close the files that were held open."""
        while self._held:
            _, handle = self._held.popitem()
            if handle >= 0:
                os.close(handle)
                Cgroup._holding -= 1

    _holding = 0
    _most = 0

    def directory(self, controller: str) -> tuple[Path, int] | None:
        """Return a controller's directory and version, None where it is not mounted."""
        if controller in self._v1:
            return self._v1[controller], 1
        return (self.unified, 2) if self.unified is not None else None

    @property
    def exists(self) -> bool:
        """Whether the cgroup is still there."""
        found = self.directory("cpu")
        return found is not None and found[0].is_dir()

    def ancestors(self, controller: str) -> Iterator[tuple[Path, int]]:
        """Yield the directories above a controller's, nearest first, the mount's own included."""
        found = self.directory(controller)
        if found is None:
            return
        path, version = found
        marker = "cgroup.procs"
        while (path.parent / marker).exists():
            path = path.parent
            yield path, version


def hold_files() -> None:
    """From now on keep cgroups' files open between samples: half of what the system lets us open,
    the soft limit raised to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
        except (OSError, ValueError):
            pass
    Cgroup._most = (most if soft == resource.RLIM_INFINITY else soft) // 2


def mounts(root: Path = ROOT) -> list[Mount]:
    """Return the cgroup mounts that this process sees."""
    found = []
    for line in read_text(f"{root}/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, options = left.split(), right.split()
        if len(fields) < 5 or len(options) < 3 or options[0] not in ("cgroup", "cgroup2"):
            continue
        names = frozenset(options[2].split(",")) if options[0] == "cgroup" else frozenset()
        directory = root / _unescape(fields[4]).lstrip("/")
        found.append(Mount(directory, _unescape(fields[3]), names))
    return found


def of_process(pid: int, mounted: list[Mount], root: Path = ROOT) -> Cgroup | None:
    """Return the cgroup of a process, None where the process or every mount is out of sight."""
    v1: dict[str, Path] = {}
    unified: Path | None = None
    for line in read_text(f"{root}/proc/{pid}/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        names = frozenset(filter(None, controllers.split(",")))
        for mount in mounted:
            if (number == "0" and not names) != (not mount.controllers):
                continue
            if names and not names & mount.controllers:
                continue
            if (directory := _below(mount, path)) is None:
                continue
            if names:
                v1 = {**dict.fromkeys(names, directory), **v1}
            elif unified is None:
                unified = directory
    return Cgroup(v1, unified) if v1 or unified else None


def belongs_to(pid: int, container_id: str, root: Path = ROOT) -> bool:
    """Tell whether a local process is in a container: its cgroup's path holds the container's id.

    A remote engine's process ids mean nothing here.
    """
    return container_id in read_text(f"{root}/proc/{pid}/cgroup")


def _below(mount: Mount, path: str) -> Path | None:
    top = mount.root.rstrip("/")
    if path != top and not path.startswith(f"{top}/"):
        return None
    return mount.directory / path[len(top) :].lstrip("/")


def _unescape(text: str) -> str:
    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)


# Files


def read_text(path: Path | str) -> str:
    """Return a file's text, "" where it cannot be read: a cgroup may vanish at any time.

    By system calls: `Path.read_text` takes three times as long, and a sample reads 15 files a
    container.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        data = os.read(handle, 1 << 16)
        while data and (more := os.read(handle, 1 << 16)):
            data += more
        return data.decode()
    except (OSError, UnicodeDecodeError):
        return ""
    finally:
        os.close(handle)


def read_int(path: Path | str, read: Read = read_text) -> int | None:
    """Return the number in a one-number file, None where there is no number."""
    text = read(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None


def read_flat(path: Path | str, read: Read = read_text) -> dict[str, int]:
    """Return a file of `key value` lines."""
    pairs = (line.partition(" ") for line in read(path).split("\n"))
    return {key: int(value) for key, _, value in pairs if value.lstrip("-").isdigit()}


def pressure_seconds(path: Path | str, read: Read = read_text) -> float | None:
    """Return the total of a pressure file's `some` line, in seconds."""
    some, _, rest = read(path).partition("\n")[0].partition(" total=")
    return int(rest) / 1e6 if some.startswith("some ") and rest.isdigit() else None


def quota_cores(directory: Path, version: int, read: Read = read_text) -> float | None:
    """Return the CPU quota set on one cgroup in cores, None for none."""
    if version == 2:
        quota, _, period = read(f"{directory}/cpu.max").strip().partition(" ")
        return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None
    limit, span = (read_int(f"{directory}/cpu.cfs_{w}_us", read) for w in ("quota", "period"))
    return limit / span if limit and span and limit > 0 else None


def weight(directory: Path, version: int, read: Read = read_text) -> float | None:
    """Return the CPU weight of one cgroup in Docker's shares: 1024 is the default of both."""
    if version == 1:
        shares = read_int(f"{directory}/cpu.shares", read)
        return None if shares is None else float(shares)
    steps = read_int(f"{directory}/cpu.weight", read)
    return None if steps is None else weight_from_v2(steps)


def cpuset(directory: Path, version: int, read: Read = read_text) -> str | None:
    """Return the CPUs that a cgroup may really use."""
    name = "cpuset.cpus.effective" if version == 2 else "cpuset.effective_cpus"
    return read(f"{directory}/{name}").strip() or read(f"{directory}/cpuset.cpus").strip() or None


# Usage


def usage(cgroup: Cgroup) -> Usage:
    """Read a cgroup's counters and limits."""
    read = cgroup.read
    values: dict[str, object] = {}
    known: set[str] = set()
    if found := cgroup.directory("cpu"):
        directory, version = found
        values["cpu_limit"] = quota_cores(directory, version, read)
        values["cpu_weight"] = weight(directory, version, read)
        if values["cpu_weight"] is not None:
            known.add("cpu_limit")
        stat = read_flat(f"{directory}/cpu.stat", read)
        if "throttled_usec" in stat:
            values["throttled_seconds"] = stat["throttled_usec"] / 1e6
        elif "throttled_time" in stat:
            values["throttled_seconds"] = stat["throttled_time"] / 1e9
        if version == 2 and "usage_usec" in stat:
            values["cpu_seconds"] = stat["usage_usec"] / 1e6
    if (found := cgroup.directory("cpuacct")) and found[1] == 1:
        nanos = read_int(f"{found[0]}/cpuacct.usage", read)
        values["cpu_seconds"] = None if nanos is None else nanos / 1e9
    if found := cgroup.directory("cpuset"):
        values["cpuset"] = cpuset(*found, read)
    if found := cgroup.directory("pids"):
        values["threads"] = read_int(f"{found[0]}/pids.current", read)
    if found := cgroup.directory("memory"):
        values |= _memory(*found, read)
        if values["memory_usage"] is not None:
            known.add("memory_limit")
    if found := cgroup.directory("blkio"):
        values |= _io(*found, read)
    if cgroup.unified is not None:  # version 1 hosts keep it in the unified hierarchy, too
        values["pressure"] = {
            name: total
            for name in ("cpu", "memory", "io")
            if (total := pressure_seconds(f"{cgroup.unified}/{name}.pressure", read)) is not None
        }
    return Usage(**values, known=frozenset(known))  # type: ignore[arg-type]


def _memory(directory: Path, version: int, read: Read) -> dict[str, object]:
    if version == 2:
        used, limit = (read_int(f"{directory}/memory.{name}", read) for name in ("current", "max"))
        names = ("inactive_file", "anon", "file", "shmem")
    else:
        used, limit = (
            read_int(f"{directory}/memory.{name}_in_bytes", read) for name in ("usage", "limit")
        )
        names = ("total_inactive_file", "total_rss", "total_cache", "total_shmem")
    text = "\n" + read(f"{directory}/memory.stat")
    inactive, anon, file, shmem = (_number_after(f"\n{name} ", text) for name in names)
    return {
        "memory_usage": used,
        "memory_working_set": None if used is None else max(0, used - (inactive or 0)),
        "memory_anon": anon,
        "memory_file": file,
        "memory_shmem": shmem,
        "memory_limit": None if limit is None or limit >= _UNLIMITED_V1 else limit,
    }


def _number_after(key: str, text: str) -> int | None:
    """Return the number that follows a key up to the line's end: four of memory.stat's forty."""
    at = text.find(key)
    if at < 0:
        return None
    number = text[at + len(key) : text.find("\n", at + len(key))]
    return int(number) if number.isdigit() else None


def _io(directory: Path, version: int, read: Read) -> dict[str, object]:
    if version == 2:
        text = read(f"{directory}/io.stat")
        taken, written = (
            sum(int(n) for n in re.findall(rf"\b{key}=(\d+)", text)) for key in ("rbytes", "wbytes")
        )
        return {"io_read": taken, "io_write": written}
    for name in ("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"):
        if text := read(f"{directory}/{name}"):
            taken, written = (
                sum(int(n) for n in re.findall(rf" {key} (\d+)", text)) for key in ("Read", "Write")
            )
            return {"io_read": taken, "io_write": written}
    return {}


def network_bytes(
    pid: int, root: Path = ROOT, read: Read = read_text
) -> tuple[int | None, int | None]:
    """Return the bytes received and sent in a process's network namespace, lo left out."""
    received = sent = None
    for line in read(f"{root}/proc/{pid}/net/dev").splitlines():
        name, colon, numbers = line.partition(":")
        fields = numbers.split()
        if colon and name.strip() != "lo" and len(fields) >= 9:
            received = (received or 0) + int(fields[0])
            sent = (sent or 0) + int(fields[8])
    return received, sent
