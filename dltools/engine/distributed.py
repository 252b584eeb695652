"""Which distributed job a process belongs to, told by how the members find each other.

The launchers of PyTorch, Horovod, Open MPI, TensorFlow and Ray tell each process where its job
meets and how many take part. Only these variables are read of an environment, which may hold
secrets. A job in a single container does not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from dltools.engine.interface import Container


class _Launcher(NamedTuple):
    """The variables by which a launcher tells each process how many take part, in how many
    containers, or how many in each; and where they meet (an address and a port), or how their job
    is called."""

    size: str
    containers: str
    local_size: str
    meeting: tuple[str, ...]


_LAUNCHERS = (
    _Launcher("WORLD_SIZE", "GROUP_WORLD_SIZE", "LOCAL_WORLD_SIZE", ("MASTER_ADDR", "MASTER_PORT")),
    _Launcher(
        "HOROVOD_SIZE",
        "HOROVOD_CROSS_SIZE",
        "HOROVOD_LOCAL_SIZE",
        ("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"),
    ),
    _Launcher("OMPI_COMM_WORLD_SIZE", "", "OMPI_COMM_WORLD_LOCAL_SIZE", ("PMIX_NAMESPACE",)),
    _Launcher("PMI_SIZE", "", "MPI_LOCALNRANKS", ("PMIX_NAMESPACE",)),
)
"""torch.distributed, Horovod, Open MPI, and what is like MPICH."""

_AGENT = ("PET_RDZV_ENDPOINT", "PET_RDZV_ID", "PET_NNODES", "PET_STANDALONE")
_PLACES = ("NCCL_COMM_ID", "JAX_COORDINATOR_ADDRESS")

VARIABLES = frozenset(
    {
        *(name for launcher in _LAUNCHERS for name in (*launcher[:3], *launcher.meeting) if name),
        *_AGENT,
        *_PLACES,
        "TF_CONFIG",
        "RAY_ADDRESS",
        "HOSTNAME",
    }
)

_LONGEST = 4096
"""Longest value that is read, in bytes."""

_NAME = re.compile(r"[\w.:@%\[\]/-]{1,200}")
_RAY = re.compile(r"raylet\b|gcs_server\b|ray::|(python[\d.]* )?ray start\b")
"""Begins the titles of Ray's processes."""

_LOOPBACK = re.compile(r"localhost|127\.[\d.]+|\[?::1\]?|0\.0\.0\.0")


@dataclass(frozen=True, slots=True)
class Membership:
    """The job that a process is a member of."""

    job: str
    """A name that all members have in common, "" where its variables give none."""

    containers: int | None = None
    """How many containers the job has, None where that is unknown."""

    @property
    def host(self) -> str:
        """The address at which the members meet, "" where the job has another name."""
        return self.job.rpartition(":")[0].rpartition("/")[2]


_ALONE = Membership("", 1)


def variables_in(environ: bytes) -> dict[str, str]:
    """Return the variables of launchers that are set in the bytes of a /proc/PID/environ."""
    variables: dict[str, str] = {}
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if len(value) <= _LONGEST and (key := name.decode("ascii", "replace")) in VARIABLES:
            variables.setdefault(key, value.decode("utf-8", "replace").strip())
    return variables


def membership(
    processes: Iterable[tuple[Mapping[str, str], Sequence[str]]], *, shares_network: bool = False
) -> Membership | None:
    """Return the job of a container of whose processes these are the variables and the words of the
    commands, None for none.

    A process of Ray counts before all others: it reports to a head every few seconds. Then the
    first that names a job counts. Else, where one says that all members are in this container,
    those that say less, as a launcher's, do not count. `shares_network`: whether the container has
    the host's network, or another container's; only there do members in two containers meet at a
    loopback address.
    """
    is_alone = False
    unnamed: Membership | None = None
    processes = list(processes)
    for variables, command in processes:
        if (ray := _ray(variables, command)) is not None:
            return ray
    for variables, command in processes:
        for claim in _claims(variables, command):
            is_here = _LOOPBACK.fullmatch(claim.host) and not shares_network
            if claim.containers == 1 or is_here:
                is_alone = True
            elif not claim.job or claim.job.endswith(":"):
                unnamed = unnamed or Membership("", claim.containers)
            elif _NAME.fullmatch(claim.job):
                return claim
    return None if is_alone else unnamed


def membership_at_start(container: Container) -> Membership | None:
    """Return the job that a container's environment and command at its start show."""
    return _at_start(
        container.program.environ, tuple(container.program.command), container.network.is_shared
    )


@lru_cache(maxsize=1024)
def _at_start(environ: bytes, command: Sequence[str], is_shared: bool) -> Membership | None:
    return membership([(variables_in(environ), command)], shares_network=is_shared)


def _claims(given: Mapping[str, str], command: Sequence[str]) -> Iterator[Membership]:
    """Yield what each launcher's variables say."""
    yield from (claim for launcher in _LAUNCHERS if (claim := _worker(launcher, given)) is not None)
    others = _torchrun(given, command), _tensorflow(given), _meeting_elsewhere(given)
    yield from filter(None, others)


def _worker(launcher: _Launcher, given: Mapping[str, str]) -> Membership | None:
    """A process that a launcher has told how many take part. Without a number of containers, it is
    one in each where nothing else is known, so that no container elsewhere is overlooked."""
    size = _number(given.get(launcher.size))
    if size is None or size < 2:
        return None
    count = _number(given.get(launcher.containers))
    local = _number(given.get(launcher.local_size)) or 1
    return Membership(_job_at(launcher.meeting, given), count or -(-size // local))


def _job_at(meeting: Sequence[str], given: Mapping[str, str]) -> str:
    """Return the name of a job by where its members meet, "" where their variables do not tell. A
    loopback address tells without a port: nobody else is there."""
    where, *port = (given.get(name, "") for name in meeting)
    if not port:
        return f"mpi/{where}" if where else ""
    return f"{where}:{port[0]}" if where and (port[0] or _LOOPBACK.fullmatch(where)) else ""


def _torchrun(given: Mapping[str, str], command: Sequence[str]) -> Membership | None:
    """An agent of torchrun, whose workers have the variables above. An elastic job has an unknown
    number of containers, and where it has no name as many as it may have."""
    words = _options(command, ("rdzv-endpoint", "rdzv-id", "nnodes", "standalone"))
    if "standalone" in words or given.get("PET_STANDALONE"):
        return _ALONE
    nodes = words.get("nnodes") or given.get("PET_NNODES") or ""
    count = _number(nodes.rpartition(":")[2])
    if count is None or count < 2:
        return None if count is None else _ALONE
    place = words.get("rdzv-endpoint") or given.get("PET_RDZV_ENDPOINT")
    if not place:
        return Membership("", count)
    name = words.get("rdzv-id") or given.get("PET_RDZV_ID")
    return Membership(f"{name}/{place}" if name else place, None if ":" in nodes else count)


def _tensorflow(given: Mapping[str, str]) -> Membership | None:
    """TF_CONFIG has the addresses of all tasks; the first of them names the job."""
    try:
        cluster = json.loads(given.get("TF_CONFIG", "{}")).get("cluster") or {}
        tasks = [str(task) for kind in sorted(cluster) for task in cluster[kind]]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return Membership(f"tf/{tasks[0]}", len(tasks)) if len(tasks) > 1 else None


def _ray(given: Mapping[str, str], command: Sequence[str]) -> Membership | None:
    """A process of Ray: its workers and daemons are told by their titles."""
    place = given.get("RAY_ADDRESS", "").removeprefix("ray://")
    if re.search(r":\d+$", place) and _NAME.fullmatch(place):
        return Membership(f"ray/{place}")
    title = " ".join(word.rpartition("/")[2] for word in command[:3])
    return Membership("") if place or _RAY.match(title) else None


def _meeting_elsewhere(given: Mapping[str, str]) -> Membership | None:
    """A process that is told where to meet others, not how many: they are not in its container,
    unless the place is its own."""
    own = given.get("HOSTNAME")
    hosts = [given.get(name, "").rpartition(":")[0] for name in _PLACES]
    hosts += [given.get("MASTER_ADDR", "")] if "WORLD_SIZE" not in given else []
    away = any(host and host != own and not _LOOPBACK.fullmatch(host) for host in hosts)
    return Membership("") if away else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 8 else None


def _options(words: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Return the options of these names among words, as --name=value or --name value; torchrun
    takes - and _ for each other."""
    options: dict[str, str] = {}
    for at, word in enumerate(words):
        name, has_value, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if word.startswith("-") and name in names:
            follower = words[at + 1] if at + 1 < len(words) else ""
            options.setdefault(name, value if has_value else follower)
    return options
