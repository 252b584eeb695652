"""The kernel's files of a container's CPU settings, read and written without the engine, and
the one place that chooses between them and the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from dltools.engine.cgroup_files import Directory
from dltools.engine.interface import (
    Container,
    CpuLimits,
    Engine,
    Fields,
    GoneError,
    LocatedContainer,
    RefusedError,
    SetsLimits,
    UnableError,
    needed,
)
from dltools.engine.kernel_files import read_int, read_text
from dltools.engine.scales import LEAST_SHARES, PERIOD_US, quota_in_us, weight_to_v2

CPUSET = "cpuset.cpus"
_QUOTA_V1 = "cpu.cfs_quota_us"
_V1_FILES = (_QUOTA_V1, "cpu.cfs_period_us", "cpu.shares")
_V2_FILES = ("cpu.max", "cpu.weight")
_BURST_V1, _BURST_V2 = "cpu.cfs_burst_us", "cpu.max.burst"


def read_files(located: LocatedContainer) -> dict[str, str]:
    """Return the texts of the files that an action can change, {} if they are not visible."""
    if located.container.cgroup_path:
        return _own_texts(located)
    found = located.controller("cpu")
    if found is None:
        return {}
    directory, version = found
    names = _V2_FILES if version == 2 else _V1_FILES
    texts = {name: read_text(directory / name).strip() for name in names}
    if cpuset_directory := located.controller("cpuset"):
        # The CPUs in use: version 2 has no text for "all" at first, and the engine cannot set that.
        texts[CPUSET] = cpuset_directory.cpuset() or ""
    return texts


def _own_texts(located: LocatedContainer) -> dict[str, str]:
    """Return the texts of the files that are there, of a container that has no other record."""
    texts = {}
    for name, path in _own_files(located).items():
        with suppress(OSError):
            texts[name] = path.read_text().strip()
    return texts


def _own_files(located: LocatedContainer) -> dict[str, Path]:
    found, cpuset = located.controller("cpu"), located.controller("cpuset")
    names: tuple[str, ...] = ()
    if found is not None:
        names = (_BURST_V2, *_V2_FILES) if found.version == 2 else (_BURST_V1, *_V1_FILES)
    files = {name: found.path / name for name in names if found}
    return {**files, CPUSET: cpuset.path / CPUSET} if cpuset else files


def _write_own(located: LocatedContainer, texts: Mapping[str, str]) -> None:
    """Write those texts that differ. Burst and quota are lifted first: at no moment may the burst
    be over the quota, or the quota too small for the period."""
    present, files = _own_texts(located), _own_files(located)
    left = {name for name, text in texts.items() if present.get(name, text) != text}
    for group in (("cpu.cfs_period_us", _QUOTA_V1, _BURST_V1), ("cpu.max", _BURST_V2)):
        if not left & set(group):
            continue
        if _QUOTA_V1 in group:
            files[_QUOTA_V1].write_text("-1")
        if group[-1] in present:
            files[group[-1]].write_text("0")
        for name in group:
            if name in texts and name in present:
                files[name].write_text(texts[name])
        left -= set(group)
    for name in sorted(left):
        _write_line(files[name], texts[name])


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
    CPUs is the same as all CPUs. Of a container that has no other record, a file that is gone with
    its controller, as systemd takes it away, holds no limit any more."""
    current, cpuset = read_files(located), located.controller("cpuset")
    original = dict(original)
    if cpuset is not None and original.get(CPUSET) == "" != current.get(CPUSET):
        original[CPUSET] = _cpus_above(cpuset.path / CPUSET)
    if located.container.cgroup_path and located.cgroup is not None and located.cgroup.exists:
        return all(original.get(name, text) == text for name, text in current.items())
    return bool(current) and all(current.get(name) == text for name, text in original.items())


def write_files(located: LocatedContainer, texts: Mapping[str, str]) -> None:
    """Write texts that `read_files` returned. Raises OSError."""
    if located.container.cgroup_path:
        _write_own(located, texts)
        return
    directory, version = _directory(located, "cpu")
    if version == 1:  # a period alone could be too short for the quota in force
        (directory / _QUOTA_V1).write_text("-1")
    for name, text in sorted(texts.items(), key=lambda item: item[0] == _QUOTA_V1):
        if name != CPUSET:
            (directory / name).write_text(text)
    if texts.get(CPUSET) and read_files(located).get(CPUSET) != texts[CPUSET]:
        _write_cpu_list(located, texts[CPUSET])


def write_settings(located: LocatedContainer, settings: CpuLimits) -> None:
    """Write CPU settings into the files. Raises OSError."""
    if "cpus" in settings:
        directory, version = _directory(located, "cpu")
        (_write_quota_v1 if version == 1 else _write_quota_v2)(directory, settings["cpus"])
    if "cpu_weight" in settings:
        _write_weight(*_directory(located, "cpu"), settings["cpu_weight"])
    if "cpuset" in settings:
        _write_cpu_list(located, settings["cpuset"] or located.usable_cpu_list)


def set_limits(
    engine: Engine, located: LocatedContainer, wanted: CpuLimits, is_in_force: Callable[[], bool]
) -> None:
    """Set CPU limits as `SetsLimits` does, or in the files where these are all that there is.

    Raises `GoneError` or `RefusedError`; `UnableError` where an engine's update could cut off the
    container's GPU, and the files cannot be written.
    """
    if not located.container.files_only:
        needed(engine, SetsLimits).set_limits(located, wanted, is_in_force)
        return
    with _refused(located.container):
        write_settings(located, wanted)


def restore_limits(
    engine: Engine,
    located: LocatedContainer,
    original: Fields,
    texts: Mapping[str, str],
    wanted: CpuLimits,
    is_in_force: Callable[[], bool],
) -> None:
    """Restore limits as `SetsLimits` does, and the texts of the files. Raises as `set_limits`
    does."""
    if located.container.files_only:
        with _refused(located.container):
            write_files(located, texts)
        return
    needed(engine, SetsLimits).restore_limits(located, original, wanted, is_in_force)
    if texts and read_files(located) and not are_original(located, texts):
        with suppress(OSError):  # the caller reads back what is in force
            write_files(located, texts)


@contextmanager
def _refused(container: Container) -> Iterator[None]:
    """Turn an error in writing files into one of an engine."""
    why = "its cgroup files cannot be written"
    try:
        yield
    except OSError as error:
        if container.has_gpu:
            reason = f"an engine update could cut off its GPU, and {why}: {error.strerror or error}"
            raise UnableError(reason) from error
        if isinstance(error, FileNotFoundError) and error.filename is not None:
            raise GoneError("its cgroup no longer exists") from error
        raise RefusedError(f"{why}: {error.strerror or error}") from error


def _directory(located: LocatedContainer, controller: str) -> Directory:
    found = located.controller(controller)
    if found is None:
        raise FileNotFoundError(f"its {controller} cgroup is not visible here")
    return found


def _write_quota_v1(directory: Path, cpus: float | None) -> None:
    period = read_int(directory / "cpu.cfs_period_us") or PERIOD_US
    quota = -1 if cpus is None else quota_in_us(cpus, period)
    if cpus is not None and (read_int(directory / _BURST_V1) or 0) > quota:
        (directory / _BURST_V1).write_text(str(quota))
    (directory / _QUOTA_V1).write_text(str(quota))


def _write_quota_v2(directory: Path, cpus: float | None) -> None:
    present = read_text(directory / "cpu.max").split()
    period = int(present[1]) if len(present) == 2 else PERIOD_US
    if cpus is None:
        (directory / "cpu.max").write_text(f"max {period}")
        return
    quota = quota_in_us(cpus, period)
    burst = directory / _BURST_V2
    if (read_int(burst) or 0) > quota:  # the kernel refuses a quota below the burst
        burst.write_text(str(quota))
    (directory / "cpu.max").write_text(f"{quota} {period}")


def _write_weight(directory: Path, version: int, weight: float) -> None:
    if version == 1:
        (directory / "cpu.shares").write_text(str(max(LEAST_SHARES, round(weight))))
    else:
        (directory / "cpu.weight").write_text(str(weight_to_v2(weight)))


def _write_cpu_list(located: LocatedContainer, cpu_list: str) -> None:
    (_directory(located, "cpuset").path / CPUSET).write_text(cpu_list)
