"""The kernel's files of a container's CPU settings, read and written without the engine, and the
base of what engines set limits in them with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from dltools.engine.cgroup_files import Directory
from dltools.engine.interface import (
    Container,
    Engine,
    GoneError,
    LocatedContainer,
    RefusedError,
    UnableError,
)
from dltools.engine.kernel_reading import read_text
from dltools.engine.kernel_scales import LEAST_SHARES, fitting_period, quota_in_us, weight_to_v2
from dltools.engine.parts import LimitChange, Original, SetsLimits, part
from dltools.notation.limits import CPU_LIMITS, Limits, only

CPUSET = "cpuset.cpus"
_PERIOD_V1, _QUOTA_V1, _BURST_V1 = "cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.cfs_burst_us"
_QUOTA_V2, _BURST_V2 = "cpu.max", "cpu.max.burst"
_WEIGHTS = {1: "cpu.shares", 2: "cpu.weight"}

_FILES = {
    1: (_PERIOD_V1, _QUOTA_V1, _BURST_V1, _WEIGHTS[1]),
    2: (_QUOTA_V2, _BURST_V2, _WEIGHTS[2]),
}
"""The files of each version's controller cpu, in the order in which they are written."""

_LIFTED = ((_PERIOD_V1, _QUOTA_V1, "-1"), (_BURST_V1, _BURST_V1, "0"), (_BURST_V2, _BURST_V2, "0"))
"""Before a file changes, what another one has meanwhile: at no moment may the burst be over the
quota, or the quota too small for the period."""


def read_files(located: LocatedContainer) -> dict[str, str]:
    """Return the texts of the files that an action can change, of those that are there. Where an
    engine sets them, the CPU list is that in use: version 2 has no text for "all" at first, and the
    engine cannot set that."""
    texts = {}
    for name, path in _paths(located).items():
        with suppress(OSError):
            texts[name] = path.read_text().strip()
    if CPUSET in texts and not located.container.cgroup_path:
        texts[CPUSET] = _directory(located, "cpuset").cpuset() or ""
    return texts


def _paths(located: LocatedContainer) -> dict[str, Path]:
    directory, cpuset = located.controller("cpu"), located.controller("cpuset")
    paths = {name: directory.path / name for name in _FILES[directory.version]} if directory else {}
    return {**paths, CPUSET: cpuset.path / CPUSET} if cpuset else paths


def write_files(located: LocatedContainer, texts: Mapping[str, str]) -> None:
    """Write those of the texts that differ from what is there. Raises OSError."""
    paths = _paths(located)

    def differing() -> list[str]:
        present = read_files(located)
        return [path for path in paths if texts.get(path, present.get(path)) != present.get(path)]

    changing = differing()
    for cause, name, neutral in _LIFTED:
        if cause in changing:
            paths[name].write_text(neutral)
    for name in differing():
        _write_line(paths[name], texts[name])


def _write_line(path: Path, text: str) -> None:
    """Write a text. Of an empty one that is a line end, without which nothing would be written. An
    empty list of CPUs the kernel refuses while there are processes: then it is all CPUs."""
    if text or path.name != CPUSET:
        path.write_text(text or "\n")
        return
    with suppress(OSError):
        path.write_text("\n")
    if read_text(path).strip():
        path.write_text(_cpus_above(path))


def _cpus_above(path: Path) -> str:
    """Return the list of CPUs that a cgroup of version 2 has without a list of its own."""
    return read_text(path.parent.parent / f"{CPUSET}.effective").strip()


def are_original(located: LocatedContainer, original: Mapping[str, str]) -> bool:
    """Tell whether the files have their original texts, as far as those are known: an empty list of
    CPUs is the same as all CPUs. A file that is gone with its controller, as systemd takes it away,
    holds no limit any more."""
    if located.cgroup is None or not located.cgroup.exists:
        return False
    current, cpuset = read_files(located), located.controller("cpuset")
    original = dict(original)
    if cpuset is not None and original.get(CPUSET) == "" != current.get(CPUSET):
        original[CPUSET] = _cpus_above(cpuset.path / CPUSET)
    return all(original.get(name, text) == text for name, text in current.items())


def write_settings(located: LocatedContainer, settings: Limits) -> None:
    """Write CPU settings into the files. Raises OSError."""
    texts: dict[str, str] = {}
    if "cpus" in settings:
        texts |= _quota_texts(located, settings["cpus"])
    if "weight" in settings:
        version, weight = _directory(located, "cpu").version, settings["weight"]
        count = max(LEAST_SHARES, round(weight)) if version == 1 else weight_to_v2(weight)
        texts[_WEIGHTS[version]] = str(count)
    if "cpuset" in settings:
        _directory(located, "cpuset")
        texts[CPUSET] = settings["cpuset"] or located.usable_cpu_list
    write_files(located, texts)


def _quota_texts(located: LocatedContainer, cpus: float | None) -> dict[str, str]:
    """Return the texts of a quota, and of a burst that would be over it."""
    is_v1, present = _directory(located, "cpu").version == 1, read_files(located)
    told = present.get(_PERIOD_V1 if is_v1 else _QUOTA_V2, "").split()
    period = fitting_period(cpus or 1.0, int(told[-1]) if told else None)
    quota = None if cpus is None else quota_in_us(cpus, period)
    if is_v1:
        texts = {_PERIOD_V1: str(period), _QUOTA_V1: "-1" if quota is None else str(quota)}
    else:
        texts = {_QUOTA_V2: f"{'max' if quota is None else quota} {period}"}
    burst = _BURST_V1 if is_v1 else _BURST_V2
    if quota is not None and int(present.get(burst) or 0) > quota:
        texts[burst] = str(quota)
    return texts


class WritesLimits(SetsLimits):
    """Sets limits in the kernel's files where these are all that there is, and else
    by an update of its own."""

    leaves_record: ClassVar[bool] = False
    """Whether limits go to the files alone where these can be written. The engine's record has the
    owner's then, whatever is in force: an update by the owner is told by it, and never refused."""

    def set_limits(self, change: LimitChange) -> None:
        """Set CPU limits. Raises `GoneError` or `RefusedError`; `UnableError` where an update could
        cut off the container's GPU, and the files cannot be written."""
        located, original = change.located, change.original
        if original is None:
            self._set(change)
        elif located.container.files_only:
            with _refused(located.container):
                write_files(located, original.files)
        else:
            _write_original(located, original)  # a quota that is as it was needs no update
            self.update_limits(change)
            _write_original(located, original)

    def _set(self, change: LimitChange) -> None:
        """Set limits. An update may lead systemd to write again what it knows of the others."""
        located, limits = change.located, change.wanted
        in_files = _names_in_files(located, self.leaves_record)
        with _refused(located.container):
            write_settings(located, only(limits, in_files))
        if others := only(limits, limits.keys() - in_files):
            self.update_limits(change._replace(wanted=others))
            with _refused(located.container):
                write_settings(located, only(limits, in_files))

    def update_limits(self, change: LimitChange) -> None:
        """Set CPU limits by an update, and the quota of the original fields."""

    def renew(self, container: Container) -> None:
        """Bring into force what is on the engine's record."""


def names_in_files(engine: Engine, located: LocatedContainer) -> frozenset[str]:
    """Return the names of the limits that an engine sets in the kernel's files alone: its record
    has the owner's, and a restart of the container brings these back."""
    able = part(engine, WritesLimits)
    return _names_in_files(located, able is not None and able.leaves_record)


def _names_in_files(located: LocatedContainer, leaves_record: bool) -> frozenset[str]:
    if located.container.files_only:
        return frozenset(CPU_LIMITS)
    directory = located.controller("cpu")
    if not leaves_record or directory is None or not _can_write(directory):
        return frozenset()
    return frozenset({"cpus", "weight", *(["cpuset"] if located.controller("cpuset") else [])})


def _can_write(directory: Directory) -> bool:
    try:
        with (directory.path / _FILES[directory.version][0]).open("r+"):
            return True
    except OSError:
        return False


def _write_original(located: LocatedContainer, original: Original) -> None:
    """Write the files as they were, where that can be done: the caller reads what is in force."""
    if not are_original(located, original.files):
        with suppress(OSError):
            write_files(located, original.files)


@contextmanager
def _refused(container: Container) -> Iterator[None]:
    """Turn an error in writing files into one of an engine."""
    why = "its cgroup files cannot be written"
    try:
        yield
    except OSError as error:
        if container.files_only and container.has_gpu:
            reason = f"an engine update could cut off its GPU, and {why}: {error.strerror or error}"
            raise UnableError(reason) from error
        if isinstance(error, FileNotFoundError) and error.filename is not None:
            raise GoneError("its cgroup no longer exists") from error
        raise RefusedError(f"{why}: {error.strerror or error}") from error


def _directory(located: LocatedContainer, controller: str) -> Directory:
    directory = located.controller(controller)
    if directory is None:
        raise FileNotFoundError(f"its {controller} cgroup is not visible here")
    return directory
