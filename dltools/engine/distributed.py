"""Which distributed job a process is a member of, by how the members find each other.

The launchers of PyTorch, Horovod, Open MPI, TensorFlow and Ray tell each process where its job
meets and how many take part. Of the environment only these variables are read: a process may have
secrets in it. A job that is in one container alone is none here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

VARIABLES = (
    "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE",
    "PET_RDZV_ENDPOINT", "PET_RDZV_ID", "PET_NNODES", "PET_STANDALONE",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT", "HOROVOD_SIZE",
    "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_SIZE",
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE",
    "OMPI_MCA_ess_base_jobid", "TF_CONFIG", "RAY_ADDRESS",
)  # fmt: skip

_LONGEST = 4096
"""Longest value that is read, in bytes."""

_NAME = re.compile(r"[\w.:@%\[\]/-]{1,200}")
_LOOPBACK = re.compile(r"localhost|127\.[\d.]+|\[?::1\]?|0\.0\.0\.0")


@dataclass(frozen=True, slots=True)
class Membership:
    """The job that a process is a member of: a name that all members have in common, and how many
    containers it has, None where that is unknown."""

    job: str
    containers: int | None = None


def variables_in(environ: bytes) -> dict[str, str]:
    """Return the variables of launchers that are set in the bytes of a /proc/PID/environ."""
    found: dict[str, str] = {}
    for entry in environ.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if len(value) <= _LONGEST and (key := name.decode("ascii", "replace")) in VARIABLES:
            found.setdefault(key, value.decode("utf-8", "replace").strip())
    return found


def membership(
    variables: Mapping[str, str], command: Sequence[str] = (), *, shares_network: bool = False
) -> Membership | None:
    """Return the job of a process with these variables and words of its command, None for none.

    `shares_network`: whether its container has the host's network, or another container's; only
    there do members in two containers meet at a loopback address.
    """
    for found in (_torch(variables), _torchrun(variables, command), _horovod(variables),
                  _mpi(variables), _tensorflow(variables), _ray(variables)):  # fmt: skip
        if found is None or found.containers == 1 or not _NAME.fullmatch(found.job):
            continue
        host = found.job.rpartition(":")[0].rpartition("/")[2]
        if shares_network or not _LOOPBACK.fullmatch(host):
            return found
    return None


def _torch(given: Mapping[str, str]) -> Membership | None:
    """A worker of torch.distributed: it knows the master, and of torchrun how many agents."""
    place, size = _place(given, "MASTER_ADDR", "MASTER_PORT"), _number(given.get("WORLD_SIZE"))
    if place is None or size is None or size < 2:
        return None
    local = _number(given.get("LOCAL_WORLD_SIZE"))
    return Membership(place, _number(given.get("GROUP_WORLD_SIZE")) or _containers(size, local))


def _torchrun(given: Mapping[str, str], command: Sequence[str]) -> Membership | None:
    """An agent of torchrun, whose workers have the variables above."""
    words = _options(command, ("rdzv-endpoint", "rdzv-id", "nnodes", "standalone"))
    place = words.get("rdzv-endpoint") or given.get("PET_RDZV_ENDPOINT")
    nodes = (words.get("nnodes") or given.get("PET_NNODES") or "").rpartition(":")[2]
    if not place or "standalone" in words or given.get("PET_STANDALONE"):
        return None
    count = _number(nodes)
    if count is None or count < 2:
        return None
    name = words.get("rdzv-id") or given.get("PET_RDZV_ID")
    elastic = ":" in (words.get("nnodes") or given.get("PET_NNODES") or "")
    return Membership(f"{name}/{place}" if name else place, None if elastic else count)


def _horovod(given: Mapping[str, str]) -> Membership | None:
    place = _place(given, "HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT")
    size = _number(given.get("HOROVOD_SIZE"))
    if place is None or size is None or size < 2:
        return None
    local = _number(given.get("HOROVOD_LOCAL_SIZE"))
    return Membership(place, _number(given.get("HOROVOD_CROSS_SIZE")) or _containers(size, local))


def _mpi(given: Mapping[str, str]) -> Membership | None:
    name = given.get("PMIX_NAMESPACE") or given.get("OMPI_MCA_ess_base_jobid")
    size = _number(given.get("OMPI_COMM_WORLD_SIZE"))
    if not name or size is None or size < 2:
        return None
    local = _number(given.get("OMPI_COMM_WORLD_LOCAL_SIZE"))
    return Membership(f"mpi/{name}", _containers(size, local))


def _tensorflow(given: Mapping[str, str]) -> Membership | None:
    """TF_CONFIG has the addresses of all tasks; the first of them names the job."""
    try:
        cluster = json.loads(given.get("TF_CONFIG", "{}")).get("cluster") or {}
        tasks = [str(one) for kind in sorted(cluster) for one in cluster[kind]]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return Membership(f"tf/{tasks[0]}", len(tasks)) if len(tasks) > 1 else None


def _ray(given: Mapping[str, str]) -> Membership | None:
    place = given.get("RAY_ADDRESS", "").removeprefix("ray://")
    return Membership(f"ray/{place}") if re.search(r":\d+$", place) else None


def _containers(size: int, local: int | None) -> int | None:
    """Return in how many containers a job of so many processes is, with so many in each."""
    return None if not local else -(-size // local)


def _place(given: Mapping[str, str], address: str, port: str) -> str | None:
    return f"{given[address]}:{given[port]}" if given.get(address) and given.get(port) else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 8 else None


def _options(words: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Return the options of these names among words, as --name=value or --name value; torchrun
    takes - and _ for each other."""
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        name, has_value, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if word.startswith("-") and name in names:
            follower = words[at + 1] if at + 1 < len(words) else ""
            found.setdefault(name, value if has_value else follower)
    return found
